"""How the sentence for a paper names a standard error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.report.sentences import sentence


@pytest.mark.parametrize(("estimator", "said"), [("cr2", "CR2"), ("cr0", "CR0"), ("bootstrap", "bootstrap")])
def test_an_estimator_is_named_as_papers_do(estimator: str, said: str) -> None:
    """CR2 is an abbreviation, the bootstrap (of metrics that are no means) is a word."""
    scores = np.random.default_rng(2).integers(0, 2, size=(30, 3)).astype(float)
    row = hn.estimate(scores, clusters=[i // 3 for i in range(30)])
    text = sentence(replace(row, estimator=estimator, cluster="passage"))
    assert f"(clustered standard error, {said})" in text

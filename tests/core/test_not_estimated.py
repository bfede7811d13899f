"""A metric over all questions at once, where nothing that is installed estimates its noise."""

from __future__ import annotations

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import extras
from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores, Scores

QUESTIONS = Questions(tuple(map(str, range(30))))


@pytest.fixture(autouse=True)
def _no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "whole", lambda: None)


def run(name: str, seed: int) -> hn.Run:
    values = np.random.default_rng(seed).integers(0, 2, (30, 1)).astype(float)
    stats = np.stack([values, np.ones((30, 1))], axis=2)
    whole = CorpusScores(
        "t", "f1", "none", QUESTIONS, stats=stats, value=lambda s: s[..., 0] / s[..., 1], native=0.3
    )  # fmt: skip
    return hn.Run(name, name, "t", scores=(Scores("t", "acc", "none", QUESTIONS, values),), corpus=(whole,))


def test_its_row_is_null_and_a_note_says_what_is_not_installed() -> None:
    found = hn.analyze(run("a", 1))
    acc, f1 = found.estimates
    assert acc.se is not None
    assert (f1.metric, f1.mean, f1.se, f1.ci_low, f1.diagnostics) == ("f1", 0.3, None, None, ("skipped_metric",))
    (note,) = (note for note in found.notes if note.code == "no_error_bar")
    assert "t f1: the noise of a metric that is not a mean over questions is not installed" in note.as_text()


def test_its_difference_is_null_and_changes_no_other_row() -> None:
    a, b = run("a", 1), run("b", 2)
    found = hn.compare(a, b)
    acc, f1 = found.comparisons
    assert (f1.metric, f1.diff, f1.se, f1.p_value, f1.diagnostics) == ("f1", None, None, None, ("skipped_metric",))
    assert [note.task for note in found.notes if note.code == "no_error_bar"] == ["t"]
    (alone,) = hn.compare(a, b, metrics=["acc"]).comparisons
    assert acc == alone

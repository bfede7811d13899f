"""What is said of slices and coefficients that nothing tells the noise of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.data.clusters import Fields
from harness_noise.extra.slices.report import sentences
from harness_noise.report import figures, terminal
from support.notes import noted

RNG = np.random.default_rng(8)
TEMPLATE = [f"t{i}" for i in range(8) for _ in range(10)]
KIND = ["long" if i % 2 else "short" for i in range(80)]


def run(model: str) -> hn.Run:
    fields = {"template": TEMPLATE, "kind": KIND}
    questions = hn.Questions(tuple(f"q{i}" for i in range(80)), fields=Fields(fields, names=tuple(fields)))
    values = (RNG.random((80, 3)) < 0.6).astype(float)
    scores = hn.Scores("t", "acc", "none", questions, values, clusters=tuple(TEMPLATE), cluster_spec="template")
    return hn.Run(model=model, name=model, harness="array", scores=(scores,))


A, B, C = run("a"), run("b"), run("c")


def test_slices_of_one_cluster_are_said_not_to_be_tested() -> None:
    found = hn.compare(A, B, by=["template"])
    assert sentences(found)[-1] == (
        "None of 8 slices could be tested: each lies in one cluster, which alone does not tell its noise."
    )
    picture = figures.slices("x", found.slices, found.comparisons[0], None)
    assert picture is not None
    assert "8 slices. None of them could be tested: each lies in one cluster" in str(picture)
    both = hn.compare(A, B, by=["template", "kind"])
    assert sentences(both)[-1].startswith("None of the 2 slices that could be tested (of 10) is shown to have")


def test_what_is_not_known_of_all_models_is_said_once() -> None:
    found = sentences(hn.arena([A, B, C], by=["template"]))
    assert [line for line in found if "not known" in line] == [
        "each of 3 models on t acc: it is not known whether the mean varies over template."
    ]


@pytest.mark.parametrize(("field", "said"), [("template", True), ("kind", False)])
def test_a_field_that_is_the_cluster_is_called_so(field: str, said: bool) -> None:
    found = hn.regress(A, B, on=[field])
    assert any(f"{field} is the cluster itself" in note for note in noted(found)) is said
    shown = " ".join(terminal.text(replace(found, notes=()), details=True).split())
    assert "finer cluster" not in shown
    assert ("rests on fewer than two clusters" in shown) is said

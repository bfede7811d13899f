"""A cancelled run of several scorers: what is said of the answers that each of them has."""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("inspect_ai")
from inspect_ai.scorer import Score, accuracy, scorer, stderr


@scorer(metrics=[accuracy(), stderr()])
def sure():
    async def score(state, target):
        return Score(value="C" if state.epoch > 1 else "I")

    return score


@scorer(metrics=[accuracy(), stderr()])
def picky():
    async def score(state, target):
        return Score(value="C" if state.epoch > 1 else float("nan"))

    return score


def said(caplog):
    return " ".join(r.getMessage() for r in caplog.records if r.name == "harness_noise")


def test_answers_without_a_score_are_counted_by_scorer(canned, tmp_path, caplog):
    """`picky` has no score for a third of the 36 answers, and `sure` misses none."""
    with caplog.at_level(logging.WARNING, "harness_noise"):
        (log,) = canned.eval(canned.task(scorer=[sure(), picky()]), tmp_path, epochs=3, metadata={"noise": True})
    found = {es.name: es.metrics["noise_se"].metadata["n_missing"] for es in log.results.scores}
    assert found == {"sure": 0, "picky": 12}
    assert "coins: answers without a score are left out: picky 12" in said(caplog)


def test_scorers_that_miss_the_same_are_not_listed(canned, tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "harness_noise"):
        canned.eval(canned.task(scorer=[picky()]), tmp_path, epochs=3, metadata={"noise": True})
    assert "coins: 12 answers have no score and are left out" in said(caplog)

"""Answers that are missing at random, by the user's word: the gate judges without them, and says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.data.answers import Answers
from harness_noise.data.scores import Run
from support.notes import noted

N = 200


def run(name: str, right: float, lost: Mapping[int, str] = {}, seed: int = 0) -> Run:
    """A run of which the answers to these questions are missing, each for its cause."""
    draw = np.random.default_rng(seed)
    answers = Answers(name)
    for i, u in enumerate(draw.random(N)):
        answers.add("suite", "acc", "none", f"q{i}", 1, lost.get(i, float(u < right)))
    return answers.run(name, "h")


def gate(new: Run, old: Run, margin: float = 0.15, **more: Any) -> hn.Gate:
    return hn.gate(new, old, rule="no-loss", margin=margin, **more)


INFRASTRUCTURE = dict.fromkeys(range(0, N, 5), "infrastructure")


def test_a_pass_that_missing_answers_could_turn_takes_a_word_for_their_cause():
    new, old = run("new", 0.8, INFRASTRUCTURE), run("old", 0.8)
    refused = gate(new, old)
    assert refused.outcome == "cannot judge"
    assert "`vouch='CAUSE'`" in refused.rows[0].reason
    found = gate(new, old, vouch=["infrastructure"])
    assert found.outcome == "pass"
    said = "answers missing for infrastructure (40 of new) are missing at random, by your word"
    assert any(said in note for note in noted(found))
    without = [i for i in range(N) if i not in INFRASTRUCTURE]
    part, base = new.scores[0].values[without], old.scores[0].values[without]
    assert found.rows[0].estimate == pytest.approx((part - base).mean())


def test_answers_that_are_missing_for_other_causes_still_count():
    lost = INFRASTRUCTURE | dict.fromkeys(range(1, N, 5), "refused")
    found = gate(run("new", 0.8, lost), run("old", 0.8), vouch=["infrastructure"])
    assert found.outcome == "cannot judge"
    assert gate(run("new", 0.8, lost), run("old", 0.8), vouch=["infrastructure", "refused"]).outcome == "pass"


def test_what_a_baseline_lacks_is_vouched_for_too():
    new, old = run("new", 0.82), run("old", 0.8, INFRASTRUCTURE)
    assert gate(new, old, 0.03).outcome == "cannot judge"
    found = gate(new, old, 0.03, vouch=["infrastructure"])
    assert found.outcome == "pass"
    assert any("(40 of old)" in note for note in noted(found))


def test_a_cause_that_meets_no_answer_is_told():
    found = gate(run("new", 0.8, INFRASTRUCTURE), run("old", 0.8), vouch=["verifier"])
    assert found.outcome == "cannot judge"
    assert any(
        "no answer is missing for this cause: the causes that there are: infrastructure" in n for n in noted(found)
    )


def test_a_word_that_is_no_cause_is_refused():
    with pytest.raises(
        hn.InputError, match=r"'sandbox' is no cause of a missing answer\. They are agent, infrastructure"
    ):
        gate(run("new", 0.8), run("old", 0.8), vouch=["sandbox"])


def test_vouched_answers_do_not_make_a_loss_pass():
    assert gate(run("new", 0.5, INFRASTRUCTURE), run("old", 0.8), vouch=["infrastructure"]).outcome == "fail"

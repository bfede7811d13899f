"""Answers that Inspect's scorers leave unscored, with the reason that they give."""

from importlib.metadata import version

import pytest

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai.scorer import Score, accuracy, scorer

import harness_noise as hn

if tuple(map(int, version("inspect-ai").split(".")[:3])) < (0, 3, 285):
    pytest.skip(
        "tried with Inspect 0.3.285; the logs of 0.3.262 lack the reason where it is read", allow_module_level=True
    )

REASONS = ("grader_failed", "scoring_failed", "refusal", "no_response", "of the author's own")


@scorer(metrics=[accuracy()])
def reserved():
    """No score for the first ten samples, each for the next reason."""

    async def score(state, target):
        i = int(state.sample_id[1:])
        if i < 10:
            return Score.unscored(reason=REASONS[i % 5])
        return Score(value="C" if state.output.completion == "yes" else "I")

    return score


@pytest.fixture(scope="module")
def log(canned, tmp_path_factory):
    (log,) = canned.eval(canned.task(canned.samples(40), scorer=reserved()), tmp_path_factory.mktemp("unscored"))
    return log.location


def test_the_reasons_are_causes(log):
    (row,) = hn.analyze(log).estimates
    assert row.n_missing == 10
    assert row.missing == {"verifier": 4, "refused": 2, "unanswered": 2}


def test_a_cause_counts_as_zero(log):
    (dropped,) = hn.analyze(log).estimates
    (row,) = hn.analyze(log, missing="verifier=zero").estimates
    assert row.n_questions == dropped.n_questions + 4 == 34
    assert row.mean == pytest.approx(dropped.mean * 30 / 34)


def test_a_cause_that_meets_no_answer_is_a_note(log):
    (note,) = [note.as_text() for note in hn.analyze(log, missing="agent=zero").notes if "'agent'" in note.as_text()]
    assert "changes nothing" in note
    assert "verifier, refused, unanswered" in note
    assert not [note for note in hn.analyze(log, missing="refused=zero").notes if "changes nothing" in note.as_text()]

"""What the sentence for a paper, the verdict and the closing line say of errors, answers and limits."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.report.fmt import by_test
from harness_noise.report.sentences import closing_line, sentence, verdict_line
from harness_noise.report.text import markdown


@pytest.mark.parametrize(("estimator", "said"), [("cr2", "CR2"), ("cr0", "CR0"), ("bootstrap", "bootstrap")])
def test_an_estimator_is_named_as_papers_do(estimator: str, said: str) -> None:
    """CR2 is an abbreviation, the bootstrap (of metrics that are no means) is a word."""
    scores = np.random.default_rng(2).integers(0, 2, size=(30, 3)).astype(float)
    row = hn.estimate(scores, clusters=[i // 3 for i in range(30)])
    text = sentence(replace(row, estimator=estimator, cluster="passage"))
    assert f"± clustered standard error, {said};" in text


def varied(n: int, K: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random((n, K)) < rng.random((n, 1))).astype(float)


def copied(n: int, K: int, seed: int = 0) -> np.ndarray:
    return np.repeat(varied(n, 1, seed), K, axis=1)


def with_a_gap(n: int, K: int) -> np.ndarray:
    scores = varied(n, K, 1)
    scores[0, 0] = np.nan
    return scores


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (varied(60, 5), varied(60, 5, 1), "n = 60 questions, 5 answers each)"),
        (varied(60, 10), varied(60, 1), "n = 60 questions, 10 answers each of A and one of B)"),
        (varied(60, 1), varied(60, 4), "n = 60 questions, one answer each of A and 4 of B)"),
        (
            copied(60, 5),
            varied(60, 5),
            "n = 60 questions, 5 answers each, in at least one run all alike, which count as one)",
        ),
        (varied(60, 1), varied(60, 1), "n = 60 questions, one answer each)"),
        (varied(60, 3), with_a_gap(60, 3), "n = 60 questions, up to 3 answers each)"),
        (varied(60, 1), with_a_gap(60, 3), "n = 60 questions, one answer each of A and up to 3 of B)"),
    ],
)
def test_how_often_a_pair_was_asked_is_told_of_each_side(a: np.ndarray, b: np.ndarray, said: str) -> None:
    row = hn.estimate_difference(a, b)
    assert said in sentence(row)
    column = f"{row.repeats_a} : {row.repeats_b}" if row.repeats_a != row.repeats_b else f"{row.repeats_a}"
    assert f"| {column} |" in markdown(hn.Comparison({}, (row,)))


def test_copies_of_one_answer_are_not_told_as_answers() -> None:
    row = hn.estimate(copied(60, 5))
    assert "n = 60 questions, one answer each, repeated 5 times without a change)" in sentence(row)
    assert "(60 questions, one answer each, repeated 5 times without a change)" in closing_line(row)


@pytest.mark.parametrize("zero_one", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("near", [0.0004, 0.00004, 0.0000004])
def test_the_limit_that_decides_is_never_written_as_0(near: float, lower: bool, zero_one: bool) -> None:
    """p is .049, and [0.000, 0.108] would not say on which side of 0 the difference lies."""
    rng = np.random.default_rng(1)
    found = hn.estimate_difference(rng.normal(0.054, 0.3, 120), np.zeros(120))
    ends = {"ci_low": -0.108, "ci_high": -near} if lower else {"ci_low": near, "ci_high": 0.108}
    row = replace(
        found,
        diff=-0.054 if lower else 0.054,
        se=0.027,
        metric="acc",
        mean_a=0.5,
        mean_b=0.446,
        **ends,
        _zero_one=zero_one,
    )
    for text in (sentence(row), verdict_line(row)):
        low, high = (float(x.replace("−", "-")) for x in re.findall(r"[+−]?\d+\.?\d*(?:e[−-]\d+)?", _ends(text))[:2])
        assert (low < high < 0) if lower else (0 < low < high), text
    zero = replace(row, ci_low=0.0, ci_high=0.108)
    assert ("[0.0, 10.8]" if zero_one else "[0.000, 0.108]") in sentence(zero)


def _ends(text: str) -> str:
    """The part of a sentence, or of a verdict, in which the interval stands."""
    return text.partition(" CI [")[2] or text.partition(": ")[2]


def test_an_error_bar_of_0_is_not_written() -> None:
    row = hn.estimate(np.zeros(10))
    assert closing_line(row) == (
        "score: 0.0%, 95% CI [0.0%, 33.9%] (10 questions, one answer each); all questions have the same mean."
    )
    assert "±" not in sentence(row)
    shown = " ".join(str(row).split())
    assert "standard error" not in shown
    assert "an SE of 0 is no certainty" in hn.render(hn.Analysis({}, (row,)), "markdown", details=True)
    assert "total are right" not in shown


def test_scores_that_are_all_alike_inside_their_range_have_no_interval() -> None:
    """Ten judgements of 0.5 do not tell how far an eleventh may lie; ten right answers bound the wrong ones."""
    row = hn.estimate(np.full(10, 0.5))
    assert (row.mean, row.se, row.confidence_interval, row.interval) == (0.5, 0.0, (None, None), "none")
    assert "zero_variance" in row.diagnostics
    assert closing_line(row) == "score: 0.500 (10 questions, one answer each); all questions have the same mean."
    for method in ("wilson", "korn-graubard", "t", "bootstrap"):
        assert hn.estimate(np.full(10, 0.5), interval=method).interval == "none"  # type: ignore[arg-type]
    # right and wrong answers that make the same mean in every question (cluster) are as many as they are
    assert hn.estimate(np.tile([1.0, 0.0], (10, 1))).interval == "wilson"
    assert hn.estimate(np.ones(10)).confidence_interval.high == 1.0


def test_where_nothing_differs_no_t_test_is_named() -> None:
    row = hn.estimate_difference(np.ones(5), np.ones(5))
    assert (row.p_value, row.se) == (1.0, 0.0)
    assert sentence(row).endswith("95% CI [−40, 40] (Bonett–Price), p = 1.000: not shown to differ.")
    assert verdict_line(row) == "A is not shown to differ from B: −40 to +40 points; Bonett–Price."
    assert by_test(row) == "Bonett–Price"


def test_nothing_and_one_question_are_told_as_that() -> None:
    none, one = hn.estimate([]), hn.estimate([1.0])
    assert closing_line(none) == "score: no mean: there is no score."
    assert sentence(none) == "The model has no score (score)."
    assert closing_line(one) == "score: 100% on one question, which has no standard error, 95% CI [21%, 100%]."
    assert "n = 1 question, one answer each" in sentence(one)
    assert one.diagnostics == ("single_repeat", "too_few_questions")
    for row in (none, one):
        assert "--log_samples" not in str(row)
        assert "less reliable" not in str(row)


def test_the_harnesss_own_value_is_of_no_questions_of_ours() -> None:
    row = replace(hn.estimate([]), mean=0.78, task="gsm8k", metric="em", model="m", diagnostics=("skipped_metric",))
    assert sentence(row) == "m scores 78.0% on gsm8k (em), without an error bar."


def test_a_pair_that_can_detect_nothing_says_so() -> None:
    row = hn.estimate_difference([1, 0, 0], [1, 1, 0])
    row = replace(row, metric="acc")
    assert row.mde is not None
    assert row.mde > 1
    assert "smallest detectable none" in verdict_line(row)


@pytest.mark.parametrize("told", [sentence, closing_line])
def test_scores_that_are_not_the_native_ones_are_no_sentence_for_a_paper(told: Any) -> None:
    row = replace(hn.estimate(varied(30, 2)), diagnostics=("mean_mismatch",))
    assert told(row).endswith("; the scores do not have the mean that the harness reports, so do not use this.")


def test_a_difference_of_such_scores_is_none_either() -> None:
    row = hn.estimate_difference(varied(30, 2) * 0.2, varied(30, 2, 1) + 1)
    assert row.verdict == "B better"
    row = replace(row, diagnostics=(*row.diagnostics, "mean_mismatch"))
    assert sentence(row).endswith("; the scores do not have the mean that the harness reports, so do not use this.")
    assert "so do not use this." in verdict_line(row)

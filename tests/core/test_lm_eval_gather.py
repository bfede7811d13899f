"""The one way of lm-eval's scores, from the facts and columns of a task to Scores."""

import numpy as np
import pytest

from harness_noise import extras
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run
from harness_noise_adapters.lm_eval_harness.files.results import Native
from harness_noise_adapters.lm_eval_harness.scoring.choices import LeftOutError
from harness_noise_adapters.lm_eval_harness.scoring.gather import (
    Aggregation,
    Gathered,
    GroupRow,
    Scored,
    TaskFacts,
    gather,
    groups,
    reported,
)
from support.notes import noted

KEY = ("acc", "none")
TABLE = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])


def column(own, repeats, raw=None) -> Scored:
    out = Scored(raw=raw)
    for document, (value, row) in enumerate(zip(own, repeats, strict=True)):
        out.add(document, value, list(row))
    return out


def gathered(found: Scored, value: float | None, **facts) -> Gathered:
    known = {
        "name": "toy", "questions": Questions(tuple("abcd")), "reported": {KEY: value},
        "aggregations": {"acc": Aggregation("mean")}, "higher_is_better": {"acc": True},
    }  # fmt: skip
    out = Gathered()
    gather(TaskFacts(**(known | facts)), {KEY: found}, out)
    return out


def test_the_numbers_tell_whose_mean_a_value_is():
    first, whole = TABLE[:, 0].mean(), TABLE.mean()
    (of_first,) = gathered(column(TABLE[:, 0], TABLE), first).scores
    (of_all,) = gathered(column(TABLE.mean(axis=1), TABLE), whole).scores
    assert (of_first.native, of_first.native_is_first) == (first, True)
    assert (of_all.native, of_all.native_is_first) == (whole, False)
    np.testing.assert_array_equal(of_all.values, TABLE)


def test_a_vote_stands_beside_the_mean_of_single_answers():
    votes = np.median(TABLE, axis=1)
    found = gathered(column(votes, TABLE), votes.mean(), used={"none": 3})
    single, vote = found.scores
    assert (single.native, single.metric) == (None, "acc")
    assert (vote.native, vote.metric, vote.diagnostics) == (votes.mean(), "acc@3", ("uses_all_repeats",))
    assert vote.values[:, 0].tolist() == votes.tolist()
    assert len(noted(found)) == 1
    assert "toy: the harness's own value uses all its 3 answers at once" in noted(found)[0]


def test_a_vote_whose_mean_is_that_of_the_first_answers_is_a_vote():
    """As many votes as first answers are right, on other questions."""
    table = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    votes = np.median(table, axis=1)
    assert votes.mean() == table[:, 0].mean() == table.mean()
    single, vote = gathered(column(votes, table), votes.mean(), used={"none": 3}).scores
    assert (single.native, single.native_is_first) == (None, False)
    assert (vote.native, vote.metric) == (votes.mean(), "acc@3")


def test_answers_that_cannot_be_scored_one_by_one_have_a_vote_alone():
    single = column(TABLE[:, 0], TABLE[:, :1])
    (vote,) = gathered(single, TABLE[:, 0].mean(), used={"none": 3}, at_once=["none"]).scores
    assert (vote.metric, vote.native) == ("acc@3", TABLE[:, 0].mean())


def test_first_answers_that_lm_eval_scored_otherwise_are_told():
    (odd,) = gathered(column(TABLE[:, 1], TABLE), 0.25, mismatch=[KEY]).scores
    assert odd.diagnostics == ("mean_mismatch",)
    assert odd.native == 0.25


@pytest.mark.parametrize(
    ("found", "value", "facts", "reason"),
    [
        (column(TABLE[:, 0], TABLE[:, :1]), 0.6, {"aggregations": {}}, "is not the reported value"),
        (column(TABLE[:, 0], TABLE[:, :1]), 0.5, {"aggregations": {"acc": Aggregation("bleu")}}, "aggregated by bleu"),
        (column(["x"] * 4, [["x"]] * 4), 0.5, {}, "its values are text"),
        (column([np.inf] * 4, [[np.inf]] * 4), 0.5, {}, "a score is infinite"),
        (column([1e308] * 4, [[1e308]] * 4), 0.5, {}, "a score is infinite"),
        (column([np.inf, -np.inf, 0, 1], [[np.inf], [-np.inf], [0], [1]]), 0.5, {}, "a score is infinite"),
        (column([None] * 4, TABLE), 0.5, {"aggregations": {}}, "of its values (0.583333) is not the reported value"),
        (column([None] * 4, [[None]] * 4), 0.5, {}, "no question has a score"),
        (column([[1, 2]] * 4, [[[1, 2]]] * 4), 0.5, {}, "not one number"),
    ],
)
def test_what_is_no_mean_is_skipped_with_the_reason(found, value, facts, reason):
    out = gathered(found, value, **facts)
    assert out.scores == []
    assert reason in out.skipped[0].reason
    assert out.skipped[0].native == value


@pytest.mark.parametrize("own", [[None, -1.0, 1.0, 0.0], [-1.0, None, 1.0, 0.0], [-1.0, -1.0, 1.0, 0.0]])
@pytest.mark.parametrize("value", [0.5, None])
def test_questions_of_another_length_are_left_out_wherever_one_has_no_score(own, value):
    key, out = ("4096", "none"), Gathered()
    lengths = column(own, [[score] for score in own])
    reported_here = {} if value is None else {key: value}
    known = (
        {"aggregations": {"4096": Aggregation("def mean(", registered=False)}}
        if reported_here
        else {"aggregations": {}}
    )
    facts = TaskFacts(
        name="niah_single_1", questions=Questions(tuple("abcd")), reported=reported_here, higher_is_better={}, **known
    )
    gather(facts, {key: lengths}, out)
    np.testing.assert_array_equal(out.scores[0].values[:, 0], [np.nan, np.nan, 1.0, 0.0])


def test_somebody_elses_aggregation_is_a_mean_if_it_gives_the_mean():
    def function():
        raise AssertionError("it is not called for a mean")

    foreign = {"acc": Aggregation("agg", registered=False, function=function)}
    (part,) = gathered(column(TABLE[:, 0], TABLE[:, :1]), 0.75, aggregations=foreign).scores
    assert part.native == 0.75


@pytest.mark.parametrize("half", [False, True])
def test_any_other_aggregation_is_not_called_without_its_extra(monkeypatch, half):
    monkeypatch.setattr(f"{gather.__module__}.if_any", lambda path: None)
    monkeypatch.setattr(extras, "whole", lambda: extras if half else None)  # the half that would resample it
    foreign = {"acc": Aggregation("largest", registered=False, function=lambda: max)}
    out = gathered(column(TABLE[:, 0], TABLE, raw=[]), 1.0, aggregations=foreign)
    if half:
        ((skipped,), corpus) = out.skipped, out.corpus
        assert (skipped.native, corpus) == (1.0, [])
        assert "is not installed" in skipped.reason
        return
    (part,) = out.corpus
    assert (part.native, part.aggregate, part.value) == (1.0, None, None)
    assert part.take([1], Questions(("q1",))).native is None


def test_the_run_has_clusters_and_one_sentence_for_tasks_that_leave_something_out():
    def no_choices(scorer):
        raise LeftOutError("it has no choices")

    out = Gathered()
    for name in ("one", "two"):
        facts = TaskFacts(
            name=name, questions=Questions(tuple("abcd")), reported={KEY: 0.75}, higher_is_better={},
            aggregations={"acc": Aggregation("mean")}, probabilities=no_choices,
        )  # fmt: skip
        gather(facts, {KEY: column(TABLE[:, 0], TABLE[:, :1])}, out)
    run = out.run({"two": (("x", "x", "y", "y"), "passage")}, model="m", name="n", harness="lm-eval")
    assert isinstance(run, Run)
    assert [part.clusters for part in run.scores] == [None, ("x", "x", "y", "y")]
    assert noted(run) == ("one and 1 more: no acc_prob: it has no choices",)


def test_a_group_is_of_the_tasks_that_have_its_metric():
    values = {"a": {KEY: 0.2}, "b": {KEY: 0.8}, "c": {}}
    (found,) = groups([GroupRow("g", KEY, 0.35, ["a", "b", "c", "d"], "size")], values, [])
    assert (found.tasks, found.weighting, found.native) == (("a", "b"), "size", 0.35)
    (twice,) = groups([GroupRow("g", KEY, 0.4, ["a", "a", "b"], "equal")], values, [])
    assert twice.tasks == ()


GROUP = {
    "group_subtasks": {"g": ["a", "b"]}, "n-samples": {"a": {"effective": 30}, "b": {"effective": 10}},
    "configs": {"a": {}, "b": {}},
}  # fmt: skip


def weights(*tables: dict[str, float], noise: tuple[float, ...] = ()) -> str:
    """Those of a group `g` of the tasks `a` and `b`, by values of each of them under several filters."""
    rows = {name: {f"acc,{i}": table[name] for i, table in enumerate(tables) if name in table} for name in "abg"}
    means = [
        {"task": name, "metric": "acc", "scorer": "0", "mean": mean} for name, mean in zip("abg", noise, strict=False)
    ]
    return Native({**GROUP, "results": rows, "noise": {"estimates": means}}).weighting("g", "acc")


def test_the_values_of_a_group_tell_its_weights_where_nothing_else_does():
    by_size, equal = {"a": 0.2, "b": 0.8, "g": 0.35}, {"a": 0.2, "b": 0.8, "g": 0.5}
    alike = {"a": 0.5, "b": 0.5, "g": 0.5}
    assert weights(by_size) == "size"
    assert weights(equal) == "equal"
    assert weights({"a": 0.0, "b": 0.8, "g": 0.4}) == "equal"
    assert weights({"a": 0.2, "b": 0.8, "g": 0.123}) == weights(alike) == weights({"g": 0.5}) == "size"
    # tasks with the same score tell nothing, but another filter does, and so do our own means
    assert weights(alike, equal) == "equal"
    assert weights(alike, noise=(0.2, 0.8, 0.5)) == "equal"
    assert weights(alike, noise=(0.2, 0.8, 0.35)) == "size"


def test_reported_values_are_finite_numbers_or_nothing():
    row = {"alias": "toy", "acc,none": 0.5, "acc_stderr,none": 0.1, "f1,strict": "N/A", "n,none": float("nan"),
           "flag,none": True, "bypass,none": 999}  # fmt: skip
    assert reported(row) == {
        ("acc", "none"): 0.5, ("f1", "strict"): None, ("n", "none"): None, ("flag", "none"): None,
        ("bypass", "none"): None,
    }  # fmt: skip


def test_the_interval_that_a_row_says_of_a_metric_is_no_metric():
    """As lm-eval's #4090 writes it beside the standard error."""
    row = {"acc,none": 0.5, "acc_stderr,none": 0.1, "acc_boundary_ci95,none": 0.2, "alias": "t"}
    assert reported(row) == {("acc", "none"): 0.5}

"""The gate on each question by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.data.scores import Group
from harness_noise.extra.gate.each import COULD_FAIL, NOT_TOLD, enough
from support.notes import noted


def suite(name: str, right: np.ndarray, K: int = 10, **fields: object) -> hn.Run:
    """A run with so many right answers of K to each question."""
    values = (np.arange(K) < np.asarray(right)[:, None]).astype(float)
    values = np.array([np.random.default_rng(i).permutation(row) for i, row in enumerate(values)])
    scores = hn.as_scores(values, task="suite", higher_is_better=True, bounds=(0.0, 1.0))
    return hn.Run(name, name, "array", scores=(replace(scores, **fields),))  # type: ignore[arg-type]


def test_one_broken_test_of_three_hundred_fails_and_the_mean_does_not_see_it() -> None:
    old = np.full(300, 10)
    new = old.copy()
    new[17] = 0
    a, b = suite("new", new), suite("old", old)
    assert hn.gate(a, b).passed
    gate = hn.gate(a, b, each=True)
    assert [row.question for row in gate.failing] == ["17"]
    assert "0 of 10 right for 10 of 10" in gate.sentence
    assert gate.failing[0].p_value == pytest.approx(1 / 184756)
    assert gate.failing[0].p_adjusted == pytest.approx(300 / 184756)
    assert hn.gate(b, b, each=True).sentence.startswith("pass: no loss is shown in 300 questions")


def test_a_suite_that_cannot_be_judged_shows_what_lost() -> None:
    new = np.full(60, 5)
    new[17] = 0
    gate = hn.gate(suite("new", new, 5), suite("old", np.full(60, 5), 5), each=True)
    assert gate.sentence.startswith("cannot judge: suite score 17: with 5 and 5 answers no loss among 60 questions")
    shown = hn.render(gate, "markdown")
    assert "17" in shown
    assert shown.count("cannot judge") == 2  # the sentence, and one row


def test_p_is_fishers_one_sided() -> None:
    gate = hn.gate(suite("a", [3, 9, 10]), suite("b", [9, 8, 10]), each=True)
    for row in gate.rows:
        table = [[row.right_a, 10 - row.right_a], [row.right_b, 10 - row.right_b]]
        assert row.p_value == pytest.approx(stats.fisher_exact(table, alternative="less").pvalue)
    flaky = {row.question: row.flaky for row in gate.rows}
    assert flaky == {"0": 0.9, "1": 0.8, "2": None}
    assert any("suite score 0 (9 of 10)" in note for note in noted(gate))


@pytest.mark.parametrize(("K", "n", "judged"), [(5, 6, True), (5, 7, False), (8, 321, True), (8, 322, False)])
def test_what_the_counts_cannot_show_is_not_judged(K: int, n: int, judged: bool) -> None:
    gate = hn.gate(suite("a", np.full(n, K), K), suite("b", np.full(n, K), K), each=True)
    assert gate.outcome == ("pass" if judged else "cannot judge")
    if not judged:
        assert f"{enough(n, 0.025)} each could show a complete one" in gate.sentence
    broken = np.full(n, K)
    broken[0] = 0
    assert hn.gate(suite("a", broken, K), suite("b", np.full(n, K), K), each=True).failed == judged


def test_baselines_are_pooled_unless_they_differ() -> None:
    a, b = suite("a", [10, 9] * 20), suite("b", [10, 8] * 20)
    gate = hn.gate(a, [b, suite("c", [8, 10] * 20)], each=True)
    assert gate.rows[0].answers_b == 20
    with pytest.raises(hn.InputError, match="the baseline runs differ"):
        hn.gate(a, [b, suite("c", [2, 9, 3, 1] * 10)], each=True)


def test_what_has_no_counts_is_refused_or_not_judged() -> None:
    a, b = suite("a", [9, 10, 10]), suite("b", [10, 10, 10])
    with pytest.raises(hn.InputError, match="K > 1"):
        hn.gate(a, suite("b", [1, 1, 1], 1), each=True)
    with pytest.raises(hn.InputError, match=r"does not use `margin=0\.1`: leave it out"):
        hn.gate(a, b, each=True, margin=0.1)
    with pytest.raises(hn.InputError, match="none is given"):
        hn.gate(a, each=True)
    graded = replace(b, scores=(replace(b.scores[0], values=b.scores[0].values * 0.5),))
    with pytest.raises(hn.InputError, match="right and wrong"):
        hn.gate(a, graded, each=True)
    holes = b.scores[0].values.copy()
    holes[1] = np.nan
    lacking = replace(b, scores=(replace(b.scores[0], values=holes),))
    assert "it has no score" in hn.gate(a, lacking, each=True).sentence
    assert hn.gate(a, lacking, each=True, skip_missing=True).passed
    other = replace(b, scores=(replace(b.scores[0], version="2"),))
    versioned = replace(a, scores=(replace(a.scores[0], version="1"),))
    assert "versions" in hn.gate(versioned, other, each=True).sentence


def test_lower_may_be_better() -> None:
    a, b = (suite(name, right, higher_is_better=False) for name, right in (("a", [10] * 30), ("b", [0] + [10] * 29)))
    assert [row.question for row in hn.gate(a, b, each=True).failing] == ["0"]
    assert hn.gate(b, a, each=True).passed
    row = hn.gate(a, b, each=True).failing[0]
    assert row.estimate == 1.0  # of the metric, as in `compare`, and not of what is right
    doubled = [replace(run, scores=(replace(run.scores[0], values=2 * run.scores[0].values, bounds=(0.0, 2.0)),))
               for run in (a, b)]  # fmt: skip
    assert hn.gate(*doubled, each=True).failing[0].estimate == 2.0


def test_scores_of_another_range_are_shown_on_it() -> None:
    """0 and 100 are right and wrong answers, too: A − B of 10 to 0 is 100 there, and 100 points of 0 and 1."""
    each = []
    for high in (1.0, 100.0):
        a, b = (suite(name, right) for name, right in (("a", [0, 10]), ("b", [10, 10])))
        a, b = (
            replace(x, scores=(replace(x.scores[0], values=high * x.scores[0].values, bounds=(0.0, high)),))
            for x in (a, b)
        )
        gate = hn.gate(a, b, each=True)
        assert gate.failing[0].estimate == -high
        each.append(hn.render(gate, "markdown"))
    assert "points" in each[0]
    assert "points" not in each[1]
    assert all("−100" in shown and "−10000" not in shown for shown in each)


def with_tasks(name: str, *tasks: str, right: int = 10) -> hn.Run:
    parts = [replace(suite(name, np.full(6, right)).scores[0], task=task) for task in tasks]
    return hn.Run(name, name, "array", scores=tuple(parts))


def test_what_one_run_lacks_is_not_passed_over() -> None:
    both, one = with_tasks("b", "alpha", "beta"), with_tasks("a", "alpha")
    for new, old in ((one, both), (both, one)):
        gate = hn.gate(new, old, each=True)
        assert gate.outcome == hn.gate(new, old).outcome == "cannot judge"
        assert gate.unjudged[0].task == "beta"
        assert "only the" in gate.unjudged[0].reason
        skipped = hn.gate(new, old, each=True, skip_missing=True)
        assert skipped.passed
        assert "beta" in skipped.left_out[0]
    # a headline score decides for its own task alone
    told = replace(both, headline=frozenset({both.scores[0].key}))
    assert {row.task for row in hn.gate(with_tasks("a", "alpha", "beta"), told, each=True).rows} == {"alpha", "beta"}
    headed = replace(with_tasks("a", "alpha", "beta", right=10), headline=frozenset({both.scores[0].key}))
    broken = replace(headed, scores=(headed.scores[0], with_tasks("x", "beta", right=0).scores[0]))
    assert hn.gate(broken, both, each=True).failed
    # the tasks of a group are judged where they have no rows
    grouped = [replace(run, scores=(), parts=run.scores, groups=(Group("all", "score", "none", ("alpha", "beta")),))
               for run in (broken, both)]  # fmt: skip
    assert hn.gate(*grouped, each=True).failed


def test_what_missing_answers_could_change_is_not_passed() -> None:
    full = suite("b", np.full(6, 10))
    for lost, outcome in ((1, "pass"), (7, "cannot judge")):
        values = np.ones((6, 10))
        values[0, :lost] = np.nan
        new = hn.Run("a", "a", "array", scores=(hn.as_scores(values, task="suite", higher_is_better=True),))
        gate = hn.gate(new, full, each=True)
        assert gate.outcome == outcome
        if outcome != "pass":
            assert gate.unjudged[0].reason == COULD_FAIL
            assert hn.gate(new, full, each=True, skip_missing=True).passed
        # answers of which it is not known what they would have been to
        untold = replace(new, scores=(replace(new.scores[0], n_missing=lost + 1),))
        assert NOT_TOLD in hn.gate(untold, full, each=True).sentence
    lacking = np.ones((6, 10))
    lacking[0, :7] = np.nan
    old = hn.Run("b", "b", "array", scores=(hn.as_scores(lacking, task="suite", higher_is_better=True),))
    nine = suite("a", [0, *[10] * 5])
    assert hn.gate(nine, suite("b", [4, *[10] * 5]), each=True).passed
    worse = old.scores[0].values.copy()
    worse[0, 7:9] = 0
    assert (
        hn.gate(nine, replace(old, scores=(replace(old.scores[0], values=worse),)), each=True).outcome == "cannot judge"
    )


def test_baselines_of_two_versions_are_not_pooled() -> None:
    a, b, c = (suite(name, np.full(6, 10), version=version) for name, version in (("a", "1"), ("b", "1"), ("c", "2")))
    for gate in (hn.gate(a, [b, c], each=True), hn.gate(a, [b, c])):
        assert gate.outcome == "cannot judge"
        assert "the baseline runs have the versions 1 and 2" in gate.sentence


def test_equal_answers_that_are_scored_differently_are_not_judged(tmp_path: Path) -> None:
    for name, bad in (("new", True), ("old", False)):
        rows = [
            f"Question number {i} is what?,answer {i},answer {i},{int(not (bad and i == 0))},{k}"
            for i in range(6)
            for k in range(6)
        ]
        (tmp_path / f"{name}.csv").write_text("question,gold,response,correct,repeat\n" + "\n".join(rows) + "\n")
    new, old = tmp_path / "new.csv", tmp_path / "old.csv"
    assert hn.gate(new, old).outcome == "cannot judge"
    gate = hn.gate(new, old, each=True)
    assert gate.outcome == "cannot judge"
    assert "scored_differently" in gate.sentence
    with pytest.raises(hn.InputError, match="does not use `cluster='none'`: leave it out"):
        hn.gate(new, old, each=True, cluster="none")


@pytest.mark.parametrize(
    "choice",
    [{"adjust": "none"}, {"chance": 0.25}, {"repeats_are": "runs"}, {"unpaired": True}, {"questions_are": "fixed"},
     {"se": "cr3"}, {"weights": "size"}, {"interval": "t"}, {"test": "sign"}, {"seed": 3}],
)  # fmt: skip
def test_what_changes_nothing_is_refused(choice: dict[str, object]) -> None:
    a = suite("a", np.full(6, 10))
    with pytest.raises(hn.InputError, match="the test of each question does not use `"):
        hn.gate(a, a, each=True, **choice)  # type: ignore[arg-type]
    assert hn.gate(a, a, each=True, level=0.9, range=(0.0, 1.0), margin=0).passed


def test_junit_has_a_case_for_each_question(tmp_path: Path) -> None:
    for name, bad in (("new", 3), ("old", -1)):
        rows = [f"t{i},{int(i != bad)},{k}" for i in range(40) for k in range(10)]
        (tmp_path / f"{name}.csv").write_text("question,score,repeat\n" + "\n".join(rows) + "\n")
    new, old, page = (str(tmp_path / name) for name in ("new.csv", "old.csv", "gate.xml"))
    assert main(["gate", new, "--against", old, "--each", "--junit", page]) == 1
    cases = ElementTree.parse(page).getroot()
    assert len(cases.findall("testcase")) == 41
    assert [case.get("name") for case in cases if case.find("failure") is not None] == ["gate", "table score t3"]


def test_copies_of_one_answer_are_not_several() -> None:
    """At temperature 0 ten answers are one: 10 of 10 to none of 10 is the change of a single answer."""
    old, new = np.repeat([10, 0, 10], [30, 5, 5]), np.repeat([10, 0, 0], [30, 5, 5])
    a, b = suite("new", new), suite("old", old)
    gate = hn.gate(a, b, each=True)
    assert gate.failed
    assert any("score alike in A and in B: if they are copies" in note for note in noted(gate))
    known = hn.gate(suite("new", new, diagnostics=("identical_repeats",)), b, each=True)
    assert known.outcome == "cannot judge"
    assert "are the same text in one of the runs" in known.sentence
    assert not any(
        "copies" in note for note in noted(hn.gate(suite("new", [0, 5, 9]), suite("old", [9, 9, 9]), each=True))
    )

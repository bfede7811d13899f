"""What a plan says: of clusters, of the theories, of what a replay found."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.extra.plan import report as planning
from harness_noise.report import terminal
from support.notes import noted


def shown(table: hn.Plan, monkeypatch: pytest.MonkeyPatch, width: int = 100, **how: bool) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    return " ".join(terminal.text(table, **how).split())


def run(model: str, p: float, seed: int, n: int = 120, clusters: int = 0) -> hn.Run:
    values = (np.random.default_rng(seed).random((n, 2)) < p).astype(float)
    names = tuple(f"c{i * clusters // n}" for i in range(n)) if clusters else None
    questions = hn.Questions(tuple(f"q{i}" for i in range(n)))
    scores = hn.Scores("t", "acc", "none", questions, values, clusters=names, cluster_spec="c" if clusters else None)
    return hn.Run(model=model, name=model, harness="array", scores=(scores,))


def test_a_plan_without_clusters_says_that_clusters_take_more() -> None:
    said = [
        any("in clusters" in note for note in noted(hn.plan(effect=0.03, **how)))  # type: ignore[arg-type]
        for how in ({"accuracy": 0.7}, {"omega2": 0.1}, {"omega2": 0.1, "design_effect": 2.0})
    ]
    assert said == [True, True, False]
    assert not any("independent" in note for note in noted(hn.plan(effect=0.03, omega2=0.1, cluster_size=5)))


def test_each_theory_sees_what_its_variance_sees_with_the_plans_questions() -> None:
    found = hn.plan(effect=0.02, accuracy=0.7)
    for row in found.theory:
        assert row.mde == pytest.approx(hn.plan(n=found.n_questions, omega2=row.variance).mde, rel=1e-6)
        assert row.n_questions == hn.plan(effect=0.02, omega2=row.variance).n_questions
    (table,) = (section for section in planning.summarise(found).sections if section.title == "Without data")
    assert [column.hint for column in table.columns[2:]] == [
        "that it takes by this theory to find 2.00 points",
        f"smallest true difference found by this theory with {found.n_questions:,} questions",
    ]


def test_the_design_effect_says_which_theory_it_leaves_alone() -> None:
    plain, clustered = hn.plan(effect=0.02, accuracy=0.7), hn.plan(effect=0.02, accuracy=0.7, design_effect=2)
    ratio = [b.variance / a.variance for a, b in zip(plain.theory, clustered.theory, strict=True)]
    assert ratio == pytest.approx([2, 1, 2])
    assert any("The Beta theory has no data noise" in note for note in noted(clustered))


def test_many_degrees_of_freedom_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(hn.plan(effect=0.0075, accuracy=0.7), monkeypatch)
    assert "e+0" not in text
    assert re.search(r"t test, \d{1,3}(,\d{3})+ df", text)


@pytest.mark.simulation
def test_a_replay_that_decides_nothing_does_not_call_it_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    found = hn.plan(effect=0.05, runs=[run("a", 0.6, 1), run("b", 0.6, 2)], looks=5)
    text = " ".join(shown(found, monkeypatch).split())
    assert "enough" not in text
    assert found.sequential is not None
    replay = found.sequential.replay
    assert replay is not None
    assert f"… it stopped after a median of {replay.n_median} of {replay.n_total} answers" in text
    assert replay.n_total == 240
    share = sum(replay.decisions.get(word, 0.0) for word in ("not separable", "cannot be decided"))
    assert share > 0.5
    assert f"… without a decision {100 * share:.0f}% of the orders" in text


def test_a_budget_with_one_answer_each_is_as_cautious_as_a_plan() -> None:
    runs = [hn.as_scores(np.random.default_rng(seed).random(80) < 0.6) for seed in range(3)]
    each = [hn.Run(name, name, "array", scores=(part,)) for name, part in zip("abc", runs, strict=True)]
    for row in hn.arena(each, needed=True).budget:
        pair = [run for run in each if run.model in (row.best, row.model)]
        plan = hn.plan(runs=pair, effect=abs(row.diff or 0.0), repeats=1)
        assert row.more_questions == plan.n_questions - 80


def test_a_budget_counts_new_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness_noise.extra.arena.ranks import with_budget

    for clusters in (0, 24):
        found = with_budget(hn.arena([run(name, 0.6, seed, clusters=clusters) for seed, name in enumerate("abc")]))
        row = found.budget[0]
        assert row.more_questions is not None
        text = shown(found, monkeypatch, 200)
        assert (f"{row.more_questions:,} ({round(row.more_questions / 5):,} clusters)" in text) is bool(clusters)


def test_a_plan_answers_at_each_number_of_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = [run("a", 0.6, 1), run("b", 0.5, 2)]
    found = hn.plan(effect=0.05, runs=pair)
    assert [row.repeats for row in found.answers] == [1, 2, 4, 8, 10]
    assert found.pilot_repeats == 2
    for row in found.answers:
        alone = hn.plan(effect=0.05, runs=pair, repeats=row.repeats)
        assert (row.n_questions, row.n_answers) == (alone.n_questions, row.repeats * alone.n_questions)
    text = shown(found, monkeypatch)
    assert f"With 2 answers to each, as in the pilot: {found.answers[1].n_questions:,} questions" in text
    assert "at K" not in shown(hn.plan(effect=0.05, runs=pair, repeats=2), monkeypatch)
    seen = hn.plan(n=300, runs=pair)
    assert len({row.effect for row in seen.answers}) == len(seen.answers)
    assert {row.n_questions for row in seen.answers} == {300}
    assert "detectable" in shown(seen, monkeypatch)


def test_differences_of_right_and_wrong_answers_are_in_points(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = [run("a", 0.6, 1), run("b", 0.55, 3)]
    for table in (
        hn.plan(effect=0.05, runs=pair),
        hn.plan(effect=0.05, accuracy=0.7),
        hn.plan(effect=0.05, runs=pair, looks=3),
    ):
        text = shown(table, monkeypatch)
        assert "a true difference of 5.0 points is found" in text
        assert "0.05" not in text.replace("α = 0.05", "")
        assert "Smallest detectable difference; in points" in shown(table, monkeypatch, details=True)
    once = [replace(one, scores=(replace(one.scores[0], values=one.scores[0].values[:, :1]),)) for one in pair]
    text = shown(hn.plan(n=100, runs=once), monkeypatch, details=True)
    assert re.search(r"With the estimate itself [\d.]+ points would be detected", text)
    halves = [
        replace(one, scores=(replace(one.scores[0], metric="f1", values=one.scores[0].values / 2),)) for one in pair
    ]
    text = shown(hn.plan(effect=0.05, runs=halves), monkeypatch)
    assert "a true difference of 0.050 is found" in text
    assert "points" not in text


def test_no_column_is_all_dashes_and_there_is_one_minus_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = [run("a", 0.6, 1), run("b", 0.55, 3)]
    found = hn.plan(effect=0.05, runs=pair)
    for table in (found, hn.plan(effect=0.05, runs=pair, costs={"question": 1, "answer": 0.1})):
        for section in planning.summarise(table).sections:
            for i, _ in enumerate(section.columns):
                assert {row[i] for row in section.rows} != {"–"}
            assert not any(re.match(r"-\d", cell) for row in section.rows for cell in row)

"""What a person reads first: the verdict in a line, one table, and what its columns mean."""

from __future__ import annotations

import json
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import harness_noise as hn
from harness_noise import Analysis, Comparison
from harness_noise.data.units import Equivalent, number
from harness_noise.extra.arena.figures import pair_title
from harness_noise.extra.stopping.report import stop_section, stopped
from harness_noise.report import columns, terminal
from harness_noise.report.sentences import (
    closing_line,
    closing_lines,
    count_line,
    trade_offs,
    verdict_line,
    verdict_lines,
)
from harness_noise.report.summary import summarise
from harness_noise.results.parts import Sequential
from harness_noise.results.rows import Difference, JudgeCorrection
from harness_noise.stats.decision import adjusted

RNG = np.random.default_rng(3)
P = RNG.beta(0.5, 0.5, (20, 1)).repeat(10, axis=0)
A, B = (RNG.random((200, 5)) < P).astype(float), (RNG.random((200, 5)) < 0.9 * P).astype(float)
CLUSTERS = np.arange(20).repeat(10)


def row(**changes: object) -> Difference:
    known = {"task": "word_problems", "metric": "exact_match", "scorer": "number"}
    known |= {"model_a": "sim-a", "model_b": "sim-b", "cluster": "template"}
    return replace(hn.estimate_difference(A, B, CLUSTERS), **(known | changes))


def shown(table: Analysis | Comparison, width: int, monkeypatch: pytest.MonkeyPatch, **how: Any) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    return terminal.text(table, **how)


def test_a_verdict_is_one_plain_line() -> None:
    same = row(verdict="not separable", diff=0.069, se=0.035, ci_low=-0.003, ci_high=0.141, df=19.0, mde=0.097)
    assert verdict_line(same) == (
        "sim-a is not shown to differ from sim-b: −0.3 to +14.1 points; t test, 19 df; smallest detectable 9.7 points."
    )
    better = replace(same, verdict="A better", ci_low=0.01, p_value=0.031, p_adjusted=0.031)
    assert verdict_line(better) == (
        "sim-a is better than sim-b by 6.9 points: +1.0 to +14.1 points; t test, 19 df, p = 0.031."
    )
    worse = replace(better, verdict="B better", diff=-0.069, ci_low=-0.141, ci_high=-0.01, p_adjusted=0.04)
    assert verdict_line(worse).startswith("sim-a is worse than sim-b by 6.9 points: +1.0 to +14.1 points")
    assert verdict_line(worse).endswith("adjusted p = 0.040.")
    alike = replace(same, verdict=Equivalent(0.02))
    assert verdict_line(alike).startswith(
        "sim-a and sim-b are equivalent within 2 points: +0.8 to +13.0 points (90% interval)"
    )
    assert "equivalent within 1 point:" in verdict_line(replace(same, verdict=Equivalent(0.01)))


def test_an_equivalent_verdict_has_the_margin_that_was_asked_for() -> None:
    """To all its digits, of which the text has six, also after pickling and in an arena's pairs."""
    near = np.where(np.random.default_rng(1).random(A.shape) < 0.1, 1 - A, A)
    row = hn.estimate_difference(A, near, margin=2 / 3)
    assert (row.verdict, row.verdict.margin) == ("equivalent within 0.666667", 2 / 3)
    again = pickle.loads(pickle.dumps(row)).verdict  # noqa: S301
    assert (again, again.margin, json.dumps(again)) == (row.verdict, 2 / 3, '"equivalent within 0.666667"')
    frames = {
        name: pd.DataFrame({"question": np.repeat(np.arange(200), 5), "repeat": [*range(5)] * 200, "score": x.ravel()})
        for name, x in (("a", A), ("b", near))
    }
    (pair,) = hn.arena(frames, margin=2 / 3).pairs
    assert (pair.verdict, pair.verdict.margin) == (row.verdict, 2 / 3)


@pytest.mark.parametrize(("said", "margin"), [("equivalent within 0.02", 0.02), ("equivalent within 1e-07", 1e-7)])
def test_a_recorded_verdict_knows_its_margin(said: str, margin: float) -> None:
    assert Equivalent.recorded(said) == said
    assert Equivalent.recorded(said).margin == margin


@pytest.mark.parametrize("said", ["A better", "0.02", "equivalent within it", "equivalent within nan", ""])
def test_another_recorded_verdict_is_a_text(said: str) -> None:
    assert type(Equivalent.recorded(said)) is str


def test_a_count_of_equivalent_rows_has_their_units() -> None:
    """As each of the rows says it: 0.02 of an exact match is 2 points, and of a rating it is 0.02."""
    alike = [row(task=f"t{i}", verdict=Equivalent(0.02)) for i in range(13)]
    ratings = [row(task=f"r{i}", metric="rating", verdict=Equivalent(0.02), _zero_one=False) for i in range(2)]
    line = count_line(Comparison({}, (*alike, *ratings, row(verdict="A better"))))
    assert line.startswith("sim-a against sim-b, 16 rows: 1 better, 0 worse, 13 equivalent within 2 points, ")
    assert "2 equivalent within 0.02" in line
    assert pair_title(alike[0]).endswith("; equivalent within 2 points")
    cheaper = row(metric="cost", unit="$", verdict="A better", diff=-0.5, _zero_one=False)
    (both,) = trade_offs(Comparison({}, (row(verdict=Equivalent(0.02)), cheaper)))
    assert "sim-a is equivalent within 2 points, cheaper" in both


def test_a_look_says_the_margin_in_the_units_of_its_estimate() -> None:
    look = Sequential(
        task="t", metric="acc", scorer="none", rule="group-sequential", looks=5, look=2, alpha_spent=0.001, n_asked=40,
        n_total=100, n_answers=80, n_answers_total=200, order_seed=7, decision=Equivalent(0.02), estimate=0.001,
        ci_low=-0.01, ci_high=0.01, estimate_unadjusted=0.001, p_value=0.8,
    )  # fmt: skip
    assert ": equivalent within 2 points. Report these: they allow for the looks" in stopped(look)
    assert "after 80 of 200 answers to 40 of 100 questions" in stopped(look)
    (cells,) = stop_section([look]).rows
    assert {"equivalent within 2 points", "80 of 200 answers"} <= {*cells}
    alone = replace(look, n_answers=None, n_answers_total=None)
    assert "after 40 of 100 questions" in stopped(alone)
    assert "40 of 100" in stop_section([alone]).rows[0]


@pytest.mark.parametrize(
    ("changes", "points"),
    [
        ({"metric": "acc"}, True),
        ({"metric": "score"}, False),
        ({"metric": "acc", "mean_a": 62.5, "mean_b": 50.7}, False),
        ({"metric": "perplexity", "mean_a": 0.9}, False),
    ],
)
def test_where_no_score_is_known_the_name_says_whether_it_is_told_in_points(
    changes: dict[str, object], points: bool
) -> None:
    assert ("points" in verdict_line(row(**changes, _zero_one=None))) is points


@pytest.mark.parametrize("metric", ["score", "acc", "perplexity"])
def test_scores_of_0_and_1_are_told_in_points_whatever_they_are_called(metric: str) -> None:
    assert row()._zero_one
    assert "points" in verdict_line(row(metric=metric))
    halves = hn.estimate_difference(A / 2, B / 2, CLUSTERS)
    assert not halves._zero_one
    assert "points" not in verdict_line(replace(halves, metric="score"))


def test_scores_that_are_all_1_are_on_the_scale_of_those_beside_them() -> None:
    some, ones, zeros = ({"question": range(40), "score": x} for x in (A[:40, 0], np.ones(40), np.zeros(40)))
    frames = [
        pd.DataFrame({**data, "model": name}) for name, data in (("some", some), ("ones", ones), ("zeros", zeros))
    ]
    assert not hn.analyze(frames[1]).estimates[0]._zero_one  # may be a count
    assert hn.analyze(frames[1]).estimates[0].ci_low is None
    row = hn.analyze(frames[:2]).estimates[1]
    assert row._zero_one
    assert row.ci_low == pytest.approx(40 / (40 + stats.t.ppf(0.975, 39) ** 2))  # Wilson, all right
    assert "by 100.0 points" in verdict_line(hn.compare(frames[1], frames[2]).comparisons[0])
    assert all(model._zero_one for model in hn.arena(frames).models)
    doubled = frames[0].assign(score=2 * frames[0]["score"])  # 0 and 2: the ones are no share of anything
    assert hn.analyze([doubled, frames[1]]).estimates[1].ci_low is None


def test_lower_is_better_is_said() -> None:
    changes = {"metric": "perplexity", "verdict": "A better", "diff": -0.069, "higher_is_better": False}
    text = verdict_line(row(**changes, _zero_one=False))
    assert "is better than sim-b, where lower is better, by 0.069" in text


def test_a_row_without_an_interval_says_why() -> None:
    lone = replace(hn.estimate_difference([1.0], [0.0]), task="t", metric="acc", model_a="x", model_b="y")
    text = verdict_line(lone)
    assert "whether x and y differ" in text
    assert "fewer than two questions" in text
    assert "What to do: run more questions." in text


def many(n: int, *, better: int) -> Comparison:
    """n rows, of which the first are clearly better."""
    rows = [row(task=f"t{i:02}", p_value=1e-6 if i < better else 0.5) for i in range(n)]
    p = adjusted(np.array([item.p_value for item in rows]), "holm")
    rows = [
        replace(item, p_adjusted=float(q), verdict="A better" if q < 0.05 else "not separable")
        for item, q in zip(rows, p, strict=True)
    ]
    return Comparison({"adjust": "holm"}, tuple(rows))


def test_of_many_rows_a_count_comes_first_and_the_rest_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    table = many(57, better=3)
    lines = verdict_lines(table)
    assert lines[0] == "sim-a against sim-b, 57 rows: 3 better, 0 worse, 54 not shown to differ after adjustment."
    assert [line[:3] for line in lines[1:]] == ["t00", "t01", "t02"]
    brief = shown(table, 80, monkeypatch)
    assert "54 more rows" in brief
    assert "t56" not in brief
    assert "t56" in shown(table, 80, monkeypatch, details=True)


def test_groups_are_never_among_the_rest() -> None:
    table = replace(many(30, better=0), families=("",) * 1 + ("t00",) * 29)
    assert [line[:3] for line in verdict_lines(table)[1:]] == ["t00"]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("rows", [1, 2, 8])
def test_it_is_one_table_that_fits(width: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mean = replace(hn.estimate(A, CLUSTERS), task="word_problems", metric="exact_match", scorer="number", cluster="c")
    means = tuple(replace(mean, task=f"word_problems_{i}", model="m") for i in range(rows))
    for table in (Analysis({}, means), many(rows, better=1)):
        text = shown(table, width, monkeypatch, details=rows == 1)
        assert max(map(len, text.splitlines())) <= width
        rules = [line for line in text.splitlines() if set(line.strip()) == {"─"}]
        assert len(rules) == 1
    assert "not shown to differ" in shown(many(8, better=1), width, monkeypatch)  # a verdict is not folded


def test_the_columns_that_are_shown_are_explained_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    table = many(3, better=1)
    text = shown(table, 80, monkeypatch, legend=True)
    for key in ("a", "b", "diff", "ci", "verdict"):
        term = columns.DIFFERENCES[key]
        assert any(line.split() == f"{term.heading} {term.hint}".split() for line in text.splitlines()), key
    assert columns.DIFFERENCES["corr"].hint not in text
    how = "What the columns mean: `legend=True`."
    assert how not in text
    assert how in shown(table, 80, monkeypatch)
    for none in (None, False):
        assert columns.DIFFERENCES["a"].hint not in shown(table, 80, monkeypatch, legend=none)
    assert how not in shown(table, 80, monkeypatch, legend=False)


def test_one_row_is_a_block_of_all_its_columns_and_two_are_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(Comparison({"se": "cr2"}, (row(),)), 80, monkeypatch, details=True)
    for term in columns.DIFFERENCES.values():
        assert term.heading in text or term.optional or term.heading in ("p adj.", "p sign"), term.heading
    lines = text.splitlines()
    assert ["estimator", "CR2"] in [line.split()[i : i + 2] for line in lines for i in range(len(line.split()))]
    assert max(map(len, lines)) <= 80
    assert "Not shown" not in text


def test_what_all_rows_share_stands_above_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = [(np.random.default_rng(i).random((200, 5)) < P).astype(float) for i in range(17)]
    known = {"metric": "acc", "model": "m", "cluster": "c", "diagnostics": ()}
    rows = [replace(hn.estimate(x, CLUSTERS), task=f"subject_{i:02}", **known) for i, x in enumerate(scores)]
    text = shown(Analysis({}, tuple(rows)), 80, monkeypatch)
    title, table = text.split("Task")
    assert " ".join(title.split()) == "acc; interval Wilson, t 19 df, n 200, K 5, G 20, estimator CR2; SE in points"
    assert table.split()[:5] == ["Mean", "95%", "CI", "SE", "SE"]
    details = shown(Analysis({}, tuple(rows)), 80, monkeypatch, details=True)
    assert sum(set(line.strip()) == {"─"} for line in details.splitlines()) == 1  # seventeen rows are one table


def test_colour_says_nothing_that_words_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    table = many(3, better=1)
    coloured = shown(table, 80, monkeypatch, color="always")
    assert "\x1b[" in coloured
    plain = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()]
    assert plain == shown(table, 80, monkeypatch).splitlines()
    monkeypatch.setenv("NO_COLOR", "1")
    for how in ("auto", "never"):
        assert "\x1b[" not in shown(table, 80, monkeypatch, color=how)


def test_the_noise_is_shown_if_it_is_asked_for_at_any_width(monkeypatch: pytest.MonkeyPatch) -> None:
    table = many(3, better=1)
    assert "unpaired" not in shown(table, 160, monkeypatch)
    assert "unpaired" in shown(table, 160, monkeypatch, details=True)
    assert "unpaired" not in shown(table, 120, monkeypatch)
    assert "unpaired" in shown(table, 80, monkeypatch, details=True)


def test_the_page_of_columns_is_made_of_the_words_of_the_screen(root: Path) -> None:
    assert (root / "docs" / "columns.md").read_text(encoding="utf-8") == columns.page()
    for key in ("se", "total", "data", "prediction"):
        term = columns.MEANS[key]
        for name in (term.cell, *(names.partition(", ")[0] for names in columns.NATIVE[key])):  # the limit comes after
            assert f"`{name}`" in columns.page() or f"`<metric>{name}`" in columns.page(), key


def test_the_words_name_fields_that_are_there() -> None:
    for terms, fields in ((columns.MEANS, hn.Estimate), (columns.DIFFERENCES, hn.Difference)):
        for term in terms.values():
            named = term.cell
            assert isinstance(named, str), f"{term.heading}: neither fields nor the one that it shows"
            for name, _, part in (path.partition(".") for path in named.split(", ")):
                assert name in fields.__dataclass_fields__, term.heading
                assert not part or (name == "judge" and part in JudgeCorrection.__dataclass_fields__), term.heading


def test_printing_a_result_reads_like_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    table = Comparison({}, (row(),))
    assert str(table).startswith("sim-a is ")
    assert "95% CI" in str(table)
    assert str(table.comparisons[0]) == str(table)


def test_a_result_forwards_no_field_of_its_rows() -> None:
    table = Comparison({}, (row(),))
    assert table.rows[0].diff is not None
    with pytest.raises(AttributeError, match="diff"):
        _ = table.diff  # type: ignore[attr-defined]


def test_closing_lines_name_the_model_where_there_are_several() -> None:
    means = [replace(hn.estimate(x, CLUSTERS), task="t", metric="acc", model=name) for x, name in ((A, "m"), (B, "n"))]
    assert [line.split()[0] for line in closing_lines(means, "Inspect", lambda _: None)] == ["m", "n"]
    assert closing_lines(means[:1], "Inspect", lambda _: None)[0].startswith("t acc: ")


def test_an_arena_of_few_models_is_a_matrix_of_verdicts() -> None:
    runs = [
        hn.Run(
            name, name, "test", scores=(hn.as_scores((np.random.default_rng(i).random((300, 1)) < p).astype(float)),)
        )
        for i, (name, p) in enumerate((("low", 0.2), ("high", 0.9), ("near", 0.85)))
    ]
    brief, whole = (summarise(hn.arena(runs), brief=brief) for brief in (True, False))
    matrix = next(section for section in whole.sections if "Who is better" in section.title)
    assert [row[0] for row in matrix.rows] == ["1 high", "2 near", "3 low"]
    assert [row[1:] for row in matrix.rows] == [
        ("·", "=", "+", "1 : 1 : 0"), ("=", "·", "+", "1 : 1 : 0"), ("−", "−", "·", "0 : 0 : 2"),
    ]  # fmt: skip
    assert matrix.tones[0, "3"] == "good"
    assert matrix.tones[2, "1"] == "bad"
    assert len([section for section in whole.sections if "Pairs" in section.title]) == 1
    assert [section.title.partition(",")[0] for section in brief.sections] == ["Leaderboard"]


def test_the_closing_line_says_what_the_harness_takes_for_granted() -> None:
    item = replace(
        hn.estimate(A, CLUSTERS), task="word_problems", metric="exact_match", scorer="number", cluster="template",
        mean=0.625, se=0.0641,
    )  # fmt: skip
    assert closing_line(item, "lm-eval", 0.0347) == (
        "word_problems exact_match, number: 62.5% ± 6.4 points (20 clusters of 10, 5 answers each); lm-eval's own "
        "± 3.5 assumes 200 independent questions."
    )
    alone = replace(hn.estimate(A[:, :1]), task="t", metric="acc")
    assert "(200 questions, one answer each)." in closing_line(alone)
    assert "noise is not known" in closing_line(replace(alone, se=None))
    stopped = replace(alone, diagnostics=("stopped_early",))
    assert "one answer each); this does not allow for the early stop." in closing_line(stopped)
    own = alone.se
    assert own is not None
    assert closing_line(alone, "lm-eval", own).endswith("agrees: one answer each, no clusters.")
    assert closing_line(alone, "lm-eval", 2 * own).endswith("assumes 200 independent questions, by its own formula.")


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([1.0] * 71 + [0.0], "wider than ± suggests, as the wrong answers add up to few clusters."),
        ([0.0] * 71 + [1.0], "wider than ± suggests, as the right answers add up to few clusters."),
        ([0.0, 0.3, 0.6] * 24, "."),
    ],
)
def test_the_closing_line_has_the_interval_if_it_is_much_wider(scores: list[float], words: str) -> None:
    line = closing_line(replace(hn.estimate(np.array(scores)[:, None], np.arange(72) // 12), cluster="c"))
    assert line.endswith(words)
    assert (" points, 95% CI [" in line) == ("wider" in line)


@pytest.mark.parametrize("width", [47, 64, 80, 92, 120])
def test_no_line_ends_inside_an_interval(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mean = replace(hn.estimate(A, CLUSTERS), task="word_problems", metric="exact_match", scorer="number", cluster="c")
    permuted = hn.estimate_difference(A, B, CLUSTERS, test="permutation")
    results = [Analysis({}, (mean,)), many(1, better=1), many(3, better=1), Comparison({}, (permuted,))]
    for table in results:
        text = shown(table, width, monkeypatch, details=True)
        assert "[" in text
        assert not re.search(r"\[[^\]]*\n", text)


def test_no_blank_stands_before_a_per_cent_sign(root: Path) -> None:
    pages = [*(root / "docs").rglob("*.md"), *(root / "tests" / "cli" / "golden").iterdir(), root / "README.md"]
    found = [f"{page.name}: {line}" for page in pages for line in page.read_text(encoding="utf-8").splitlines()
             if re.search(r"\d %(?! \d)", line)]  # fmt: skip
    assert found == []


def test_halves_are_rounded_away_from_0_and_large_numbers_keep_their_digits() -> None:
    shown = {
        (100 * 51 / 80, 1): "63.8", (100 * 49 / 80, 1): "61.3", (-100 * 49 / 80, 1): "−61.3", (0.04, 1): "0.0",
        (123456789012345.0, 1): "123456789012345.0", (-0.04, 1): "0.0",
    }  # fmt: skip
    assert {case: number(*case) for case in shown} == shown

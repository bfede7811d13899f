"""The renderers: digits follow the standard error, nothing from a log is obeyed, nothing is cut."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import Analysis, Comparison, estimate, estimate_difference
from harness_noise.cli.commands import in_flags
from harness_noise.report import terminal, text
from harness_noise.report.canvas import name_width, short_name
from harness_noise.report.fmt import decimals, limit, number, p_text
from harness_noise.report.sentences import sentence
from harness_noise.report.summary import summarise
from harness_noise.report.terminal import _prose
from harness_noise.report.text import render as rendered
from support.boards import sliced_board

RNG = np.random.default_rng(3)
P = RNG.beta(0.5, 0.5, (20, 1)).repeat(10, axis=0)
A = (RNG.random((200, 5)) < P).astype(float)
B = (RNG.random((200, 5)) < 0.7 * P).astype(float)
CLUSTERS = np.arange(20).repeat(10)
HOSTILE = "<script>alert(1)</script> | `x` _y_ \\ & 100% \x1b[31m \u202eabc"


def analysis(**changes: object) -> Analysis:
    rows = (estimate(A, CLUSTERS), estimate(A[:, :1]))
    return Analysis({"adjust": "holm"}, tuple(replace(row, **{"task": "t", "model": "m"} | changes) for row in rows))


def comparison(**changes: object) -> Comparison:
    row = replace(estimate_difference(A, B, CLUSTERS), **{"task": "t"} | changes)
    return Comparison({"adjust": "holm"}, (row,))


@pytest.mark.parametrize(
    ("se", "expected"),
    [(0.0274, 3), (0.274, 2), (2.74, 1), (27.4, 1), (0.00274, 4), (1e-12, 6), (1e-17, 3), (None, 3), (0.0, 3)],
)
def test_digits_follow_the_standard_error(se: float | None, expected: int) -> None:
    assert decimals(se) == expected


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.58, "0.580"), (0.05, "0.050"), (-0.25, "−0.250"), (1.0, "1.000"), (0.0034, "0.0034"), (52.25, "52.25")],
)
def test_a_number_without_a_standard_error_has_three_decimals(value: float, shown: str) -> None:
    assert number(value, decimals(None, value)) == shown


def test_numbers_have_a_true_minus_and_no_negative_zero() -> None:
    assert number(-0.25, 2) == "−0.25"
    assert number(-0.0001, 2) == "0.00"
    assert number(None, 2) == "–"
    assert number(-1.1e-17, decimals(None, -1.1e-17)) == "0.000"  # wins and losses that cancel
    assert number(3e-9, decimals(None, 3e-9)) == "3.00e−09"


@pytest.mark.parametrize(
    ("value", "bound", "shown"),
    [
        (0.0004, 0.0, "0.0004"),
        (-0.0004, 0.0, "−0.0004"),
        (0.0196, 0.02, "0.0196"),
        (0.0206, 0.02, "0.021"),
        (0.02, 0.02, "0.020"),
    ],
)
def test_a_limit_shows_on_which_side_of_its_bound_it_lies(value: float, bound: float, shown: str) -> None:
    assert limit(value, 3, bound) == shown


def test_no_percentage_and_no_p_is_broken_at_the_end_of_a_line() -> None:
    said = "it lowers the variance by 30% and is better: t test, 9 df, p < 0.0001 (or p = 0.03)"
    for width in range(12, 60):
        lines = _prose(said, width).split("\n")
        assert " ".join(lines) == said
        assert not any(line.startswith(("%", "<", "=", "0.0")) for line in lines)


def test_a_name_of_wide_letters_is_shortened_more() -> None:
    assert short_name("a" * 30) == f"{'a' * 7}…{'a' * 13}"
    assert short_name("model-of-this-company-1") == "model-of-this-company-1"
    for name in ("M" * 23, "模" * 23, "mwmw" * 6):
        assert short_name(name).count("…") == 1
        assert name_width([name]) <= 168
        assert len(short_name(name)) * 12 <= 168


def test_large_counts_have_separators() -> None:
    row = replace(comparison().comparisons[0], n_questions=12345, n_clusters=1234, repeats_a=2, repeats_b=2)
    assert "n = 12,345 questions in 1,234 clusters" in sentence(row)
    assert "| 12,345 | 2 | 1,234 |" in rendered(Comparison({}, (row,)), "markdown")


def test_csv_has_the_columns_of_a_frame() -> None:
    """Missing answers by cause are a column each, where there are any; what cannot be estimated is empty."""
    table = analysis(missing={"limit": 2, "refused": 1})
    rows = list(csv.DictReader(io.StringIO(rendered(table, "csv"))))
    assert [(row["missing_limit"], row["missing_refused"], row["se_data"] == "") for row in rows] == [
        ("2", "1", False), ("2", "1", True),
    ]  # fmt: skip
    assert list(rows[0]) == list(table.to_frame())
    known = rendered(analysis(), "csv").partition("\n")[0].split(",")
    assert [name for name in known if name.startswith("missing")] == []


@pytest.mark.parametrize(("p", "shown"), [(0.05, "0.050"), (0.00042, "0.0004"), (1e-9, "< 0.0001"), (None, "–")])
def test_p_values(p: float | None, shown: str) -> None:
    assert p_text(p) == shown


def test_what_is_not_identified_is_a_dash_and_a_note() -> None:
    summary = summarise(analysis())
    headings = [column.heading for column in summary.sections[0].columns]
    second = dict(zip(headings, summary.sections[0].rows[1], strict=True))
    assert second["data"] == second["prediction"] == "–"
    assert [one.code for one in summary.legend] == ["single_repeat"]
    assert second[""] == summary.legend[0].mark


def test_columns_that_say_nothing_are_left_out() -> None:
    plain = Analysis({}, (replace(estimate(A), task="t"),))
    headings = [column.heading for column in summarise(plain).sections[0].columns]
    assert not {"G", "deff", "Model", "missing"} & set(headings)
    clustered = [column.heading for column in summarise(analysis()).sections[0].columns]
    assert {"G", "deff"} <= set(clustered)


def test_the_sentence_of_a_mean_has_all_a_paper_needs() -> None:
    words = sentence(analysis().estimates[0])
    for part in ("m scores ", "±", "CR2", "n = 200 questions in 20 clusters", "5 answers each", "95% CI ["):
        assert part in words


def test_the_sentence_of_pass_at_k_does_not_count_answers() -> None:
    item = replace(analysis().estimates[0], repeats_min=1, repeats_max=1, diagnostics=("uses_all_repeats",))
    assert "one value each of all its answers" in sentence(item)
    assert "one answer each" in sentence(replace(item, diagnostics=()))


def test_the_sentence_of_a_difference_names_the_winner() -> None:
    better = sentence(comparison(model_a="new", model_b="old").comparisons[0])
    assert better.endswith("new is better.")
    assert "paired, clustered" in better
    same = sentence(comparison(verdict="not separable").comparisons[0])
    assert re.search(
        r": not shown to differ \(smallest difference detectable with 80% power: \d+\.\d+ points\)\.$", same
    )


@pytest.mark.parametrize("form", ["table", "markdown", "latex"])
def test_hostile_names_are_shown_not_obeyed(form: str) -> None:
    for table in (analysis(task=HOSTILE, model=HOSTILE), comparison(task=HOSTILE, model_a=HOSTILE)):
        out = rendered(table, form)
        assert "\x1b" not in out
        if form == "markdown":
            assert "<script>" not in out
            assert "\\|" in out
        if form == "latex":
            assert "100\\%" in out
            assert "\\textbackslash{}" in out
        if form == "table":
            assert "\u202e" not in out


def test_a_markdown_table_has_as_many_cells_in_every_row() -> None:
    lines = [line for line in text.markdown(analysis(task="a|b")).splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1


def test_markdown_shows_the_brackets_of_every_interval_and_makes_no_link_of_a_name() -> None:
    row = analysis().estimates[0]
    interval = f"[{100 * row.ci_low:.1f}%, {100 * row.ci_high:.1f}%]"
    out = text.markdown(analysis(task="[a](b) [1](c) [2][d] [ ]"))
    assert f"| {interval} |" in out
    assert f"95% CI {interval}" in out
    assert r"\[a\](b) \[1\](c) \[2\]\[d\] \[ \]" in out


def test_latex_is_a_tabular_with_as_many_columns_as_cells() -> None:
    out = text.latex(comparison())
    assert out.count("\\begin{tabular}") == out.count("\\end{tabular}") == 1
    columns = re.search(r"begin\{tabular\}\{@\{\}([lr]+)@\{\}\}", out)[1]
    row = next(line for line in out.splitlines() if line.endswith("\\\\"))
    assert row.count(" & ") == len(columns) - 1


def test_the_terminal_never_cuts_a_number() -> None:
    out = terminal.text(comparison(task="a-rather-long-task-name-" * 4))
    row = comparison().comparisons[0]
    digits = decimals(row.se) - 2
    diff, low, high = (number(100 * (x or 0.0), digits) for x in (row.diff, row.ci_low, row.ci_high))
    assert diff in out
    assert f"[{low}, {high}]" in out


@pytest.mark.parametrize("width", [50, 80, 100, 200])
def test_with_details_no_cell_is_lost_however_narrow(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    table = comparison(task="word_problems")
    out = terminal.text(table, details=True)
    assert max(map(len, out.splitlines())) <= width
    words = set(out.split())
    for section in summarise(table).sections:
        for column, cell in zip(section.columns, section.rows[0], strict=True):
            assert column.text or set(f"{column.heading} {cell}".split()) <= words


@pytest.mark.parametrize("width", [50, 72, 100, 140])
def test_with_details_no_number_of_many_rows_is_lost_however_narrow(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    runs = sliced_board(5)
    long = [replace(run, model=f"organisation/model-{i}-instruct-7b") for i, run in enumerate(runs)]
    compared = hn.compare(long[:4], against=long[4], questions=3, by=["kind"])
    for table in (compared, hn.arena(runs), hn.analyze(long, by=["kind"])):
        out = terminal.text(table, details=True)
        assert max(map(len, out.splitlines())) <= width
        words = set(re.split(r"[\s,;]+", out)) | set(out.split())  # what all rows share stands above, with commas
        for section in summarise(table).sections:
            cells = [row[i] for i, column in enumerate(section.columns) if not column.text for row in section.rows]
            assert {word for cell in cells for word in cell.split()} - {"–"} <= words


def test_an_empty_analysis_renders() -> None:
    for form in ("table", "json", "csv", "markdown", "latex", "sentence"):
        for empty in (Analysis({}, ()), Comparison({}, ())):
            text = rendered(empty, form)
            assert text == "" or text.endswith("\n")
            assert not re.search(r"\b(nan|None)\b", text)


def test_a_metric_on_a_small_scale_is_not_shown_as_zero() -> None:
    rng = np.random.default_rng(11)
    a, b = rng.random(30) * 1e-6, rng.random(30) * 1e-6 + 1e-6
    words = sentence(hn.estimate_difference(a, b))
    assert "0.000000" not in words
    assert re.search(r"= −\d\.\d\de−0[67] ± \d\.\d\de−0\d ", words)
    assert number(0.0, 6) == "0.000000"
    assert (number(-0.25, 6), number(-0.00012, 6)) == ("−0.250000", "−0.000120")


def test_python_reads_parameters_where_the_command_line_reads_flags() -> None:
    rng = np.random.default_rng(0)
    found = hn.compare(
        hn.Run("a", "a", "test", scores=(hn.as_scores(rng.random((30, 1)) < 0.6),)),
        hn.Run("b", "b", "test", scores=(hn.as_scores(rng.random((30, 1)) < 0.5),)),
        unpaired=True,
    )
    assert "without `unpaired`" in hn.render(found, details=True)
    assert "without --unpaired" in hn.render(found, words=in_flags, details=True)

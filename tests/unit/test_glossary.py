"""One glossary says what every column means, on the screen, on pages and in the docs."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import extras
from harness_noise.cli import main
from harness_noise.extra.glossary.__main__ import page
from harness_noise.extra.glossary.figures import sentence
from harness_noise.extra.glossary.terms import all_terms, by_every_name, find
from harness_noise.report import columns
from harness_noise.results.diagnostics import DIAGNOSTICS

SHOWN = {"Column", "TextColumn", "some", "spread", "limit"}
"""What makes a column; the heading comes first."""
MADE = {"mean", "A − B", "95% assured"}
"""Headings that the code puts into variables."""


def headings_in_code() -> set[str]:
    """Return the headings of all columns, a number in them as 95%."""
    found = set()
    for path in Path(hn.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and node.args):
                continue
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            match node.args[0]:
                case ast.Constant(str(text)) if called in SHOWN:
                    found.add(text)
                case ast.JoinedStr(values=parts) if called in SHOWN:
                    text = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in parts)
                    found.add(text.replace("pass{}{}", "pass@4").replace("K = {}", "K = 3").replace("{}", "95%"))
    return found


def runs(folder: Path) -> list[str]:
    out = []
    for name, step in (("new", 3), ("old", 2)):
        rows = [f"q{i},{int((i // 5 + i * i) % 5 < step)},{i // 5}" for i in range(60)]
        (folder / f"{name}.csv").write_text("question,score,cluster\n" + "\n".join(rows) + "\n")
        out.append(str(folder / f"{name}.csv"))
    return out


def test_every_column_of_a_page_or_a_terminal_has_an_entry() -> None:
    headings = headings_in_code() | MADE
    assert len(headings) > 120
    assert {heading for heading in headings if find(heading) is None and heading} == set()
    for field in {name for each in (columns.MEANS, columns.DIFFERENCES) for item in each.values() for name in
                  (item.cell.split(", ") if isinstance(item.cell, str) else ())}:  # fmt: skip
        assert find(field) is not None, field


def test_a_name_means_one_thing_and_every_diagnostic_is_a_term() -> None:
    known = [(term.name, name) for term in all_terms().values() for name in {each.lower() for each in term.names}]
    columns_of = [name for _, name in known]
    twice = {name for name in columns_of if columns_of.count(name) > 1}
    # the word for a judge's gain and the like is a term of its own; its column and its field name the same thing
    assert {name for name in twice if by_every_name()[name].name.lower() != name} == set()
    assert list(all_terms()) == sorted(all_terms(), key=str.lower)
    for code in list(DIAGNOSTICS):
        assert find(code) is not None


def test_the_page_is_made_of_the_glossary_and_its_links_are_pages(root: Path) -> None:
    assert (root / "docs" / "glossary.md").read_text(encoding="utf-8") == page()
    for term in all_terms().values():
        assert (root / "docs" / f"{term.page}.md").is_file(), term.name


def test_a_term_is_told_with_the_numbers_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new, old = runs(tmp_path)
    row, difference = hn.analyze(new).rows[0], hn.compare(new, old).rows[0]
    assert main(["what", "deff", new, "-q"]) == 0
    out = capsys.readouterr().out
    worth = row.n_questions / row.design_effect
    assert f"60 questions in 12 clusters count like {worth:.0f} (60 / {row.design_effect:.2f})" in out
    assert hn.what("design effect", new).figures == hn.what("design_effect", new).figures
    (said,) = hn.what("mde", new, old).figures
    assert f"{100 * difference.mde:.1f} points would be found in 80 of 100" in said[1]
    (said,) = hn.what("correlation", new, old).figures
    assert said[1] == f"corr. {difference.correlation:.2f}"


def test_a_row_tells_every_number_that_it_has(tmp_path: Path) -> None:
    """A term with a field of JSON that a row has is not said to have no number, and its unit stands behind it."""
    new, old = runs(tmp_path)
    row, difference = hn.analyze(new).rows[0], hn.compare(new, old).rows[0]
    silent = {
        "fixed questions",
        "measure",
        "run",
        "task",
        "smallest detectable difference",
    }  # no number, or not a mean's
    for each in (row, difference):
        fields = {name for name, value in each.to_dict().items() if value not in (None, [])}
        for term in all_terms().values():
            if fields.intersection(term.fields) and term.name not in silent:
                assert sentence(term, each), (type(each), term.name)
    assert sentence(find("mean"), row) == f"{100 * row.mean:.1f}%."
    assert sentence(find("mean"), difference) == f"A {100 * difference.mean_a:.1f}%, B {100 * difference.mean_b:.1f}%."
    assert sentence(find("difference"), difference) == f"A − B is {100 * difference.diff:.1f} points."
    assert sentence(find("df"), row) == f"{row.df:.0f} degrees of freedom."
    assert sentence(find("mde"), difference)
    repeated = hn.estimate((np.random.default_rng(2).random((40, 3)) < 0.5).astype(float))
    gap = f"differ by less than {100 * repeated.gap_of_runs:.1f} points in 95% of cases"
    assert gap in sentence(find("gap_of_runs"), repeated)


def test_noise_that_is_not_seen_is_not_said_to_be_none() -> None:
    """A data variance below 0 is no data noise of 0: its limit is told, and what it leaves to the answers."""
    answers = (np.random.default_rng(1).random((40, 3)) < 0.5).astype(float)
    row = hn.estimate(answers)
    assert row.var_data < 0
    assert row.se_data_upper is not None
    upper, both = row.se_data_upper, row.se_prediction**2
    least = int(100 * both / (both + upper**2))
    said = sentence(find("prediction noise"), row)
    assert said.startswith(f"more than {least}% of the variance with one answer per question. Two runs of")
    assert f"to less than {np.ceil(1000 * upper) / 10:.1f} points at best" in sentence(find("data noise"), row)
    known = hn.estimate(np.where(np.arange(40)[:, None] < 20, 1.0, answers))
    share = 100 * known.var_prediction / (known.var_prediction + known.var_data)
    assert sentence(find("prediction noise"), known).startswith(f"{share:.0f}% of")


def test_unequal_and_unpaired_answers_are_told_as_they_are() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.random((2, 40, 3)) < 0.5).astype(float)
    b[::2, 1:] = np.nan
    assert sentence(find("answer"), hn.estimate(b)) == "40 questions, 1–3 answers each."
    runs = [hn.Run(name, name, "array", scores=(hn.as_scores(x),)) for name, x in (("a", a), ("b", b))]
    told = "40 questions, up to 3 answers each."
    assert sentence(find("answer"), hn.compare(*runs).rows[0]) == told
    assert "pairing is worth" in sentence(find("paired"), hn.compare(*runs).rows[0])
    assert sentence(find("paired"), hn.compare(*runs, unpaired=True).rows[0]) == ""


def test_a_run_without_the_number_says_what_has_it(tmp_path: Path) -> None:
    new, _ = runs(tmp_path)
    assert "Two runs may have it" in hn.what("p", new).remark
    assert hn.what("ranks", new).remark == "`harness-noise arena` shows it."
    assert hn.what("few_flips", new).remark == "No row of these runs has it."
    code = hn.analyze(new).rows[0].diagnostics[0]
    assert hn.what(code, new).figures[0][1] == "this row has it."


def test_the_command_lists_the_terms_and_proposes_the_nearest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["what"]) == 0
    listed = [re.split(r"\s{2,}", line)[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == list(hn.terms())
    assert main(["what", "clsuter"]) == 2
    assert "the nearest are cluster" in capsys.readouterr().err
    assert main(["what", runs(tmp_path)[0]]) == 2
    assert "name a term before it" in capsys.readouterr().err
    assert main(["what", "design", "effect", "no-such-file"]) == 2
    assert "no-such-file" in capsys.readouterr().err


def test_pages_explain_columns_and_cells_by_the_glossary(tmp_path: Path) -> None:
    new, old = runs(tmp_path)
    (written,) = hn.write_html(hn.compare(new, old), tmp_path / "page.html")
    text = written.read_text(encoding="utf-8")
    assert "design effect: How many times clusters inflate the variance." in text
    assert re.search(r'title="60 questions in 12 clusters count like \d+ \(60 / [\d.]+\)\."', text)


@pytest.mark.parametrize(("n", "K"), [(1, 1), (2, 1), (12, 1), (12, 3)])
@pytest.mark.parametrize("kind", ["equal", "all right", "no score in common"])
def test_every_term_is_told_of_rows_without_noise(kind: str, n: int, K: int) -> None:
    """A row may have no standard error, or 0, and no term may fail on it."""
    a = np.ones((n, K)) if kind == "all right" else np.tile((np.arange(n) % 2.0)[:, None], K)
    b = np.full((n, K), np.nan) if kind == "no score in common" else a
    b = np.where(np.arange(n)[:, None] == 0, a, b)
    rows = [hn.estimate(a), hn.estimate_difference(a, b)]
    assert all(isinstance(sentence(term, row), str) for term in all_terms().values() for row in rows)
    assert sentence(find("paired"), rows[1]) == ""


def test_pages_do_without_the_glossary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new, old = runs(tmp_path)
    monkeypatch.setattr(extras, "found", dict)
    (written,) = hn.write_html(hn.compare(new, old), tmp_path / "page.html")
    text = written.read_text(encoding="utf-8")
    assert "How many times clusters inflate the variance" not in text
    assert 'title="standard error of A − B"' in text


@pytest.mark.parametrize(
    ("word", "name"), [("sequential", "sequential test"), ("plain", "plain estimate"), ("boundary", "boundary")]
)
def test_the_words_of_a_stopped_run_are_terms(word: str, name: str) -> None:
    found = hn.what(word)
    assert (found.term, "look" in found.definition) == (name, True)


def test_names_in_the_results_of_lm_eval_are_known() -> None:
    for name in ("acc_avg_ci_low_stderr", "exact_match_avg_ci_high_stderr,strict-match"):
        said = hn.what(name).definition
        assert "end of the confidence interval" in said
        assert "not a standard error" in said
        assert "ends in _stderr" in said
    for name, term in (
        ("acc_norm_total_stderr,none", "SE (1 answer)"),
        ("acc_data_stderr", "data noise"),
        ("acc_data_upper_stderr", "data noise"),
        ("acc_prediction_stderr", "prediction noise"),
        ("acc_avg_clustered_stderr", "standard error"),
        ("acc_avg_stderr", "standard error"),
    ):
        assert hn.what(name).term == term, name

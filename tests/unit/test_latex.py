"""LaTeX for a paper: complete tables, which compile whatever the names in a log hold."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import Analysis, Comparison
from harness_noise.data.clusters import Fields
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores
from harness_noise.data.units import Equivalent
from harness_noise.report.latex import escaped, render
from harness_noise.report.text import render as rendered

RNG = np.random.default_rng(3)
A, B = (RNG.random((2, 60, 3)) < 0.6).astype(float)
CLUSTERS = np.arange(60) // 6
HOSTILE = r"\input{x} 100% a_b {c} $d$ #e & ~ ^ [f] *g* é ø ł 模型 🙂 | `h` “i” < > \\"


def analysis(**changes: object) -> Analysis:
    known = {"task": "t", "metric": "acc", "model": "m", "cluster": "passage"}
    row = replace(hn.estimate(A, CLUSTERS), **known | changes)
    return Analysis({"adjust": "holm"}, (row, replace(row, task="u")))


def comparison(**changes: object) -> Comparison:
    known = {"task": "t", "metric": "acc", "model_a": "new", "model_b": "old", "cluster": "passage"}
    row = replace(hn.estimate_difference(A, B, CLUSTERS), **known | changes)
    return Comparison({"adjust": "holm"}, (row, replace(row, task="u")))


def plain_tex(text: str) -> str:
    """The text without what is escaped, and without accents."""
    return re.sub(r"""\\[\\&%$#_{}^'"`~=.]""", "", text)


def check(text: str) -> None:
    """Environments and braces are closed, every row has as many cells as columns, and nothing special is loose."""
    for name in ("table", "tabular"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") >= 1
    loose = plain_tex(text)
    assert loose.count("{") == loose.count("}")
    assert loose.count("$") % 2 == 0
    for line in loose.splitlines()[1:]:
        outside = re.sub(r"\$[^$]*\$", "", line)
        assert not set("%#^_~") & set(outside), line
    columns = [len(found) for found in re.findall(r"begin\{tabular\}\{@\{\}([lr]+)@\{\}\}", text)]
    bodies = re.findall(r"\\toprule(.*?)\\bottomrule", text, re.S)
    for n, body in zip(columns, bodies, strict=True):
        rows = [line for line in body.splitlines() if line.endswith(r" \\")]
        assert rows
        assert {plain_tex(line).count("&") for line in rows} == {n - 1}
        assert all(not line.lstrip().startswith(("[", "*")) for line in rows)  # an argument of \\ or \midrule


@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.parametrize("details", [False, True])
def test_it_is_a_complete_table(hostile: bool, details: bool) -> None:
    names = {"task": HOSTILE, "cluster": HOSTILE} if hostile else {}
    for table in (analysis(**names), comparison(**names)):
        text = render(table, details=details)
        check(text)
        assert text.count(r"\caption{") == text.count(r"\label{tab:") == text.count(r"\begin{table}")


def test_the_caption_names_the_error_and_the_test() -> None:
    text = render(comparison())
    (caption,) = re.findall(r"\\caption\{(.*)\}", text)
    assert "new (A) against old (B). A − B, paired by question" in caption.replace("$-$", "−")
    assert r"$\pm$ is the standard error of the difference (clustered by passage" in caption
    assert re.search(r"95\\% confidence interval; p: two-sided \(t\); p adj.: Holm.*; test t, [\d.]+ df", caption)
    assert "Differences and SE in points. Sample" in caption
    assert f"{comparison().comparisons[0].n_questions} questions" in caption
    row = comparison().comparisons[0]
    assert rf"{100 * row.diff:.1f} $\pm$ {100 * row.se:.1f}".replace("-", "$-$") in text
    assert r"clustered by passage; CR2" in render(analysis())


def test_every_other_result_is_a_table_too() -> None:
    check(render(hn.plan(effect=0.03, accuracy=0.7)))


def test_nothing_of_a_name_is_obeyed() -> None:
    text = escaped(HOSTILE)
    assert r"\input" not in text
    assert r"\'{e} \o{} \l{}" in text
    assert r"\ifdefined\Umathchar 模型\else {[}U+6A21 U+578B{]}\fi{}" in text


@pytest.mark.parametrize("engine", ["pdflatex", "xelatex", "lualatex"])
def test_it_compiles(engine: str, tmp_path: Path) -> None:
    if shutil.which(engine) is None:
        pytest.skip(f"no {engine} on this machine")
    body = render(comparison(task=HOSTILE, model_a=HOSTILE), details=True) + render(analysis(task=HOSTILE))
    document = f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}\n{body}\\end{{document}}\n"
    (tmp_path / "t.tex").write_text(document, encoding="utf-8")
    command = [engine, "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]


def test_one_row_fits_a_page(tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex on this machine")
    names = {"task": "word_problems", "metric": "exact_match", "scorer": "number", "cluster": "template"}
    tables = [replace(comparison(**names), comparisons=comparison(**names).comparisons[:1])]
    tables.append(replace(tables[0], comparisons=(replace(tables[0].comparisons[0], verdict=Equivalent(0.02)),)))
    bodies = [render(table) for table in (*tables, Analysis({}, analysis(**names).estimates[:1]))]
    assert all("Task word\\_problems; metric exact\\_match, number." in body for body in bodies)
    body = "".join(bodies)
    document = f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}\n{body}\\end{{document}}\n"
    (tmp_path / "t.tex").write_text(document, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=True)
    log = (tmp_path / "t.log").read_text(encoding="latin-1")
    assert [float(found) for found in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log) if float(found) > 20] == []


def test_letters_are_explained_below_the_table_that_has_them(tmp_path: Path) -> None:
    rows = [{"question": f"q{i}", "new": i % 3 > 0, "old": i % 2, "kind": f"kind {i // 5}"} for i in range(20)]
    (tmp_path / "a.json").write_text(json.dumps(rows), encoding="utf-8")
    found = hn.compare(tmp_path / "a.json", columns={"models": "new+old"}, by=["kind"], cluster="kind")
    first, slices = render(found).split(r"\end{table}")[:2]
    for one in (first, slices):
        cells = re.findall(r"& ([a-z](?: [a-z])*) \\\\\n", one)
        assert set(re.findall(r"footnotesize ([a-z]): ", one)) == set(" ".join(cells).split())
    assert "fewer than two clusters" in slices
    assert "fewer than two clusters" not in first
    assert "None of 4 slices could be tested" in slices
    assert "could be tested" not in first


def test_sentences_are_one_for_each_row() -> None:
    for table in (analysis(), comparison()):
        lines = rendered(table, "sentence").splitlines()
        assert len(lines) == len(table.rows) == 2
        assert all(line.endswith(".") for line in lines)


def test_sentences_have_their_place_whatever_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count(1)
    monkeypatch.setattr(
        "harness_noise.extra.slices.report.sentences", lambda table: [f"On slices: told for time {next(calls)}."]
    )
    kinds = ["odd", "even"] * 30
    questions = Questions(tuple(map(str, range(60))), "id", fields=Fields({"kind": kinds}, (), ("kind",)))
    a, b = (
        Run(name, name, "array", scores=(Scores("t", "acc", "none", questions, values),))
        for name, values in (("new", A), ("old", B))
    )
    for table in (hn.analyze(a, by="kind"), hn.compare(a, b, by="kind")):
        for details in (False, True):
            first, *rest = render(table, details=details).split(r"\end{table}")
            assert "On slices" not in first
            assert [part.count("On slices") for part in rest if "By slice" in part] == [1]
            assert sum(part.count("On slices") for part in rest) == 1

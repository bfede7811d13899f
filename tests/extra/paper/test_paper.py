"""What a paper needs of a result: files that say what was computed, and only that."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.extra.paper.methods import WORKS, text

FILES = ["table.tex", "sentence.txt", "figure.svg", "methods.md", "result.json"]
SOURCES = Path(__file__).parents[3] / "docs" / "sources.md"


def run(name: str, shift: float = 0.0, repeats: int = 1, tasks: tuple[str, ...] = ("t",)) -> hn.Run:
    scores = []
    for task in tasks:
        rng = np.random.default_rng([*name.encode(), *task.encode()])
        values = (rng.random((60, repeats)) < 0.4 + shift).astype(float)
        questions = hn.Questions(tuple(f"q{i}" for i in range(60)), "id")
        scores.append(hn.Scores(task, "acc", "none", questions, values, bounds=(0.0, 1.0)))
    return hn.Run(name, name, "array", scores=tuple(scores))


def tables(folder: Path) -> None:
    rng = np.random.default_rng(4)
    for name, rate in (("old", 0.5), ("new", 0.7), ("newer", 0.75)):
        rows = [f"{task},{q},{q // 3},{int(rng.random() < rate)}" for task in ("x", "y") for q in range(60)]
        (folder / f"{name}.csv").write_text("\n".join(["task,question,cluster,score", *rows]))


@pytest.mark.parametrize(
    "words",
    [
        "compare new.csv old.csv --margin 2pt --adjust bh",
        "new.csv old.csv --only 'cluster < 10'",
        "analyze new.csv --se cr3 --task x",
        "arena new.csv old.csv newer.csv --test sign",
    ],
)
def test_the_command_in_the_json_makes_the_folder_again(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tables(tmp_path)
    assert main([*shlex.split(words), "--paper", "paper", "--quiet"]) == 0
    first = {path.name: path.read_bytes() for path in (tmp_path / "paper").iterdir()}
    assert sorted(first) == sorted(FILES)
    program, *again = shlex.split(json.loads(first["result.json"])["run"]["command"])
    assert program == "harness-noise"
    for path in (tmp_path / "paper").iterdir():
        path.unlink()
    assert main(again) == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "paper").iterdir()} == first
    capsys.readouterr()
    assert main([*shlex.split(words), "--format", "sentence", "--quiet"]) == 0
    assert capsys.readouterr().out.encode() == first["sentence.txt"]
    assert b"\\begin{tabular}" in first["table.tex"]
    assert first["figure.svg"].startswith(b"<?xml")


def test_python_makes_the_result_again_from_runs_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tables(tmp_path)
    result = hn.compare("new.csv", "old.csv", margin=0.02, se="cr3", cluster="cluster")
    assert [path.name for path in hn.write_paper(result, "paper")] == FILES
    saved = json.loads(Path("paper/result.json").read_text(encoding="utf-8"))
    ran = saved.pop("run")
    assert ran == {"command": None, "runs": ["new.csv", "old.csv"]}
    assert hn.compare(*ran["runs"], settings=hn.Settings(**saved["settings"])).to_dict() == saved


A, B = run("a", 0.2), run("b")
REPEATED = run("a", 0.2, 3), run("b", 0.0, 3)
SEVERAL = run("a", 0.2, 1, ("x", "y")), run("b", 0.0, 1, ("x", "y"))


@pytest.mark.parametrize(
    ("result", "cited", "words"),
    [
        (lambda: hn.analyze(A), "Bell Pustejovsky Wilson", "(Wilson)"),
        (lambda: hn.analyze(A, interval="clopper-pearson"), "Bell Pustejovsky Clopper", "(Clopper–Pearson)"),
        (lambda: hn.analyze(REPEATED[0], se="cr1"), "Wang Wilson", "Each question has 3 answers"),
        (lambda: hn.compare(A, B), "Bell Miller Pustejovsky", "question by question (paired)"),
        (lambda: hn.compare(A, B, unpaired=True), "Bell Pustejovsky", "on different questions (unpaired)"),
        (lambda: hn.compare(*REPEATED), "Bell Miller Pustejovsky Wang", "noise of questions and of answers"),
        (lambda: hn.compare(*SEVERAL), "Bell Holm Miller Pustejovsky", "by Holm's method"),
        (lambda: hn.compare(*SEVERAL, adjust="bh"), "Bell Benjamini Miller Pustejovsky", "false discovery rate"),
        (lambda: hn.compare(*SEVERAL, adjust="none"), "Bell Miller Pustejovsky", "p-values are two-sided"),
        (lambda: hn.compare(A, B, margin=0.02), "Bell Miller Pustejovsky Schuirmann", "less than 2 points"),
        (lambda: hn.compare(A, B, test="wild", seed=1), "Bell Cameron2008 MacKinnon Miller Pustejovsky", "wild"),
        (lambda: hn.compare(A, B, test="permutation"), "Bell Good Miller Pustejovsky", "permutation"),
        (
            lambda: hn.analyze(REPEATED[0], questions_are="fixed"),
            "Wang Wilson",
            "has 3 answers (Wang 2025). The questions",
        ),
        (
            lambda: hn.compare(REPEATED[0], 0.5, answers_b=3),
            "Wang",
            "a published number on the same questions. ± is the",
        ),
        (
            lambda: hn.compare(A, 0.5, n=90),
            "Bell Pustejovsky Wilson",
            "with a published number on 90 other questions. ±",
        ),
        (lambda: hn.compare(0.71, 0.68, profile="gsm8k"), "", "± is the standard error. Confidence"),
        (lambda: hn.compare((30, 60), (20, 60)), "Agresti Fisher", "Fisher's exact test"),
        (lambda: hn.arena([A, B, run("c", 0.1)]), "Bell Hsu Pustejovsky", "★ marks the models"),
    ],
)
def test_the_paragraph_cites_what_was_computed_and_nothing_else(result: Any, cited: str, words: str) -> None:
    said = text(result())
    paragraph, _, listed = said.partition("\n\n## References\n\n")
    assert words in paragraph
    keys = {key for key, work in WORKS.items() if f"- {work}\n" in listed}
    assert keys == set(cited.split())
    assert len(listed.splitlines()) == len(keys)
    for key in keys:
        assert WORKS[key].partition("),")[0].replace("(", "") in paragraph


def test_several_pairs_of_models_and_zeros_are_said(tmp_path: Path) -> None:
    assert text(hn.compare([A, run("c")], against=B)).startswith("We compare pairs of models question by question")
    path = tmp_path / "a.csv"
    path.write_text("question,score\n" + "".join(f"{i},{'' if i < 2 else i % 2}\n" for i in range(40)))
    assert "Answers without a score count as 0." in text(hn.analyze(path, missing="zero"))


def test_a_published_number_is_no_run(tmp_path: Path) -> None:
    hn.write_paper(hn.compare(A, 0.5, n=90), tmp_path)
    assert json.loads((tmp_path / "result.json").read_text())["run"]["runs"] == [A.name]


def test_answers_that_are_all_alike_are_one() -> None:
    part = REPEATED[0].scores[0]
    alike = replace(REPEATED[0], scores=(replace(part, values=np.repeat(part.values[:, :1], 3, axis=1)),))
    assert "identical_repeats" in hn.analyze(alike).rows[0].diagnostics
    assert "Each question has" not in text(hn.analyze(alike))


def test_questions_with_unequal_numbers_of_answers() -> None:
    part = REPEATED[0].scores[0]
    values = part.values.copy()
    values[::2, 1:] = np.nan
    some = replace(REPEATED[0], scores=(replace(part, values=values),))
    assert "Each question has up to 3 answers, so" in text(hn.compare(some, REPEATED[1]))
    assert "Each question has 1–3 answers, so" in text(hn.analyze(some))


def test_clusters_are_named() -> None:
    found = hn.analyze(run("a"))
    (row,) = found.estimates
    said = text(replace(found, estimates=(replace(row, cluster="passage"),)))
    assert "± is the standard error, clustered by passage (CR2) (Bell & McCaffrey 2002; " in said
    assert "Miller 2024" in said


def test_every_work_is_in_the_list_of_sources() -> None:
    listed = SOURCES.read_text(encoding="utf-8")
    for key, work in WORKS.items():
        assert f"| `[{key}]` | {work.partition('),')[0]})" in listed


def test_a_result_without_figure_leaves_no_old_one(tmp_path: Path) -> None:
    hn.write_paper(hn.compare(A, B), tmp_path)
    assert (tmp_path / "figure.svg").exists()
    nothing = hn.analyze(hn.Run("m", "m", "array", scores=()))
    assert [path.name for path in hn.write_paper(nothing, tmp_path)] == [name for name in FILES if name != "figure.svg"]
    assert not (tmp_path / "figure.svg").exists()


def test_other_results_are_refused(tmp_path: Path) -> None:
    with pytest.raises(hn.InputError, match=r"write_paper accepts .* not Plan"):
        hn.write_paper(hn.plan(effect=0.05, accuracy=0.7), tmp_path)


def test_files_of_others_are_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "table.tex").write_text("mine")
    (tmp_path / "figure.svg").write_text("mine")
    for _ in range(2):  # the second time with a result.json of somebody else
        with pytest.raises(hn.InputError, match=r"has table.tex, figure.svg.* already"):
            hn.write_paper(hn.compare(A, B), tmp_path)
        (tmp_path / "result.json").write_text('{"settings": {}}')
    tables(tmp_path)
    assert main(["compare", *(str(tmp_path / f"{name}.csv") for name in ("new", "old")), "--paper", str(tmp_path)]) == 2
    assert "nothing of yours is overwritten" in capsys.readouterr().err
    assert (tmp_path / "table.tex").read_text() == (tmp_path / "figure.svg").read_text() == "mine"
    (tmp_path / "of a paper").mkdir()
    for result in (hn.compare(A, B), hn.compare(B, A)):
        hn.write_paper(result, tmp_path / "of a paper")


def test_python_lists_the_functions_of_extras_too() -> None:
    listed = dir(hn)
    assert {"write_paper", "write_html", "what", "totals"} <= set(listed)
    assert [name for name in listed if not hasattr(hn, name)] == []


def test_a_paper_gives_the_numbers_of_models_and_questions(tmp_path: Path) -> None:
    n = len(A.scores[0].values)
    arena, pair = hn.arena([A, B, run("c", 0.1)]), hn.compare(A, B)
    for result, said in ((arena, f"3 models on {n} questions, one answer each"), (pair, f"{n} questions, one answer")):
        folder = tmp_path / said[:3].strip()
        hn.write_paper(result, folder)
        for name in ("sentence.txt", "methods.md", *(["table.tex"] if result is arena else [])):
            assert said in (folder / name).read_text(encoding="utf-8"), name
    methods = (tmp_path / "3 m" / "methods.md").read_text(encoding="utf-8")
    for other in ("Confidence intervals", "Sets of ranks", "p-values of pairs"):
        assert other not in methods

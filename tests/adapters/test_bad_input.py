"""What is wrong with a file, for every reader: refused alone in one paragraph, a note in a folder, never a number."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness_noise as hn
from harness_noise import InputError
from harness_noise.cli import main
from harness_noise.report import html, text
from support import every_eval_ever_files, harbor_files, helm_files
from support.commands import refused
from support.notes import noted

FILES = Path(__file__).parent / "formats"
MARK, NAME = "MARK", "NAME"
"""What stands for one score, and for a name of the model or the task."""
FORMULA = '=HYPERLINK("x")<script>alert(1)'
"""A name that a file can have, too."""
Written = tuple[Path, Path]
"""What is to be read, and the file that is damaged."""


def preset(name: str, named: str, mark: Callable[[Any], Any]) -> Callable[[Path], Written]:
    """Writes the hand-made file of a format with the marks in it."""

    def write(folder: Path) -> Written:
        path, content = folder / name, (FILES / name).read_text()
        data = [json.loads(line) for line in content.splitlines()] if path.suffix == ".jsonl" else json.loads(content)
        mark(data)
        lines = [json.dumps(row) for row in data] if path.suffix == ".jsonl" else [json.dumps(data)]
        path.write_text("\n".join(lines).replace(named, json.dumps(NAME)[1:-1]))
        return path, path

    return write


def langsmith(folder: Path) -> Written:
    path = folder / "langsmith.csv"
    column = '"feedback.{}"'.format(NAME.replace('"', '""'))
    content = (FILES / "langsmith.csv").read_text().replace("feedback.correctness", column)
    path.write_text(content.replace("False", '"MARK"', 1))
    return path, path


def table(folder: Path) -> Written:
    path = folder / "table.jsonl"
    rows = [{"question": f"q{i}", "model": NAME, "score": MARK if i == 3 else 1.0} for i in range(6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path, path


def harbor(folder: Path) -> Written:
    trials = [harbor_files.trial(f"task-{i}", 0, 1.0, source=NAME) for i in range(4)]
    path = harbor_files.job(folder / "job", trials, mean=1.0) / "task-1__0" / "result.json"
    path.write_text(re.sub(r'"reward": 1\.0', '"reward": "MARK"', path.read_text()))
    return path, path  # the trial alone: in a folder it is one of its job's


def helm(folder: Path) -> Written:
    instances = [helm_files.instance(i, 0, MARK if i == 2 else 1.0) for i in range(4)]
    place = helm_files.run(folder / "run", NAME, per_instance_stats=instances, stats=[])
    return place, place / "per_instance_stats.json"


def every_eval_ever(folder: Path) -> Written:
    samples = [every_eval_ever_files.sample(i, MARK if i == 2 else 1.0, model_id=NAME) for i in range(4)]
    file = every_eval_ever_files.write(folder, samples, [every_eval_ever_files.result("accuracy", 1.0)])
    return file, file.with_name(f"{file.stem}_samples.jsonl")


def swe_bench(folder: Path) -> Written:
    path = folder / NAME / "results" / "per_instance_details.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({f"a__b-{i}": {"resolved": MARK if i == 2 else True} for i in range(4)}))
    return folder / NAME, path


def lmms_eval(folder: Path) -> Written:
    path = folder / f"20250401_120000_samples_{NAME}.jsonl"
    rows = [{"doc_id": i, "target": "4", "doc_hash": f"h{i}", "filtered_resps": ["4"], "input": f"What is {i}?",
             "exact_match": MARK if i == 2 else 1.0} for i in range(4)]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path, path


def lighteval(folder: Path) -> Written:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    path = folder / "details_quiz_2025-01-01T00-00-00.parquet"
    rows = [{"doc": {"id": str(i), "query": f"What is {i}?"}, "metric": {NAME: 1.0}} for i in range(4)]
    parquet.write_table(arrow.Table.from_pylist(rows), path)
    return path, path


def marks(*places: Any) -> Callable[[Any], None]:
    """A function that puts the mark at a path of a document."""

    def mark(data: Any) -> None:
        *outer, last = places
        for place in outer:
            data = data[place]
        data[last] = MARK

    return mark


def first_match(data: Any) -> None:
    next(row for row in data if row.get("type") == "match")["data"]["correct"] = MARK


READERS: dict[str, Callable[[Path], Written]] = {
    "table": table, "Harbor": harbor, "SWE-bench": swe_bench, "Every Eval Ever": every_eval_ever, "HELM": helm,
    "lmms-eval": lmms_eval, "lighteval": lighteval, "LangSmith": langsmith,
    "tau2-bench": preset("tau2_bench.json", "gpt-x", marks("simulations", 1, "reward_info", "reward")),
    "promptfoo": preset("promptfoo.json", "openai:gpt-a", marks("results", "results", 1, "score")),
    "DeepEval": preset("deepeval.json", "gpt-x", marks("testCases", 1, "metricsData", 0, "score")),
    "OpenAI evals": preset("openai_evals.jsonl", "gpt-x", first_match),
    "MLflow": preset("mlflow.json", "exact_match", marks("data", 1, 4)),
    "Braintrust": preset("braintrust.jsonl", "gpt-x", marks(1, "scores", "Exact")),
}  # fmt: skip
GOOD = {"LangSmith": "True", "SWE-bench": "true", "OpenAI evals": "true"}
WORSE = {
    "a word": '"good"', "a number in a text": '"1.0"', "a number to Python alone": '"1_0"',
    "nested nulls": '{"a": {"b": null}}', "a list": "[[1]]", "too many digits": "9" * 1_000_000, "no end": "1e999",
}  # fmt: skip
WHOLE = {
    "cut": lambda content: content[: len(content) * 3 // 5],
    "a pointer": lambda content: "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n",
    "another's": lambda content: '{"unrelated": [{"a": {"b": null}}, 1], "model": null}\n',
    "nothing": lambda content: "",
    "two bytes a letter": lambda content: "\xff\xfe" + "".join(f"{letter}\0" for letter in content),
}
TWICE = "a key twice"
BYTES = ("lighteval",)
"""Readers of files that are no text."""


def written(folder: Path, reader: str, value: str | None = None) -> Written:
    """A run, with this JSON in the place of one of its scores."""
    folder.mkdir(parents=True)
    path, file = READERS[reader](folder)
    if reader not in BYTES:
        content = file.read_text()
        assert content.count(f'"{MARK}"') == 1
        value = GOOD.get(reader, "1.0") if value is None else value
        name = re.search(rf'"(\w+)": "{MARK}"', content) if value == TWICE else None
        twice = f'0.5, "{name[1]}": 0.25' if name else "{}"
        file.write_text(content.replace(f'"{MARK}"', twice if value == TWICE else value))
    return path, file


def damaged(folder: Path, reader: str, what: str) -> Written:
    if what not in WHOLE:
        return written(folder, reader, WORSE.get(what, what))
    path, file = written(folder, reader)
    content = file.read_bytes().decode("latin-1")
    file.write_bytes(WHOLE[what](content).encode("latin-1"))
    return path, file


LEFT_OUT = {
    "table": ("a number in a text",), "LangSmith": ("a number in a text", "a list", TWICE), "MLflow": (TWICE,),
    "lighteval": (*WORSE, TWICE),
}  # fmt: skip
"""In a table the first is a number, in a cell of CSV the second are answers; some have no names beside scores."""
CASES = [
    (reader, what) for reader in READERS for what in (*WHOLE, *WORSE, TWICE) if what not in LEFT_OUT.get(reader, ())
]


@pytest.mark.parametrize("reader", READERS)
def test_the_run_is_read_where_nothing_is_wrong(reader: str, tmp_path: Path) -> None:
    path, _ = written(tmp_path / "good", reader)
    assert any(row.mean is not None for row in hn.analyze(path).estimates)


@pytest.mark.parametrize(("reader", "what"), CASES)
def test_what_cannot_be_read_is_refused_alone_and_a_note_in_a_folder(
    reader: str, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, file = damaged(tmp_path / "runs" / "bad", reader, what)
    if reader == "lmms-eval" and what in WORSE and what != "too many digits":  # lm-eval has metrics that are no means
        assert all(row.mean is None for row in hn.analyze(path).estimates)
        return
    refused(path, capsys, file.name)
    good, _ = written(tmp_path / "runs" / "good", reader)
    found = hn.analyze(tmp_path / "runs")
    rows = [
        [(row.task, row.metric, row.mean, row.n_questions) for row in part.estimates]
        for part in (found, hn.analyze(good))
    ]
    assert set(rows[0]) == set(rows[1]) or reader == "Harbor"
    told = any(file.name in note or file.parent.name in note for note in noted(found))
    assert told or (what == "nothing" and file.suffix == ".json"), noted(found)  # which may be anything


@pytest.mark.parametrize("reader", [reader for reader in READERS if reader not in BYTES])
def test_nan_is_missing_where_a_score_may_be(reader: str, tmp_path: Path) -> None:
    whole, _ = written(tmp_path / "good", reader)
    path, _ = written(tmp_path / "bad", reader, "NaN")

    def missing(path: Path) -> int:
        return sum(part.n_missing for run in hn.read(path) for part in run.scores)

    if reader == "SWE-bench":
        with pytest.raises(InputError, match="does not say whether it is resolved"):
            hn.read(path)
    elif reader == "Harbor":  # a trial alone, of which nothing is left
        assert missing(path) == 1
    else:
        assert missing(path) == missing(whole) + 1


@pytest.mark.parametrize("reader", READERS)
def test_a_name_escapes_neither_a_page_nor_a_spreadsheet(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "NAME", FORMULA)
    path, _ = written(tmp_path / "run", reader)
    analysis = hn.analyze(path)
    assert any(FORMULA in f"{row.model} {row.task} {row.metric}" for row in analysis.estimates)
    assert "<script>alert" not in html.page(analysis)
    cells = [cell for row in csv.reader(io.StringIO(text.csv(analysis))) for cell in row]
    assert not any(cell.startswith("=") for cell in cells)
    assert main(["analyze", str(path)]) == 0


def test_a_refusal_is_short_where_names_are_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """DeepEval's cache calls its lists by whole answers."""
    path = tmp_path / "cache.json"
    for n in (2, 20):
        path.write_text(
            json.dumps({"cases": {f"answer {i} {'and so on. ' * 5000}": {"of": [{"a": 1}]} for i in range(n)}})
        )
        assert len(refused(path, capsys, path.name)) < 1000

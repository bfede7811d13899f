"""What `check_adapter` asks of every adapter holds for those that come with the package, and it sees what does not."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness_noise.data.answers import Answers
from harness_noise.data.questions import Questions
from harness_noise.data.scores import ReadOptions, Run
from harness_noise.errors import InputError
from harness_noise.testing import check_adapter
from harness_noise_adapters.tables import adapter as tables
from support.slow import rest_slow
from support.tables import table

CELLS = [
    (f"q{i}", k, "" if i == k == 1 else (i + k) % 3 / 2, f"c{i // 2}", "ab"[k]) for i in range(8) for k in range(2)
]


def test_tables(csv_file: Path, tmp_path: Path) -> None:
    table(csv_file, ("question", "repeat", "score", "cluster", "judge"), *CELLS)
    check_adapter(tables, csv_file, tmp_path / "work", cluster="cluster", question="question", factor="judge")


@pytest.mark.parametrize("what", rest_slow(["several", "a", "special", "live"]))
def test_lm_eval(lm_eval_runs: Path, tmp_path: Path, what: str) -> None:
    from harness_noise_adapters.lm_eval_harness import adapter

    run = Path(shutil.copytree(lm_eval_runs / what, tmp_path / what))
    if what == "several":  # of the first of its runs, the smallest there is
        for path in (path for kind in ("results_*", "samples_*") for path in sorted(run.rglob(kind))[1:]):
            path.unlink()
    check_adapter(adapter, run, tmp_path / "work", cluster="template", question="question")


@pytest.mark.parametrize("form", rest_slow(["eval", "json"]))
def test_inspect(inspect_logs: SimpleNamespace, tmp_path: Path, form: str) -> None:
    from inspect_ai.log import read_eval_log, write_eval_log

    from harness_noise_adapters.inspect_logs import adapter

    log = tmp_path / f"log.{form}"
    write_eval_log(read_eval_log(str(inspect_logs.a)), str(log))
    check_adapter(adapter, log, tmp_path / "work", cluster="passage", question="name")


class Careless:
    """Reads a folder of NAME.careless.json and extra.careless.txt, with one mistake."""

    name = "careless"

    def __init__(self, mistake: str) -> None:
        self.mistake = mistake
        self.calls = 0

    def sniff(self, path: Path) -> bool:
        if self.mistake == "sniff opens":
            path.read_text()
        if self.mistake == "sniff takes all results":
            return path.name.startswith("results_") or (path.is_dir() and bool(list(path.glob("*.careless.json"))))
        if self.mistake == "sniff says the file":
            return next(path.glob("*.careless.json"), None) if path.is_dir() else None  # type: ignore[return-value]
        if self.mistake == "sniff takes logs":
            return path.suffix == ".eval" or (path.is_dir() and bool(list(path.glob("*.careless.json"))))
        return path.is_dir() and bool(list(path.glob("*.careless.json")))

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        self.calls += 1
        if self.mistake == "prints":
            print("reading", path)
        answers = self.answers(path, replace(options, missing="drop") if self.mistake == "missing" else options)
        found = sorted(path.glob("*.careless.json"))
        if self.mistake == "the folder's order":
            found = list(path.glob("*.careless.json"))
        for file in found[:1] if self.mistake == "the first file" else found:
            for row in self.rows(file):
                self.add(answers, row)
        self.extra(path)
        name = f"{path} {self.calls}" if self.mistake == "the name counts" else str(path)
        model = f"m{self.calls}" if self.mistake == "the model counts" else "m"
        run = answers.run(model, self.name, name=name)
        return [self.spoiled(run)]

    def answers(self, path: Path, options: ReadOptions) -> Answers:
        if self.mistake == "forgets the cluster":
            options = replace(options, cluster=None)
        if self.mistake == "forgets the columns":
            options = replace(options, columns={})
        answers = Answers(path, options, kind="sample id", text="words")
        native = 0.9 if self.mistake == "not the harness's mean" else float(np.nanmean(SCORES, axis=1).mean())
        answers.describe("t", "acc", "none", native=native)
        return answers

    def rows(self, file: Path) -> list[dict[str, Any]]:
        try:
            found = json.loads(file.read_text())
            return [dict(row) for row in found["rows"]]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if self.mistake == "an empty object" and isinstance(error, KeyError):
                raise
            if self.mistake == "no words":
                raise InputError("") from None
            raise InputError(f"{file}: not one ({type(error).__name__})") from None

    def add(self, answers: Answers, row: dict[str, Any]) -> None:
        try:
            question, score, trial = row["id"], row["score"], row["trial"]
        except KeyError as error:
            raise InputError(f"no {error}") from None
        if self.mistake == "two models" and row["trial"] == 1:
            answers.add("t", "acc", "none", question, 2, 1.0, row)
        if self.mistake == "leaves missing ones out" and score is None:
            return
        if self.mistake == "missing is wrong":
            score = score or 0.0
        if self.mistake == "keys":
            question = f"{question}{self.calls}"
        if self.mistake == "hashes":
            question = str(hash(question))
        answers.add("t", "acc", "none", question, trial, score, row)

    def extra(self, path: Path) -> None:
        """What stands in the other kind of file, of whichever encoding and form."""
        for file in path.glob("*.careless.txt"):
            if self.mistake == "the second kind":
                int(file.read_text())

    def spoiled(self, run: Run) -> Run:
        (item,) = run.scores
        if self.mistake == "columns in another order":
            item = replace(item, values=item.values[:, ::-1].copy())
        if self.mistake == "questions in another order":
            item = replace(item, values=item.values[::-1].copy())
        if self.mistake == "a set":
            order = np.array([item.questions.keys.index(key) for key in set(item.questions.keys)])
            item = replace(item, questions=Questions(tuple(set(item.questions.keys))), values=item.values[order])
        twice = (item, item) if self.mistake == "twice" else (item,)
        return replace(run, scores=twice)

    def write(self, path: Path, *_: Any) -> list[Path]:
        if self.mistake == "writes into the run":
            (path / "noise.txt").write_text(str(self.calls))
            return [path / "noise.txt"]
        raise InputError(f"{path}: nothing can be written into it")


SCORES = np.arange(24).reshape(12, 2) * 7 % 5 % 2.0
SCORES[1, 1] = np.nan


@pytest.fixture
def careless(tmp_path: Path) -> Path:
    """Twelve questions of three passages in two files, two answers each; one has no score."""
    folder = tmp_path / "run"
    folder.mkdir()
    rows = [
        {"id": f"q{i}", "trial": k, "passage": f"p{i // 4}", "score": None if np.isnan(score) else score}
        for i, scores in enumerate(SCORES)
        for k, score in enumerate(scores)
    ]
    (folder / "b.careless.json").write_text(json.dumps({"rows": rows[:10]}))
    (folder / "a.careless.json").write_text(json.dumps({"rows": rows[10:]}))
    (folder / "extra.careless.txt").write_text("1")
    return folder


def checked(mistake: str, careless: Path, folder: Path) -> None:
    expected = {("t", "q0"): SCORES[0], ("t", "q1"): [SCORES[1, 0], None], ("t", "acc", "q7"): SCORES[7]}
    check_adapter(
        Careless(mistake), careless, folder, cluster="passage", question="id", models=["m"], expected=expected
    )


def test_an_adapter_without_a_mistake_passes(careless: Path, tmp_path: Path) -> None:
    checked("", careless, tmp_path / "work")


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("sniff opens", "sniff: raises"),
        ("sniff takes all results", "sniff: claims results_.*lm-eval"),
        ("sniff takes logs", "sniff: claims .*eval, which is inspect"),
        ("sniff says the file", "is neither True nor False"),
        ("an empty object", "read: KeyError in place of an InputError"),
        ("no words", "an InputError without words"),
        ("the second kind", "read: .*Error in place of an InputError on extra"),
        ("the first file", "no question"),
        ("the folder's order", "read with its folders listed in another order"),
        ("the name counts", "read again: the run"),
        ("the model counts", "read again: runs of"),
        ("two models", "q0: scores"),
        ("leaves missing ones out", "without a score"),
        ("missing is wrong", "q1: scores"),
        ("missing", "missing=zero"),
        ("keys", "read again: t, acc: other keys of questions"),
        ("hashes", "read by another process: other keys"),
        ("a set", "read by another process: other keys"),
        ("columns in another order", "q1: scores"),
        ("questions in another order", "q0: scores"),
        ("not the harness's mean", "mean_mismatch"),
        ("forgets the cluster", "cluster=.*: neither obeyed nor refused"),
        ("forgets the columns", "columns=.*: neither obeyed nor refused"),
        ("twice", "is there 2 times"),
        ("prints", "prints to standard output"),
        ("writes into the run", "write: changes the run"),
    ],
)
def test_a_mistake_is_named(careless: Path, tmp_path: Path, mistake: str, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        checked(mistake, careless, tmp_path / "work")

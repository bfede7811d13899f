"""An adapter with one mistake, in a module of its own, so that another process can import it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from harness_noise.data.answers import Answers
from harness_noise.data.questions import Questions
from harness_noise.data.scores import ReadOptions, Run
from harness_noise.errors import InputError

SCORES = np.arange(24).reshape(12, 2) * 7 % 5 % 2.0
SCORES[1, 1] = np.nan


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
        if self.mistake == "skips broken lines":
            found = [file for file in found if len(file.read_text().splitlines()) == 1]
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
            text = file.read_text()
            found = json.loads("\n".join(text.splitlines()) if self.mistake == "splits lines" else text)
            return [dict(row) for row in found["rows"]]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if self.mistake == "an empty object" and isinstance(error, KeyError):
                raise
            if self.mistake == "skips damaged files":
                return []
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

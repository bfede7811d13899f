"""What `check_adapter` asks of every adapter holds for those that come with the package, and it sees what does not."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness_noise.data.questions import Questions
from harness_noise.data.scores import ReadOptions, Run, Scores
from harness_noise.errors import InputError
from harness_noise.testing import check_adapter
from harness_noise_adapters.tables.reader import adapter as tables
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
    """An adapter with one mistake; what it reads is nothing but the name of the file."""

    name = "careless"

    def __init__(self, mistake: str) -> None:
        self.mistake = mistake
        self.calls = 0

    def sniff(self, path: Path) -> bool:
        if self.mistake == "sniff opens":
            path.read_text()
        return path.suffix == ".careless"

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        self.calls += 1
        if self.mistake != "takes all" and path.read_bytes() != b"whole":
            raise ValueError("what is this?") if self.mistake == "raises" else InputError(f"{path}: not one")
        said = str([options.columns, options.factors, options.cluster])
        if "no_such_field" in said and self.mistake != "forgets":
            raise InputError("no_such_field is not there")
        keys = tuple(f"q{i + (self.calls if self.mistake == 'keys' else 0)}" for i in range(4))
        labels = ("t",) * 4 if options.cluster == "task" else None
        item = Scores("t", "acc", "none", Questions(keys), np.eye(4), labels, "task" if labels else None)
        twice = (item, item) if self.mistake == "twice" else (item,)
        return [Run("m", str(path), "careless", str(path), twice)]

    def write(self, path: Path, *_: Any) -> list[Path]:
        raise InputError(f"{path}: nothing can be written into it")


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("sniff opens", "sniff: raises"),
        ("raises", "read: ValueError in place of an InputError"),
        ("forgets", "cluster=.*: neither obeyed nor refused"),
        ("keys", "read again: t, acc: other keys of questions"),
        ("twice", "is there 2 times"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, mistake: str, words: str) -> None:
    place = tmp_path / "run.careless"
    place.write_bytes(b"whole")
    check_adapter(Careless(""), place, tmp_path / "none")
    with pytest.raises(AssertionError, match=words):
        check_adapter(Careless(mistake), place, tmp_path / "work")

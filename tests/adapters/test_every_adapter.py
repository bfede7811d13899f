"""What `check_adapter` asks of every adapter holds for those that come with the package, and it sees what does not."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness_noise.extra.testing.adapters import check_adapter
from harness_noise_adapters.tables import adapter as tables
from support import written_answers
from support.careless import SCORES, Careless
from support.slow import rest_slow
from support.tables import table

ADAPTERS = {
    "table": "harness_noise_adapters.tables",
    "lm_eval": "harness_noise_adapters.lm_eval_harness",
    "inspect": "harness_noise_adapters.inspect_logs",
    "every_eval_ever": "harness_noise_adapters.extra.formats.every_eval_ever",
    "trials": "harness_noise_trials",
}
CELLS = [
    (f"q{i}", k, "" if i == k == 1 else (i + k) % 3 / 2, f"c{i // 2}", "ab"[k]) for i in range(8) for k in range(2)
]


def test_tables(csv_file: Path, tmp_path: Path) -> None:
    table(csv_file, ("question", "repeat", "score", "cluster", "seed"), *CELLS)
    check_adapter(tables, csv_file, tmp_path / "work", cluster="cluster", question="question", factor="seed")


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


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_format_is_read_by_one_rule(name: str, tmp_path: Path, root: Path, monkeypatch: Any) -> None:
    """Numbers, answers without a score, places, clusters, the harness's own mean: all `CASES` of the testing kit.

    What a test of one format alone says of these is what only that format has.
    """
    monkeypatch.syspath_prepend(root / "configs" / "adapter_template")
    monkeypatch.setenv("PYTHONPATH", str(root / "configs" / "adapter_template"))
    adapter = importlib.import_module(ADAPTERS[name]).adapter
    check_adapter(adapter, getattr(written_answers, f"of_{name}"), tmp_path)


@pytest.fixture
def careless(tmp_path: Path) -> Path:
    """Twelve questions of three passages in two files, two answers each; one has no score."""
    folder = tmp_path / "run"
    folder.mkdir()
    rows = [
        {
            "id": f"q{i}",
            "text": f"What is it that is asked in question {i}?",
            "trial": k,
            "passage": f"p{i // 4}",
            "score": None if np.isnan(score) else score,
        }
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
        ("an empty object", "read: KeyError instead of an InputError"),
        ("no words", "an InputError without words"),
        ("the second kind", "read: .*Error instead of an InputError on extra"),
        ("the first file", "no question"),
        ("splits lines", r"read: InputError on a text with a line separator \(U\+2028\)"),
        ("skips damaged files", "scores are lost without a word on b.careless.json of 0 bytes"),
        ("skips broken lines", "within a text changes the scores"),
        ("the folder's order", "read with its folders listed in another order"),
        ("the name counts", "read again: the run .* has another name"),
        ("the model counts", "read again: runs of"),
        ("two models", "q0: scores"),
        ("leaves missing ones out", "without a score"),
        ("missing is wrong", "q1: scores"),
        ("missing", "missing=zero"),
        ("keys", "read again: the run .* has t, acc: other keys of questions"),
        ("hashes", "read by another process: the run .* has t, acc: other keys"),
        ("a set", "read by another process: the run .* has t, acc: other keys"),
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

"""A crash is a 2 with a paragraph: a 1 is a verdict."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from unittest import mock

import pytest

from harness_noise.cli import main

from .limits import limited, refused, table

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="the limits of memory and time need Linux"),
]

THRESHOLDS = {
    "date": "tasks: [{name: a, metrics: [{name: score, value: 2001-99-99}]}]",
    "digits": f"tasks: [{{name: a, metrics: [{{name: score, value: {'9' * 400}}}]}}]",
    "more digits": f"tasks: [{{name: a, metrics: [{{name: score, value: {'9' * 5000}}}]}}]",
    "tagged": 'tasks: [{name: a, metrics: [{name: score, value: !!int "x"}]}]',
    "float": 'tasks: [{name: a, metrics: [{name: score, value: !!float "x"}]}]',
    "time": "tasks: [{name: a, metrics: [{name: score, value: !!timestamp x}]}]",
    "truth": "tasks: [{name: a, metrics: [{name: score, value: !!bool x}]}]",
    "nothing": "tasks: [{name: a, metrics: [{name: score, value: !!int ''}]}]",
    "pairs": "tasks: [{name: a, metrics: [{name: score, value: !!pairs [x]}]}]",
    "set": "tasks: [{name: a, metrics: !!set [x]}]",
    "merged": "tasks: [{name: a, <<: 3}]",
    "key": "tasks: [{name: a, metrics: [{? [1] : score, value: 1}]}]",
    "aliases": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "alias": "a: &a 1\ntasks: [{name: a, metrics: [{name: score, value: *a}]}]",
    "large": "a: [" + "[]," * 3_000_000 + "]",
    "deep": "[" * 20_000,
    "binary": "\x00\x01",
    "object": "!!python/object/apply:os.system ['exit 1']",
}


@pytest.mark.parametrize("name", THRESHOLDS)
def test_thresholds(tmp_path: Path, name: str) -> None:
    run = table(tmp_path / "a.csv")
    (tmp_path / "bar.yaml").write_text(THRESHOLDS[name])
    said = refused("gate", run, "--thresholds", tmp_path / "bar.yaml")
    assert "bar.yaml" in said
    assert "unexpected" not in said


def test_a_kept_run_of_many_nodes(tmp_path: Path) -> None:
    run = table(tmp_path / "a.csv")
    (tmp_path / "kept").mkdir()
    head = b'{"kind": "harness-noise run kept for a gate", "x": [' + b"[]," * 40_000_000 + b"[]]}"
    (tmp_path / "kept" / "run-1-a.json.gz").write_bytes(gzip.compress(head, 1))
    assert "run-1-a.json.gz" in refused("gate", run, "--against", tmp_path / "kept")


def test_looks_that_are_no_looks(tmp_path: Path) -> None:
    a, b = table(tmp_path / "a.csv"), table(tmp_path / "b.csv", 22)
    for content in ("[" * 100_000, "[]", "{}", '{"kind": "looks"}', json.dumps({"kind": "looks", "tasks": 3})):
        (tmp_path / "a.csv.looks.json").write_text(content)
        assert "looks" in refused("compare", a, b, "--looks", "5")


@pytest.mark.parametrize(
    "error", [RuntimeError("a\nb\x1b[31m"), MemoryError(), RecursionError(), SystemExit(1), OSError()]
)
@pytest.mark.parametrize("command", [["gate", "a.csv", "--floor", "0.1"], ["analyze", "a.csv"], ["arena", "a.csv"]])
def test_whatever_is_unexpected_is_a_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException,
    command: list[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "a.csv")
    with mock.patch("harness_noise.api.keywords.Request.of", side_effect=error):
        assert main(command) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert told[:-1].isprintable()
        if type(error) is not OSError:
            assert "please report it" in told
        with pytest.raises(type(error)):
            main([*command, "--debug"])


def test_a_gate_that_cannot_even_start_is_a_2(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise RuntimeError('broken')\n")
    done = limited("gate", "a.csv", "--floor", "0.1", cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 2
    assert "broken at click.py:1" in done.stderr

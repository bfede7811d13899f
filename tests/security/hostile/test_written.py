"""Nothing of the user's is touched: names, permissions."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from harness_noise.io import atomic

from .limits import limited, table

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="permissions and limits are those of Linux"),
]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_our_own_temporary_files_are_swept(tmp_path: Path) -> None:
    users = [f".harness-noise-{rest}" for rest in (
        "thresholds.yml", "", "abc.tmp", "ABCDEF012345.tmp", "0123456789ab.tmp.yml", "0123456789abc.tmp"
    )]  # fmt: skip
    for name in users:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".harness-noise-0123456789ab.tmp").write_text("left by a kill")
    run = table(tmp_path / "a.csv")
    assert limited("analyze", run, "-o", tmp_path / "out.txt").returncode == 0
    assert sorted(path.name for path in tmp_path.glob(".harness-noise-*")) == sorted(users)


def test_a_private_file_has_no_public_twin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "private.txt"
    target.write_text("old")
    target.chmod(0o600)
    seen: list[int] = []
    with atomic.replacing_path(target) as temporary:
        seen.append(mode(temporary))
        temporary.write_text("secret")
        seen.append(mode(temporary))
    assert seen == [0o600, 0o600]
    assert (mode(target), target.read_text()) == (0o600, "secret")
    target.chmod(0o444)  # one that its owner may not write is replaced all the same
    atomic.write_text(target, "new")
    assert (mode(target), target.read_text()) == (0o444, "new")


def test_an_export_of_private_answers_is_private(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    row = {"doc_id": 0, "doc": {"q": "a"}, "target": "1", "arguments": [], "resps": [["1"]], "filtered_resps": ["1"],
           "filter": "none", "metrics": ["acc"], "doc_hash": "h", "prompt_hash": "p", "target_hash": "t"}  # fmt: skip
    lines = [
        json.dumps(row | {"doc_id": i, "doc": {"q": f"{i}"}, "doc_hash": f"h{i}", "acc": float(i % 3 > 0)})
        for i in range(30)
    ]
    samples = run / "samples_t_2026-01-02T03-04-05.678901.jsonl"
    samples.write_text("\n".join(lines) + "\n")
    results = run / "results_2026-01-02T03-04-05.678901.json"
    results.write_text(json.dumps({
        "results": {"t": {"alias": "t", "acc,none": 2 / 3, "acc_stderr,none": 0.08}}, "configs": {"t": {"task": "t"}},
        "higher_is_better": {"t": {"acc": True}}, "n-samples": {"t": {"original": 30, "effective": 30}},
    }))  # fmt: skip
    samples.chmod(0o600)
    results.chmod(0o640)
    old = os.umask(0o022)
    try:
        done = limited("export", run, "-o", tmp_path / "out")
    finally:
        os.umask(old)
    assert done.returncode == 0, done.stderr
    assert mode(tmp_path / "out" / samples.name) == 0o600
    assert mode(tmp_path / "out" / results.name) == 0o640

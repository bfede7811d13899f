"""Nothing is sent anywhere: every command runs with sockets forbidden; the demonstration too, in cli/test_demo.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.network import without_network


@pytest.fixture
def run(tmp_path: Path):  # type: ignore[no-untyped-def]
    environment, seen = without_network(tmp_path)

    def call(*arguments: object, code: int = 0) -> str:
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, done.stderr[-3000:]
        assert not seen.exists(), seen.read_text()
        return done.stdout

    return call


def test_the_watch_sees_a_connection(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(AssertionError, match=r"no network|socket"):
        run("-c", "import urllib.request; urllib.request.urlopen('http://example.org')")


def test_commands_on_a_table(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = tmp_path / "t.csv"
    table.write_text("question,score\n" + "".join(f"q{i},{i % 2}\n" for i in range(20)))
    run("-m", "harness_noise", "analyze", table)
    run("-m", "harness_noise", "compare", table, table, "--format", "json")


@pytest.mark.slow
def test_every_command_on_files(run, real_files: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    noise = ("-m", "harness_noise")
    lm_eval, table = real_files / "lm_eval", real_files / "tables" / "full.csv"
    run("-c", "import harness_noise, harness_noise.cli; harness_noise.read")
    run(*noise, "analyze", lm_eval / "a", "-o", tmp_path / "a.txt")
    run(*noise, "compare", real_files / "inspect" / "plain.eval", real_files / "inspect" / "plain.json",
        "--html", tmp_path / "c.html")  # fmt: skip
    run(*noise, "arena", table, lm_eval / "a", lm_eval / "b", "--html", tmp_path / "arena", "--jobs", "2")
    run(*noise, "factors", table, "--factor", "task=task")
    run(*noise, "plan", "--from", lm_eval / "a", "--task", "mc", "--metric", "acc", "--effect", "0.1")
    run(*noise, "export", lm_eval / "a", "-o", tmp_path / "exported")
    run(*noise, "export", real_files / "inspect" / "plain.eval", "-o", tmp_path / "exported")
    run(*noise, "list")

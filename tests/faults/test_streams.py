"""Pipes that close, streams that are closed, a full device: silent or one paragraph, and the work is done."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from support.slow import rest_slow

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX streams")

PROGRAM = [sys.executable, "-c", "import sys; from harness_noise.cli import main; sys.exit(main())"]
FORMATS = ("table", "json", "markdown", "latex", "csv")


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    for name, right in (("a", 3), ("b", 1)):
        rows = [f"q{i},{int((7 * i) % 5 < right)}" for i in range(60)]
        (folder / f"{name}.csv").write_text("question,score\n" + "\n".join(rows) + "\n")
    return folder


def run(folder: Path, shell: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with redirections as a shell makes them."""
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {shell}', "sh", *PROGRAM, *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder,
    )  # fmt: skip


def into_a_closed_pipe(folder: Path, *arguments: str, stream: str = "stdout") -> tuple[int, str]:
    """Exit code, and what the other stream says, where the reader of `stream` has gone before the start."""
    reader, writer = os.pipe()
    os.close(reader)
    other = "stderr" if stream == "stdout" else "stdout"
    try:
        done = subprocess.run(
            [*PROGRAM, *arguments], cwd=folder, **{stream: writer, other: subprocess.PIPE}, restore_signals=True
        )
    finally:
        os.close(writer)
    return done.returncode, getattr(done, other).decode()


@pytest.mark.parametrize("form", rest_slow(FORMATS))
def test_a_closed_pipe_is_silent(form, tables):
    assert into_a_closed_pipe(tables, "analyze", "a.csv", "-q", "--format", form) == (0, "")


@pytest.mark.parametrize("arguments", [["--help"], ["compare", "--help"], ["--version"]])
def test_a_closed_pipe_is_silent_for_help(arguments, tables):
    assert into_a_closed_pipe(tables, *arguments) == (0, "")


@pytest.mark.parametrize("form", rest_slow(["table", "json"]))
def test_a_closed_pipe_changes_neither_the_gate_nor_the_files(form, tables, tmp_path):
    page = tmp_path / "gate.xml"
    gate = ["gate", "b.csv", "--against", "a.csv", "--junit", str(page), "-q", "--format", form]
    code, said = into_a_closed_pipe(tables, *gate)
    assert code == 1
    assert len(said.splitlines()) == (form == "json")
    assert page.read_text().endswith("</testsuite>\n")


def test_nobody_listens_to_the_hints(tables):
    code, said = into_a_closed_pipe(tables, "analyze", "a.csv", "--format", "csv", stream="stderr")
    assert code == 0
    assert len(said.splitlines()) == 2
    assert into_a_closed_pipe(tables, "analyze", "nothing.csv", stream="stderr") == (2, "")


@pytest.mark.parametrize("form", rest_slow(["table", "csv"]))
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_device_is_one_paragraph(form, tables):
    done = run(tables, ">/dev/full", "analyze", "a.csv", "-q", "--format", form)
    assert (done.returncode, done.stderr) == (2, "harness-noise: standard output: No space left on device\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    ("shell", "arguments", "code", "said"),
    [
        (">/dev/full", ["--help"], 2, "harness-noise: standard output: No space left on device\n"),
        (">&-", ["--help"], 0, ""),
        ("<&- >&- 2>&-", ["--version"], 0, ""),
        ("2>&-", ["analyze", "nothing.csv"], 2, ""),
        ("2>/dev/full", ["analyze", "nothing.csv"], 2, ""),
        (">&-", ["analyze", "nothing.csv"], 2, "harness-noise: nothing.csv: no such file or directory\n"),
    ],
)
def test_closed_and_full_streams(shell, arguments, code, said, tables):
    done = run(tables, shell, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


@pytest.mark.slow
@pytest.mark.parametrize("shell", [">&-", "<&- >&- 2>&-"])
def test_what_is_printed_never_lands_in_a_file_that_we_open(shell, tables, tmp_path):
    whole = run(tables, "", "analyze", "a.csv", "--format", "csv", "-q").stdout
    for arguments in (["-o", str(tmp_path / "x.csv")], []):
        done = run(tables, shell, "analyze", "a.csv", "--format", "csv", *arguments)
        assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "x.csv").read_text() == whole


@pytest.mark.slow
def test_a_device_or_a_pipe_is_written_to_and_stays_what_it_is(tables, tmp_path):
    whole = run(tables, "", "analyze", "a.csv", "--format", "csv", "-q").stdout
    straight = run(tables, "| cat", "analyze", "a.csv", "--format", "csv", "-q", "-o", "/dev/stdout")
    assert straight.stdout == whole
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        assert run(tables, "", "analyze", "a.csv", "--format", "csv", "-q", "-o", str(pipe)).returncode == 0
        assert reader.stdout is not None
        assert reader.stdout.read() == whole
    assert stat.S_ISFIFO(pipe.stat().st_mode)

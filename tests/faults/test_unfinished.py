"""Runs that are still being written, or whose writer was killed: consistent or refused, never half a run."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from zipfile import ZipFile

import pytest

from faults import campaign
from harness_noise.analysis.mean import analyze_run
from harness_noise.cli import main
from harness_noise.data.scores import ReadOptions
from harness_noise.errors import InputError
from harness_noise.io.atomic import alone
from harness_noise.settings import Settings

COMMANDS = ("analyze", "compare", "export", "arena")


def call(command: str, run: Path, other: Path, out: Path) -> int:
    more = {"compare": [other], "arena": [other, "--tables", out, "--strict"], "export": ["-o", out]}.get(command, [])
    return main([str(word) for word in (command, run, *more, "-q")])


@pytest.fixture
def runs(tmp_path) -> tuple[Path, Path]:
    for name in ("run", "other"):
        (tmp_path / name).mkdir()
        campaign.write_lm_eval_run(tmp_path / name)
    return tmp_path / "run", tmp_path / "other"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("cut", ["nothing", "half a line", "half the results"])
def test_an_lm_eval_run_that_is_being_written(command, cut, runs, tmp_path, capsys):
    run, other = runs
    (path,) = run.rglob("results_*.json" if cut == "half the results" else "samples_words_*.jsonl")
    data = path.read_bytes()
    path.write_bytes(b"" if cut == "nothing" else data[: len(data) // 2])
    assert call(command, run, other, tmp_path / "out") == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert path.name in said.err
    assert said.err.count("\n") == 1
    assert not list((tmp_path / "out").rglob("*"))


def test_a_samples_file_that_lacks_its_last_lines_is_read_with_a_warning(runs, capsys):
    """Cut at the end of a line it is well formed, and its mean may happen to be the reported one."""
    run, _ = runs
    (path,) = run.rglob("samples_words_*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    assert main(["analyze", str(run)]) == 0
    assert "samples file has" not in capsys.readouterr().err
    path.write_bytes(b"".join(lines[:-4]))
    assert main(["analyze", str(run)]) == 0
    assert f"words: the samples file has {len(lines) - 4} of the {len(lines)} questions" in capsys.readouterr().err


def test_a_samples_file_that_changes_between_two_looks_is_not_exported(runs, tmp_path):
    from harness_noise_adapters.lm_eval_harness import adapter

    run, _ = runs
    (path,) = run.rglob("samples_words_*.jsonl")

    def analyze(result):
        path.write_bytes(path.read_bytes().replace(b'"exact_match": 1.0', b'"exact_match": 0.0'))
        return analyze_run(result, Settings())

    with pytest.raises(InputError, match="changed while it was exported"):
        adapter.write(run, tmp_path / "out", analyze, ReadOptions())
    assert [path.name.split("_2")[0] for path in (tmp_path / "out").rglob("*.json*")] == ["samples_sums"]


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> Path:
    """One log in each format, made by a process of its own: Inspect leaves streams open."""
    pytest.importorskip("inspect_ai")
    folder = tmp_path_factory.mktemp("logs")
    program = "import sys, pathlib, campaign; campaign.write_inspect_logs(pathlib.Path(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], cwd=Path(campaign.__file__).parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("form", ["eval", "json"])
@pytest.mark.parametrize("in_place", [True, False])
def test_a_log_that_changes_between_two_looks_is_not_exported(form, in_place, logs, tmp_path):
    """An edit that somebody makes meanwhile is not lost."""
    from harness_noise_adapters.inspect_logs import adapter

    folder = Path(shutil.copytree(logs, tmp_path / "logs"))
    (path,) = folder.glob(f"*.{form}")

    def analyze(result):
        if form == "eval":
            with ZipFile(path, "a") as archive:
                archive.writestr("note", "edited")
        else:
            path.write_bytes(path.read_bytes() + b"\n")
        edited.append(path.read_bytes())
        return analyze_run(result, Settings())

    edited: list[bytes] = []
    with pytest.raises(InputError, match="changed while it was exported"):
        adapter.write(path, folder if in_place else tmp_path / "out", analyze, ReadOptions())
    assert [path.read_bytes()] == edited
    assert not list((tmp_path / "out").glob("*"))


def test_a_log_that_is_replaced_while_inspect_reads_it_has_changed(logs, tmp_path, monkeypatch):
    """Inspect opens a log twice to read it; what another process puts there in between looks damaged to it."""
    import inspect_ai.log

    from harness_noise_adapters.inspect_logs import adapter

    folder = Path(shutil.copytree(logs, tmp_path / "logs"))
    (path,) = folder.glob("*.eval")

    def replaced(*_, **__):
        shutil.copyfile(path, folder / "other")
        (folder / "other").replace(path)
        raise ValueError("EOCD not found")

    monkeypatch.setattr(inspect_ai.log, "read_eval_log", replaced)
    with pytest.raises(InputError, match="changed while it was exported"):
        adapter.write(path, folder, lambda result: analyze_run(result, Settings()), ReadOptions())


def test_logs_are_written_by_one_process_at_a_time(logs, tmp_path):
    """Another process that exports to the same folder waits: what it finds there is whole and stays there."""
    from harness_noise_adapters.inspect_logs import adapter

    out = tmp_path / "out"
    with ThreadPoolExecutor() as pool:
        with alone(out):
            export = pool.submit(adapter.write, logs, out, lambda run: analyze_run(run, Settings()), ReadOptions())
            assert not wait([export], timeout=1.5).done
            assert not list(out.iterdir())
        assert len(export.result()) == len(list(out.iterdir())) == 2


KILLED = """
    import os, signal, sys
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import match
    from inspect_ai.solver import solver

    @solver
    def answers():
        async def solve(state, generate):
            if state.sample_id == 8:
                os.kill(os.getpid(), signal.SIGKILL)
            state.output = ModelOutput.from_content("mockllm/model", "yes")
            return state
        return solve

    samples = [Sample(id=i, input=f"{i}?", target="yes") for i in range(1, 13)]
    task = Task(dataset=samples, solver=answers(), scorer=match())
    eval(task, "mockllm/model", display="none", log_dir=sys.argv[1], log_format=sys.argv[2], log_buffer=1,
         max_samples=1, log_realtime=False)
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["eval", "json"])
def test_a_log_whose_eval_was_killed_is_refused(form, tmp_path, capsys):
    pytest.importorskip("inspect_ai")
    logs = tmp_path / "logs"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(logs), form], capture_output=True, text=True
    )
    assert done.returncode == -9, done.stderr
    (path,) = logs.glob(f"*.{form}")
    for given in (path, logs):
        for command in COMMANDS:
            before = path.read_bytes()
            assert call(command, given, given, tmp_path / "out") == 2
            said = capsys.readouterr()
            assert said.out == ""
            assert said.err.count("\n") == 1
            assert path.name in said.err
            assert "not finished" in said.err or "still being written" in said.err or "damaged" in said.err, said.err
            assert path.read_bytes() == before
    assert not (tmp_path / "out").exists()

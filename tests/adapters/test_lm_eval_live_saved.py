"""lm-eval's own result is on disk when it is complete, and the last one takes its place."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.notes import noted

pytest.importorskip("lm_eval")
from lm_eval.loggers import EvaluationTracker

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.io.paths import BESIDE
from support import lm_eval_models as toys
from support.lm_eval_live import native_part
from support.lm_eval_server import Server, serving
from support.processes import environment

pytestmark = pytest.mark.usefixtures("quick_lm_eval")
N, K = 8, 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks")
    toys.write_task(path, "gen", toys.docs(N))
    toys.write_task(path, "choice", toys.docs(N), toys.CHOICE)
    return path


NOISE = ("--noise", "--noise_repeats", str(K))


def arguments(folder: Path, server: Server, out: Path, *more: str, tasks: str = "gen") -> list[str]:
    model = f"model=toy,base_url=http://127.0.0.1:{server.server_port}/v1/completions,tokenizer_backend=None"
    return [
        "run", "--model", "local-completions", "--model_args", f"{model},max_retries=1", "--include_path", str(folder),
        "--tasks", tasks, "--log_samples", "--output_path", str(out), *more,
    ]  # fmt: skip


def files(out: Path) -> dict[str, Any]:
    """What a run left, by names without their dates, but for what is ours beside it."""
    found: dict[str, Any] = {}
    for path in (path for path in out.rglob("*") if path.is_file() and BESIDE not in path.parts):
        name = path.name.split("_20")[0]
        assert name not in found
        text = path.read_text()
        found[name] = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
    return found


def dates(out: Path) -> set[str]:
    return {path.stem.rsplit("_", 1)[1] for path in out.rglob("*_20*") if BESIDE not in path.parts}


TIMES = ("date", "start_time", "end_time", "total_evaluation_time_seconds", "config", "git_hash", "noise")


def results_of(found: dict[str, Any], name: str = "results") -> dict[str, Any]:
    rows = native_part({key: value for key, value in found[name].items() if key not in TIMES})
    for config in rows["configs"].values():
        config["metadata"].pop("base_url", None)  # every server has a port of its own
    return rows


@pytest.fixture(scope="module")
def plain(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The files of a run without us."""
    out = tmp_path_factory.mktemp("plain")
    with serving(honour_seed=True) as server:
        command = [sys.executable, "-m", "support.lm_eval_child", *arguments(folder, server, out)]
        subprocess.run(command, env=environment(), check=True, capture_output=True)
    return files(out)


def ended(
    folder: Path,
    out: Path,
    end: Callable[[subprocess.Popen[str]], None],
    then: Callable[[Server], None] = lambda _: None,
) -> tuple[int, str, int]:
    """A run in a process that `end` ends at a further answer: its code, what it said, and what was drawn of it."""
    with serving(honour_seed=True) as server:
        command = [sys.executable, "-m", "support.lm_eval_child", *arguments(folder, server, out, *NOISE)]
        child = subprocess.Popen(
            command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        original = server.answer

        def answer(prompt: str, payload: dict[str, Any]) -> str:
            if len(server.payloads) == N + 11:
                end(child)
            return original(prompt, payload)

        server.answer = answer  # type: ignore[method-assign]
        said, _ = child.communicate(timeout=120)
        drawn = len(server.drawn)
        server.answer = original  # type: ignore[method-assign]
        if then is not None:
            then(server)
    return child.returncode, said, drawn


def test_a_kill_leaves_the_files_of_a_plain_run_and_the_next_one_goes_on(
    folder: Path, tmp_path: Path, plain: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    found: dict[str, Any] = {}

    def go_on(server: Server) -> None:
        found.update(files(tmp_path))
        server.payloads.clear()
        assert main(["lm-eval", *arguments(folder, server, tmp_path, *NOISE)]) == 0
        assert len(server.payloads) == N * K - 10

    code, _, _ = ended(folder, tmp_path, lambda child: os.kill(child.pid, signal.SIGKILL), go_on)
    assert code == -signal.SIGKILL
    assert "taken up: 10 answers of 20" in caplog.text
    assert set(found) == set(plain)
    assert results_of(found) == results_of(plain)
    assert found["samples_gen"] == plain["samples_gen"]
    assert found["results"]["noise"] == {"unfinished": True}
    first, last = sorted(tmp_path.rglob("results_*.json"))
    (run,) = hn.read(first)
    assert any("before it had all its further answers" in text for text in noted(run))
    assert run.scores[0].values.shape == (N, 1)
    (run,) = hn.read(last)
    assert run.scores[0].values.shape == (N, K)


def test_sigterm_saves_what_has_come(folder: Path, tmp_path: Path, plain: dict[str, Any]) -> None:
    code, said, drawn = ended(folder, tmp_path, lambda child: child.send_signal(signal.SIGTERM))
    assert code == 130, said
    assert "interrupted, so no further answers are asked for: 10 of 24" in said
    found = files(tmp_path)
    assert set(found) == set(plain)
    assert results_of(found) == results_of(plain)
    assert sorted(len(row["resps"][0]) for row in found["samples_gen"][::2]) == [2] * 6 + [3] * 2
    assert drawn <= N + 11
    assert "estimates" in found["results"]["noise"]


@pytest.mark.parametrize("name", ["out", "x.json"])
def test_the_last_result_takes_the_place_of_the_first(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    seen: list[dict[str, Any]] = []
    with serving(honour_seed=True) as server:
        original = server.answer

        def answer(prompt: str, payload: dict[str, Any]) -> str:
            if len(server.payloads) == N + 1:
                seen.append(files(tmp_path) | {"dates": dates(tmp_path)})
            return original(prompt, payload)

        monkeypatch.setattr(server, "answer", answer)
        assert main(["lm-eval", *arguments(folder, server, tmp_path / name, *NOISE)]) == 0
    results = "x" if name == "x.json" else "results"
    (first,), last = seen, files(tmp_path)
    assert first.pop("dates") == dates(tmp_path)
    assert len(dates(tmp_path)) == 1
    assert set(first) == set(last) == {results, "samples_gen"}
    assert first[results]["noise"] == {"unfinished": True}
    assert results_of(first, results) == results_of(last, results)
    assert first[results]["task_hashes"] == last[results]["task_hashes"]
    assert first[results]["config"] == last[results]["config"]
    assert {len(row["resps"][0]) for row in first["samples_gen"]} == {1}
    assert {len(row["resps"][0]) for row in last["samples_gen"]} == {K}
    assert not list(tmp_path.glob(f"**/{BESIDE}/saving-*"))


def test_the_hub_sees_one_result(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one, under the name that it has on disk."""
    sent: list[tuple[str, str, Any]] = []

    class Hub:
        def __getattr__(self, name: str) -> Any:
            return lambda **_: None

        def upload_file(self, *, path_or_fileobj: str, path_in_repo: str, **_: Any) -> None:
            path = Path(path_or_fileobj)
            sent.append(("file", Path(path_in_repo).name == path.name, json.loads(path.read_text())))

        def upload_folder(self, *, folder_path: str, ignore_patterns: list[str], **_: Any) -> None:
            assert ignore_patterns == [f"{BESIDE}/**"]
            sent.append(("folder", Path(folder_path).name, files(Path(folder_path))))

    monkeypatch.setattr(EvaluationTracker, "_api", staticmethod(lambda token: Hub()))
    monkeypatch.setattr(EvaluationTracker, "recreate_metadata_card", lambda self: None)
    hub = "--hf_hub_log_args=hub_results_org=me,push_results_to_hub=True,push_samples_to_hub=True,public_repo=True"
    with serving(honour_seed=True) as server:
        assert main(["lm-eval", *arguments(folder, server, tmp_path, *NOISE, hub)]) == 0
    (_, named, results), (_, _, everything) = sent
    assert named
    assert "estimates" in results["noise"]
    assert everything["results"] == results
    assert {len(row["resps"][0]) for row in everything["samples_gen"]} == {K}


def test_nothing_is_saved_where_nothing_was(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    argv = ["run", "--model", "sim-hash", "--include_path", str(folder), "--tasks", "gen", *NOISE]
    assert main(["lm-eval", *argv]) == 0
    assert list(tmp_path.iterdir()) == []


def test_without_samples_none_are_saved(folder: Path, tmp_path: Path) -> None:
    argv = ["run", "--model", "sim-hash", "--include_path", str(folder), "--tasks", "gen,choice", *NOISE]
    assert main(["lm-eval", *argv, "--output_path", str(tmp_path)]) == 0
    assert set(files(tmp_path)) == {"results"}


# ---- what the last line says ----
def simulated(folder: Path, out: object, *more: str, samples: bool = True) -> list[str]:
    argv = ["run", "--model", "sim-hash", "--include_path", str(folder), "--tasks", "gen", *NOISE, *more]
    return [*argv, *(("--output_path", str(out)) if out else ()), *(["--log_samples"] if samples else [])]


def last_line(capsys: pytest.CaptureFixture[str], argv: list[str]) -> str:
    assert main(["lm-eval", *argv]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.count(" Next: ") == 1
    return out.partition(" Next: ")[2]


def test_the_next_command_can_be_given(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it is said, from a folder with a blank in its name, and of a folder that has several runs."""
    out = tmp_path / "my runs"
    line = last_line(capsys, simulated(folder, out))
    assert line == f"harness-noise compare '{out}' BASELINE tests this run against another one."
    line = last_line(capsys, simulated(folder, out))
    (*_, named, baseline) = shlex.split(line.split(" tests")[0])
    assert Path(named).name.startswith("results_")
    assert baseline == "BASELINE"
    (other,) = {str(path) for path in out.rglob("results_*.json")} - {named}
    assert main(["compare", named, other]) == 0


@pytest.mark.parametrize("name", ["folder", "x.json"])
def test_the_next_command_of_a_config(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    config = tmp_path / "config.yaml"
    content = {"model": "sim-hash", "tasks": ["gen"], "include_path": str(folder), "log_samples": True}
    out = tmp_path / "out" / name
    config.write_text(json.dumps(content | {"output_path": str(out), "noise": {"repeats": 2}}))
    line = last_line(capsys, ["run", "--config", str(config)])
    run = out.parent if name == "x.json" else out
    assert line.startswith(f"harness-noise compare {run} BASELINE")
    assert main(["analyze", str(run)]) == 0


def test_the_next_command_where_something_was_not_kept(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert last_line(capsys, simulated(folder, None, samples=False)).startswith("with --output_path DIR --log_samples")
    assert last_line(capsys, simulated(folder, tmp_path / "a", samples=False)).startswith("with --log_samples")


def test_the_next_command_after_an_early_stop(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "tasks"
    folder.mkdir()
    toys.write_task(folder, "gen", toys.docs(80))
    last_line(capsys, simulated(folder, tmp_path / "b", "--model_args", "share=0.05"))
    good = ("--model_args", "share=0.95,seed=3")
    until = ("--noise_until", "decided", "--noise_against", str(tmp_path / "b"))
    line = last_line(capsys, simulated(folder, tmp_path / "a", *good, *until))
    assert line.startswith(f"harness-noise compare {tmp_path / 'a'} {tmp_path / 'b'} shows this decision again.")
    line = last_line(capsys, simulated(folder, tmp_path / "c", *good, "--noise_until", "se=0.1"))
    assert line.startswith(f"harness-noise analyze {tmp_path / 'c'} ")


@pytest.mark.parametrize("first", [True, False], ids=["the first result", "the last one"])
def test_a_full_disk(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    """What is cut is not put into its place, and the last line says so."""
    original = EvaluationTracker.save_results_samples
    calls: list[str] = []

    def save(self: Any, task_name: str, samples: Any) -> None:
        calls.append(task_name)
        original(self, task_name=task_name, samples=samples)
        if first or len(calls) == 2:
            (file,) = Path(self.output_path).rglob("samples_*")
            file.write_bytes(file.read_bytes()[:-30])

    monkeypatch.setattr(EvaluationTracker, "save_results_samples", save)
    line = last_line(capsys, simulated(folder, tmp_path))
    assert line.startswith(f"make room in {tmp_path} (is the disk full?)")
    found = files(tmp_path)
    if first:
        assert line.endswith(". Now the samples of gen are not saved whole.")
        assert set(found) == {"results"}
        assert "estimates" in found["results"]["noise"]
    else:
        assert "the samples of gen are those of lm-eval's own answers" in line
        assert {len(row["resps"][0]) for row in found["samples_gen"]} == {1}
    # the journal is open: the same command takes them up
    monkeypatch.setattr(EvaluationTracker, "save_results_samples", original)
    last_line(capsys, simulated(folder, tmp_path))
    newest = max(tmp_path.rglob("results_*.json"))
    assert json.loads(newest.read_text())["noise"]["journal"]["taken_up"] == N * (K - 1)


@pytest.mark.parametrize("fails", [1, 99], ids=["once", "for good"])
def test_the_last_result_that_cannot_be_put_into_its_place_is_kept(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    fails: int,
) -> None:
    """A rename that fails is tried again; the journal is open until it is done, and the file is left where it is."""
    original, calls = Path.replace, list[Path]()

    def replace(self: Path, target: Any) -> Path:
        if self.name.startswith("results_") and BESIDE in self.parts:
            calls.append(self)
            if 1 < len(calls) <= 1 + fails:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
        return original(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    assert main(["lm-eval", *simulated(folder, tmp_path)]) == 0
    said = " ".join("".join(capsys.readouterr()).split())
    (newest,) = files_of_results(tmp_path)
    monkeypatch.setattr(Path, "replace", original)
    assert len(calls) == 1 + 2
    if fails == 1:
        assert "estimates" in json.loads(newest.read_text())["noise"]
        return
    assert json.loads(newest.read_text())["noise"] == {"unfinished": True}
    kept = calls[-1]
    assert f"is kept in {kept.parents[1]}" in caplog.text
    assert "estimates" in json.loads(kept.read_text())["noise"]
    assert "could not be saved" in said
    last_line(capsys, simulated(folder, tmp_path))
    newest = max(files_of_results(tmp_path))
    assert json.loads(newest.read_text())["noise"]["journal"]["taken_up"] == N * (K - 1)
    assert kept.exists()


def files_of_results(out: Path) -> list[Path]:
    """The results that are in their places."""
    return [path for path in out.rglob("results_*.json") if BESIDE not in path.parts]

"""The plugin in jobs of Harbor itself, with a sandbox and a verifier that are doubles."""

from __future__ import annotations

import asyncio
import json
import logging
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

import harness_noise as hn
from harness_noise import InputError
from harness_noise_adapters.extra.formats.harbor_plugin import NoisePlugin
from support.harbor_files import job as written_job
from support.harbor_files import trial


class Job:
    """As much of a job as a plugin sees."""

    def __init__(self, folder: Path) -> None:
        self.job_dir = folder


def ended(plugin: NoisePlugin, folder: Path) -> None:
    asyncio.run(plugin.on_job_start(Job(folder)))
    asyncio.run(plugin.on_job_end(None))


def test_a_job_gets_a_file_and_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trials = [trial(f"task-{i}", k, float((i + k) % 3 == 0)) for i in range(8) for k in range(2)]
    folder = written_job(tmp_path / "job", trials)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    ended(NoisePlugin(level=0.9), folder)
    found = json.loads((folder / "noise.json").read_text())
    assert found["estimates"][0]["se"] == hn.analyze(folder).estimates[0].se
    assert found["estimates"][0]["level"] == 0.9
    assert all(path.read_bytes() == content for path, content in before.items())
    said = capsys.readouterr().out
    assert said.startswith("harness-noise: oracle@1.0/sim/sim-a scores 31.3% ± 9.1 points on tasks")
    assert said.count("\n") == 1
    assert [run.model for run in hn.read(folder)] == ["oracle@1.0/sim/sim-a"]  # its own file is no run


@pytest.mark.parametrize("what", ["no trials", "no folder", "not started"])
def test_a_failure_is_logged_and_the_job_is_not_lost(
    tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    plugin, folder = NoisePlugin(), tmp_path / "job"
    if what == "no trials":
        folder.mkdir()
    with caplog.at_level(logging.WARNING):
        asyncio.run(plugin.on_job_end(None)) if what == "not started" else ended(plugin, folder)
    assert "no error bars of this job" in caplog.text
    assert not (folder / "noise.json").exists()


def test_a_wrong_argument_is_refused_before_the_job_begins() -> None:
    with pytest.raises(InputError, match="is not drop, zero or CAUSE=zero"):
        NoisePlugin(missing="zeros")
    with pytest.raises(TypeError, match="unexpected keyword"):
        NoisePlugin(color="red")  # type: ignore[call-arg]


@pytest.mark.filterwarnings("default")  # Harbor's own
def test_in_a_job_of_harbor_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no look at the web
    pytest.importorskip("harbor.models.job.plugin", reason="harbor is not installed (Python ≥ 3.12)")
    from harbor.cli.job_plugins import PluginConfig, attach_job_plugins, finalize_job_plugins
    from harbor.job import Job as HarborJob
    from harbor.models.job.config import JobConfig

    tasks = []
    for i in range(6):
        task = tmp_path / "tasks" / f"task-{i}"
        (task / "environment").mkdir(parents=True)
        (task / "tests").mkdir()
        (task / "environment" / "Dockerfile").write_text("FROM scratch\n")
        (task / "tests" / "test.sh").write_text("exit 0\n")
        (task / "instruction.md").write_text(f"Do {i}.\n")
        (task / "task.toml").write_text('version = "1.0"\n[metadata]\n[verifier]\n[agent]\n[environment]\n')
        tasks.append({"path": str(task)})
    config = JobConfig.model_validate({
        "job_name": "live", "jobs_dir": str(tmp_path / "jobs"), "n_attempts": 2, "quiet": True, "tasks": tasks,
        "agents": [{"name": "nop", "model_name": "sim/sim-a"}], "retry": {"max_retries": 0},
        "environment": {"import_path": "support.harbor_doubles:Sandbox"},
        "verifier": {"import_path": "support.harbor_doubles:Verifier"},
    })  # fmt: skip

    async def run() -> Any:
        job = await HarborJob.create(config)
        plugins = await attach_job_plugins(job, [PluginConfig(import_path="noise")])
        result = await job.run()
        await finalize_job_plugins(plugins, result)
        return result

    result = asyncio.run(run())
    folder = tmp_path / "jobs" / "live"
    (row,) = json.loads((folder / "noise.json").read_text())["estimates"]
    assert (row["n_questions"], row["repeats_max"], row["missing"]) == (5, 2, {"verifier": 2})
    (stats,) = result.stats.evals.values()
    # six of twelve, or of ten: Harbor counted what is missing as 0 before 0.26
    assert stats.metrics == [{"mean": 0.6 if Version(version("harbor")) >= Version("0.26") else 0.5}]
    assert row["mean"] == pytest.approx(0.6)
    assert "mean_mismatch" not in row["diagnostics"]
    assert "harness-noise: nop@1.0.0/sim/sim-a scores 60" in capsys.readouterr().out

"""The package to copy for a new harness: it installs, is found by its entry point, and its own test passes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.processes import environment


@pytest.fixture
def installed(root: Path, tmp_path: Path) -> Path:
    """What an installer would lay beside the module, made from the template's own pyproject.toml."""
    folder = tmp_path / "site"
    shutil.copytree(root / "configs" / "adapter_template", folder, ignore=shutil.ignore_patterns("__pycache__"))
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    about = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir()
    about.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items())
              for group, names in project["entry-points"].items()]  # fmt: skip
    about.joinpath("entry_points.txt").write_text("\n".join(points))
    return folder


@pytest.mark.process
def test_its_own_test_passes_and_the_command_line_reads_its_runs(installed: Path, tmp_path: Path) -> None:
    def call(*arguments: str) -> str:
        command = [sys.executable, "-m", *arguments]
        done = subprocess.run(command, cwd=installed, env=environment(installed), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "3 passed" in call("pytest", "-q", "-p", "no:cacheprovider", "test_trials.py")
    assert "trials" in call("harness_noise", "adapters")
    run = tmp_path / "m.trials.json"
    trials = [{"task": "t", "id": f"q{i}", "trial": 1, "score": i % 2} for i in range(8)]
    run.write_text(json.dumps({"model": "m", "trials": trials}))
    assert '"mean": 0.5' in call("harness_noise", "analyze", str(run), "--format", "json")


def test_it_is_short_enough_to_copy(root: Path) -> None:
    module = (root / "configs" / "adapter_template" / "harness_noise_trials.py").read_text().splitlines()
    assert len(module) <= 70

"""The workflows of continuous integration: they name what is there, ask for little, and their steps are shell."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML comes with both harnesses")

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def load(path: Path) -> dict[Any, Any]:
    content: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = load(path)["jobs"]
    return found


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(path).values() for step in job.get("steps", [])]


def made(name: str) -> list[str]:
    """A variable of the Makefile."""
    found = re.search(rf"^{name} \?= (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert found is not None
    return found[1].split()


def test_the_workflows_that_are_told_of_are_there() -> None:
    told = set(re.findall(r"`(\w+\.yml)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    assert {path.name for path in WORKFLOWS} == told


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_read_only_unless_a_job_says_more(path: Path) -> None:
    assert load(path)["permissions"] == {"contents": "read"}
    for job in jobs(path).values():
        assert "runs-on" in job or "uses" in job
        assert job.get("permissions") != "write-all"
    assert "secrets." not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_a_commit_with_its_version_and_every_own_file_is_there(path: Path) -> None:
    named = [part["uses"] for part in (*steps(path), *jobs(path).values()) if "uses" in part]
    assert named
    for uses in named:
        if uses.startswith("./"):
            assert (ROOT / uses).exists()
        else:
            assert re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40}", uses), uses  # a tag can be moved, a commit cannot
            assert re.search(rf"{re.escape(uses)}  # v\d+(\.\d+)*$", path.read_text(encoding="utf-8"), re.M), uses


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_shell_steps_are_shell_and_take_expressions_from_the_environment_only(path: Path) -> None:
    scripts = [step["run"] for step in steps(path) if "run" in step]
    assert scripts
    for script in scripts:
        assert "${{" not in script, "an expression in a script is text that runs: pass it by env"
        done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_what_is_made_can_be_made() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {*re.findall(r"^([\w-]+):", makefile, re.M), "compat"}
    called = "\n".join(step.get("run", "") for path in WORKFLOWS for step in steps(path))
    made = set(re.findall(r'make "?([\w-]+?)-?(?:\$HARNESS)?"?(?: |$)', called, re.M))
    assert len(made) > 5
    assert made <= targets


def test_every_supported_python_and_harness_is_tested() -> None:
    found = jobs(ROOT / ".github" / "workflows" / "tests.yml")
    assert found["tests"]["strategy"]["matrix"]["python"] == made("PYTHONS")
    wanted = [f"lm-eval-{release}" for release in made("LM_EVAL_VERSIONS")]
    wanted += [f"inspect-{release}" for release in made("INSPECT_VERSIONS")]
    assert found["harnesses"]["strategy"]["matrix"]["harness"] == wanted
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    assert oldest == f">={made('PYTHONS')[0]}"


def test_a_release_is_tested_built_once_attested_and_published_without_a_password() -> None:
    found = jobs(ROOT / ".github" / "workflows" / "release.yml")
    assert [found[name]["needs"] for name in ("build", "publish", "announce")] == ["tests", "build", "publish"]
    assert found["publish"]["permissions"] == {"id-token": "write"}
    assert found["publish"]["environment"]["name"] == "pypi"
    builds = [name for name, job in found.items() for step in job.get("steps", []) if step.get("run") == "make wheel"]
    assert builds == ["build"]
    assert found["build"]["permissions"]["attestations"] == "write"


def test_the_version_changes_by_a_tag_only(tmp_path: Path) -> None:
    for name in (".ci/version", "harness_noise/_version.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    version = tmp_path / "harness_noise" / "_version.py"
    before = version.read_text(encoding="utf-8")
    for wrong in ("main", "1.2.3", "v1.2", "v1.2.3; rm -rf .", ""):
        done = subprocess.run([sys.executable, tmp_path / ".ci" / "version", wrong], capture_output=True, text=True)
        assert done.returncode == 1
        assert "write v1.2.3" in done.stderr
        assert version.read_text(encoding="utf-8") == before
    for tag in ("v1.2.3", "v2.0.0rc1"):
        subprocess.run([sys.executable, tmp_path / ".ci" / "version", tag], check=True, capture_output=True)
        assert version.read_text(encoding="utf-8") == f'__version__ = "{tag[1:]}"\n'


def test_issue_forms_ask_for_what_a_wrong_number_needs() -> None:
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    ids = {item.get("id") for item in load(folder / "wrong_number.yml")["body"]}
    assert {"command", "expected", "data", "versions"} <= ids
    for path in folder.glob("*.yml"):
        assert load(path)


def test_one_address_everywhere() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    for name in ("SECURITY.md", "CITATION.cff", ".github/ISSUE_TEMPLATE/config.yml"):
        assert urls["Source"] in (ROOT / name).read_text(encoding="utf-8")

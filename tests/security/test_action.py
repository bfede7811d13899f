"""The action in a hostile workspace, and against a forge that redirects, refuses and lists forks."""

from __future__ import annotations

import io
import os
import re
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from support.forge import ROOT, Forge, gate, script, table

pytestmark = pytest.mark.process


def packed(tmp_path: Path, right: int = 140) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.write(table(tmp_path / "old.csv", "old", right), "scores/old.csv")
    (tmp_path / "old.csv").unlink()
    return out.getvalue()


def test_the_baseline_is_the_newest_artifact_of_a_run_of_the_repository_itself(tmp_path: Path, forge: Forge) -> None:
    forge.history = ["after", "base", "before", "older"]
    forge.add(1, 3, "older")
    forge.add(2, 5, "before")
    forge.add(3, 9, "base", fork=True)  # a fork's branch main, at a commit that both have
    forge.add(4, 10, "fork", fork=True)
    forge.add(5, 11, "feature", event="pull_request", branch="feature")
    forge.add(6, 12, "base", event="pull_request_target")
    forge.add(7, 13, "after")  # main went on: what is not in the base was not there
    forge.add(8, 14, "feature", branch="feature")
    forge.add(9, 15, "base", conclusion="failure")
    forge.add(10, 16, "base", conclusion=None)
    forge.add(11, 17, "base", expired=True)
    forge.add(99, 18, "base")  # this run
    forge.archive = packed(tmp_path)
    new = table(tmp_path / "new.csv", "new", 100)
    code, summary, _ = gate(tmp_path, forge, process=True, run=str(new), artifact="scores", baseline="scores/old.csv")
    assert code == 1
    assert [ask for ask in forge.asked if ask.endswith("/zip")] == ["GET /repos/some/where/actions/artifacts/2/zip"]
    assert re.search(r"baseline: main@before, \d+ days old$", summary.splitlines()[0])


@pytest.mark.parametrize("event", ["schedule", "workflow_dispatch"])
def test_runs_by_the_clock_and_by_hand_are_baselines(tmp_path: Path, forge: Forge, event: str) -> None:
    forge.add(1, 3, event=event)
    forge.archive = packed(tmp_path, 90)
    assert gate(tmp_path, forge, run=str(table(tmp_path / "new.csv", "new", 100)), artifact="scores")[0] == 0


def test_without_a_baseline_yet_nothing_is_judged_and_the_gate_ends_with_0(tmp_path: Path, forge: Forge) -> None:
    new = str(table(tmp_path / "new.csv", "new", 100))
    forge.history = ["base"]
    for _ in range(2):  # what forks and pull requests have uploaded changes nothing
        code, summary, outputs = gate(tmp_path, forge, run=new, artifact="scores")
        assert (code, outputs["outcome"]) == (0, "no baseline")
        assert "no baseline yet; the first push to main stores one" in summary.splitlines()[0]
        forge.add(1, 3, "fork", fork=True)
        forge.add(2, 4, "feature", event="pull_request", branch="feature")
        forge.add(3, 5, "feature", branch="feature")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda forge: forge.add(1, 3, expired=True), "it has expired"),
        (lambda forge: forge.add(1, 3, conclusion="failure"), "has not succeeded"),
        (lambda forge: forge.add(1, 3, "rewritten"), "is not in the history"),
        (lambda forge: setattr(forge, "total", 3), "not read whole"),
        (lambda forge: setattr(forge, "forbidden", "/artifacts"), "403"),
        (lambda forge: (forge.add(1, 3), setattr(forge, "forbidden", "/runs")), "403"),
        (lambda forge: (forge.add(1, 3), setattr(forge, "forbidden", "/zip")), "403"),
        (lambda forge: (forge.add(1, 3), setattr(forge, "archive", b"no archive")), "no archive that can be unpacked"),
        (lambda forge: (forge.add(1, 3), setattr(forge, "elsewhere", forge.url + "/signed")), "400"),
        (lambda forge: forge.artifacts.append({"id": 1}), "KeyError"),
    ],
)
def test_an_error_on_the_way_to_the_baseline_is_never_a_pass(
    tmp_path: Path, forge: Forge, spoil: Callable[[Forge], object], reason: str
) -> None:
    forge.history = ["base"]
    spoil(forge)
    run = str(table(tmp_path / "new.csv", "new", 100))
    code, summary, outputs = gate(tmp_path, forge, run=run, artifact="scores")
    assert (code, outputs["outcome"]) == (2, "error"), summary
    assert reason in summary


@pytest.mark.parametrize("arguments", ["--help", "--against none.csv", "--task nothing", "--version", "--", "-o"])
def test_what_gives_no_whole_verdict_is_never_a_pass(tmp_path: Path, forge: Forge, arguments: str) -> None:
    new = str(table(tmp_path / "new.csv", "new", 100))
    code, _, outputs = gate(tmp_path, forge, run=new, baseline=new, arguments=arguments)
    assert (code, outputs["outcome"]) == (2, "error")


@pytest.mark.parametrize(
    "verdict",
    [
        b"", b"{", b"[]", b"null", b"{}", b'{"gate": {"outcome": "pass", "passed": true, "rows": []}}',
        b'{"gate": {"outcome": "pass", "passed": true, "rows": [{"decides": true, "passed": null}]}}',
        b'{"gate": {"outcome": "pass", "passed": true, "rows": [{"decides": false, "passed": true}]}}',
        b'{"gate": {"outcome": "pass", "passed": true, "rows": [{"decides": true, "passed": true}]',
        b'{"gate": {"outcome": "pass", "passed": "yes", "rows": [{"decides": true, "passed": true}]}}',
        b'{"gate": {"outcome": "fail", "passed": false, "rows": [{"decides": true, "passed": false}]}}',
        b'{"gate": {"outcome": "pass", "passed": true, "rows": '
        b'[{"decides": true, "passed": true}, {"decides": true, "passed": false}]}}',
    ],
)  # fmt: skip
def test_a_verdict_that_is_not_whole_or_disagrees_is_an_error(tmp_path: Path, verdict: bytes) -> None:
    (tmp_path / "verdict.json").write_bytes(verdict)
    assert script().outcome(tmp_path / "verdict.json", 0) == "error"
    whole = b'{"gate": {"outcome": "pass", "passed": true, "rows": [{"decides": true, "passed": true}]}}'
    (tmp_path / "verdict.json").write_bytes(whole)
    assert [script().outcome(tmp_path / "verdict.json", code) for code in (0, 1, 2)] == ["pass", "error", "error"]


def test_nothing_of_the_workspace_is_imported_and_the_child_gets_no_token(tmp_path: Path, forge: Forge) -> None:
    """Modules beside the tables that would tell, or take the place of, what Python and the package import."""
    told = tmp_path / "told"
    spy = f"import os\nopen({str(told)!r}, 'a').write(f'{{__name__}} {{os.environ.get(\"GATE_TOKEN\")}}\\n')\n"
    work = tmp_path / "work"
    work.mkdir()
    for name in ("click", "statistics", "numpy", "json", "zipfile", "venv", "sitecustomize", "harness_noise"):
        (work / f"{name}.py").write_text(spy)
    (work / "pip").mkdir()
    (work / "pip" / "__main__.py").write_text(spy)
    table(work / "new.csv", "new", 135)
    table(work / "old.csv", "old", 140)
    (work / "bar.yaml").write_text("tasks: [{name: new, metrics: [{name: score, value: 0.1}]}]\n")
    inputs = {"run": "new.csv", "baseline": "old.csv", "margin": "0.2", "arguments": "--junit=gate.xml -o report.md"}
    hostile = {"PYTHONPATH": str(work), "PYTHONSTARTUP": str(work / "click.py"), "GITHUB_WORKSPACE": str(work)}
    with mock.patch.dict(os.environ, hostile):
        code, summary, outputs = gate(work, forge, process=True, **inputs)
    assert (code, outputs["outcome"]) == (0, "pass"), summary
    assert not told.exists()
    assert (work / "gate.xml").is_file()
    assert (work / "report.md").is_file()
    with mock.patch.dict(os.environ, {"GATE_TOKEN": "secret", "GITHUB_TOKEN": "s", "ACTIONS_RUNTIME_TOKEN": "s"}):
        given = script().environment()
    assert not [name for name in given if "TOKEN" in name or name.startswith(("GATE_", "PYTHON"))]
    assert "PATH" in given


def test_every_option_of_the_gate_that_takes_a_path_is_made_absolute() -> None:
    """In the workspace, where the child does not run."""
    from harness_noise.extra.gate.cli import command

    named = {
        name for option in command.params for name in option.opts
        if name.startswith("-") and re.fullmatch(r".*\b(FILE|DIR|RUN)\b.*", str(option.metavar or ""))
    }  # fmt: skip
    assert named == set(script().PATHS)


def test_paths_of_the_inputs_lie_in_the_workspace() -> None:
    words = "--against a.csv --junit=x/y.xml -or.md --store s3://b/kept --task o -o /abs"
    with mock.patch.dict(os.environ, {"GITHUB_WORKSPACE": "/w", "GATE_ARGUMENTS": words}):
        assert script().arguments() == [
            "--against", "/w/a.csv", "--junit=/w/x/y.xml", "-o/w/r.md", "--store", "s3://b/kept", "--task", "o",
            "-o", "/abs",
        ]  # fmt: skip


def test_a_word_or_a_number_that_an_option_takes_instead_of_a_path_stays() -> None:
    from harness_noise.settings import WEIGHTS

    assert script().WORDS["--weights"] == tuple(WEIGHTS)
    words = "--weights=size --weights equal --weights w.csv --weights=0.5 --chance auto --chance=.25 --chance=c.csv"
    with mock.patch.dict(os.environ, {"GITHUB_WORKSPACE": "/w", "GATE_ARGUMENTS": words}):
        assert script().arguments() == [
            "--weights=size", "--weights", "equal", "--weights", "/w/w.csv", "--weights=/w/0.5", "--chance", "auto",
            "--chance=.25", "--chance=/w/c.csv",
        ]  # fmt: skip


def test_the_steps_run_isolated_outside_the_workspace_and_install_by_hash() -> None:
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    for step in action["runs"]["steps"]:
        assert step["working-directory"] == "${{ runner.temp }}"
        for line in step["run"].splitlines():
            assert re.search(r"python3? *\"? -I ", line) or line.startswith("python="), line
    assert "--require-hashes" in action["runs"]["steps"][0]["run"]
    assert "env" not in action["runs"]["steps"][0]


def test_the_lock_satisfies_the_package_and_has_hashes() -> None:
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    wanted = [
        *project["project"]["dependencies"],
        *extras["zstd"],
        *extras["parquet"],
        *project["build-system"]["requires"],
        "pyyaml",
    ]
    entries = re.sub(r"^#.*\n", "", (ROOT / ".github" / "gate.txt").read_text(encoding="utf-8"), flags=re.M)
    locked: dict[str, list[str]] = {}
    for entry in entries.replace("\\\n", " ").splitlines():
        named, *hashes = entry.split(" --hash=sha256:")
        assert hashes, entry
        assert all(re.fullmatch(r"[0-9a-f]{64} *", digest) for digest in hashes)
        pin = Requirement(named.strip())
        locked.setdefault(pin.name, []).append(str(pin.specifier).removeprefix("=="))
    for text in wanted:
        requirement = Requirement(text)
        assert locked[requirement.name]
        assert all(version in requirement.specifier for version in locked[requirement.name]), text


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit_and_keep_no_credentials(path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
    for step in (step for job in jobs for step in job.get("steps", ()) if "uses" in step):
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]), step
        if step["uses"].startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False

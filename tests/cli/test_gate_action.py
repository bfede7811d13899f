"""The action's script, of each outcome once a process: a fake event, a fake of the forge's API, real comparisons."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli import main

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".github" / "gate.py"


def table(path: Path, model: str, right: int) -> Path:
    rows = [f"q{i},{model},{int(i < right)}" for i in range(200)]
    path.write_text("question,model,score\n" + "\n".join(rows) + "\n")
    return path


class Forge(ThreadingHTTPServer):
    """Comments in pages, artifacts, and what was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: list[dict[str, Any]] = []
        self.artifacts: list[dict[str, Any]] = []
        self.archive = b""
        self.forbidden = False
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Forge

    def do_GET(self) -> None:
        self.answer("GET")

    def do_POST(self) -> None:
        self.answer("POST")

    def do_PATCH(self) -> None:
        self.answer("PATCH")

    def answer(self, method: str) -> None:
        forge, path = self.server, self.path.partition("?")[0]
        forge.asked.append(f"{method} {path}")
        content = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
        if self.headers["Authorization"] != "Bearer secret" or forge.forbidden:
            return self.send(403, {"message": "Resource not accessible by integration"})
        if path.endswith("/zip"):
            return self.send(200, forge.archive)
        if path.endswith("/actions/artifacts"):
            return self.send(200, {"artifacts": forge.artifacts})
        if method == "POST":
            forge.comments.append({"id": len(forge.comments), **content})
        elif method == "PATCH":
            forge.comments[int(path.rsplit("/", 1)[1])].update(content)
        else:
            page = int(re.findall(r"[?&]page=(\d+)", self.path)[0])
            return self.send(200, forge.comments[100 * (page - 1) : 100 * page])
        return self.send(200, {})

    def send(self, code: int, content: Any) -> None:
        kind, data = "application/json", content
        if not isinstance(content, bytes):
            data = json.dumps(content).encode()
        else:
            kind = "application/zip"
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def forge() -> Iterator[Forge]:
    server = Forge()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@cache
def script() -> ModuleType:
    """The script as a module, whose commands run in this process."""
    spec = importlib.util.spec_from_file_location("gate_of_the_action", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.noise = noise
    return module


def noise(*words: str) -> subprocess.CompletedProcess[str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(words))
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def gate(tmp_path: Path, forge: Forge, *, process: bool = False, **inputs: str) -> tuple[int, str, dict[str, str]]:
    """The exit code, the summary, and the outputs; with `process` as a runner starts it."""
    event = tmp_path / "event.json"
    pull = {"number": 7, "base": {"ref": "main"}}
    event.write_text(json.dumps({"pull_request": pull, "repository": {"default_branch": "main"}}))
    for name in ("summary", "output"):
        (tmp_path / name).write_text("")
    environment = os.environ | {
        "GITHUB_EVENT_PATH": str(event), "GITHUB_API_URL": forge.url, "GITHUB_REPOSITORY": "some/where",
        "GITHUB_RUN_ID": "99", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "GITHUB_OUTPUT": str(tmp_path / "output"), "RUNNER_TEMP": str(tmp_path), "GATE_TOKEN": "secret",
        "GATE_COMMENT": "true", "GATE_NAME": "gate", "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "adapters")]),
        **{f"GATE_{name.upper()}": value for name, value in inputs.items()},
    }  # fmt: skip
    if process:
        done = subprocess.run([sys.executable, SCRIPT], env=environment, capture_output=True, text=True, cwd=tmp_path)
        assert "Traceback" not in done.stderr, done.stderr
        code = done.returncode
    else:
        with mock.patch.dict(os.environ, environment), contextlib.chdir(tmp_path):
            code = script().main()
    outputs = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    return code, (tmp_path / "summary").read_text(), outputs


def test_a_regression_fails_and_is_told_in_summary_comment_and_output(tmp_path: Path, forge: Forge) -> None:
    new, old = table(tmp_path / "new.csv", "new", 100), table(tmp_path / "old.csv", "old", 140)
    code, summary, outputs = gate(tmp_path, forge, process=True, run=str(new), baseline=str(old), margin="0.05")
    assert (code, outputs["outcome"]) == (1, "regression")
    assert "❌ a regression" in summary
    assert "A − B = −0.2 is shown to be below −0.05" in summary
    assert "A = new, B = old" in summary
    assert Path(outputs["report"]).read_text() == summary
    (comment,) = forge.comments
    assert comment["body"] == f"<!-- harness-noise gate -->\n{summary}"


def test_a_loss_within_the_margin_passes(tmp_path: Path, forge: Forge) -> None:
    new, old = table(tmp_path / "new.csv", "new", 135), table(tmp_path / "old.csv", "old", 140)
    code, summary, outputs = gate(tmp_path, forge, process=True, run=str(new), baseline=str(old), margin="0.1")
    assert (code, outputs["outcome"]) == (0, "pass")
    assert "✅ no regression" in summary


def test_the_second_time_the_one_comment_is_changed(tmp_path: Path, forge: Forge) -> None:
    forge.comments = [{"id": i, "body": f"a person's comment {i}"} for i in range(130)]
    new, old = table(tmp_path / "new.csv", "new", 100), table(tmp_path / "old.csv", "old", 140)
    gate(tmp_path, forge, run=str(new), baseline=str(old))
    table(new, "new", 141)
    gate(tmp_path, forge, run=str(new), baseline=str(old))
    ours = [item for item in forge.comments if "harness-noise" in item["body"]]
    assert len(ours) == 1
    assert "✅" in ours[0]["body"]
    assert [ask for ask in forge.asked if not ask.startswith("GET")] == [
        "POST /repos/some/where/issues/7/comments", "PATCH /repos/some/where/issues/comments/130"
    ]  # fmt: skip


def test_a_comment_that_may_not_be_written_changes_no_outcome(tmp_path: Path, forge: Forge) -> None:
    forge.forbidden = True
    new, old = table(tmp_path / "new.csv", "new", 141), table(tmp_path / "old.csv", "old", 140)
    assert gate(tmp_path, forge, run=str(new), baseline=str(old))[0] == 0
    assert forge.comments == []
    assert gate(tmp_path, forge, run=str(new), baseline=str(old), comment="false")[0] == 0


def test_the_baseline_is_the_newest_artifact_of_the_base_branch(tmp_path: Path, forge: Forge) -> None:
    def artifact(number: int, day: int, branch: str = "main", run: int = 1, expired: bool = False) -> dict[str, Any]:
        return {
            "archive_download_url": f"{forge.url}/{number}/zip", "created_at": f"2026-01-{day:02}T00:00:00Z",
            "expired": expired, "workflow_run": {"id": run, "head_branch": branch},
        }  # fmt: skip

    forge.artifacts = [
        artifact(1, 3), artifact(2, 5), artifact(3, 9, branch="feature"), artifact(4, 8, run=99),
        artifact(5, 7, expired=True),
    ]  # fmt: skip
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(table(tmp_path / "old.csv", "old", 140), "scores/old.csv")
    forge.archive = packed.getvalue()
    new = table(tmp_path / "new.csv", "new", 100)
    code, _, _ = gate(tmp_path, forge, run=str(new), artifact="scores", baseline="scores/old.csv")
    assert code == 1
    assert [ask for ask in forge.asked if ask.endswith("/zip")] == ["GET /2/zip"]
    forge.artifacts = []
    code, summary, outputs = gate(tmp_path, forge, run=str(new), artifact="scores")
    assert (code, outputs["outcome"]) == (2, "error")
    assert "no artifact 'scores' of an earlier run on main" in summary


def test_the_budget_tells_what_it_could_show_and_changes_nothing(tmp_path: Path, forge: Forge) -> None:
    new, old = table(tmp_path / "new.csv", "new", 135), table(tmp_path / "old.csv", "old", 140)
    code, summary, _ = gate(tmp_path, forge, run=str(new), baseline=str(old), margin="0.01", budget="500")
    assert code == 0
    shown, assured = shown_by(summary, 500)[0]
    assert 0.01 < shown < assured


def shown_by(summary: str, budget: int) -> list[tuple[float, float]]:
    """The losses that the budget shows, of each row, with and without assurance."""
    lines = summary.partition(f"**What {budget:,} questions could show")[2].splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    return [(float(cell[-2]), float(cell[-1])) for cell in cells[2:]]


def test_the_budget_plans_as_the_comparison_was_made(tmp_path: Path, forge: Forge) -> None:
    """K answers, clusters, columns and range are the comparison's; the plan is that of the library."""
    rng = np.random.default_rng(4)
    p = np.repeat(rng.random(30), 4)
    for model, shift in (("new", np.zeros(120)), ("old", np.repeat(rng.normal(0, 0.4, 30), 4))):
        rows = [
            f"q{i},{i // 4},{model},{k},{int(100 * (rng.random() < p[i] + shift[i]))}"
            for i in range(120)
            for k in range(5)
        ]
        (tmp_path / f"{model}.csv").write_text("item,story,model,try,points\n" + "\n".join(rows) + "\n")
    new, old = str(tmp_path / "new.csv"), str(tmp_path / "old.csv")
    columns = {"question": "item", "score": "points", "repeat": "try"}
    arguments = "--columns question=item,score=points,repeat=try --cluster story --range 0,100"
    code, summary, _ = gate(tmp_path, forge, run=new, baseline=old, budget="400", arguments=arguments)
    assert code == 0
    row = hn.compare(new, old, columns=columns, cluster="story", range=(0, 100)).rows[0]
    plan = hn.plan(runs=[row], n=400, repeats=5)
    assert row.n_clusters == 30
    assert plan.plug_in is not None
    (shown,) = shown_by(summary, 400)
    assert shown == pytest.approx((plan.plug_in.mde, plan.mde), rel=0.02)
    whole = hn.plan(runs=[new, old], n=400, repeats=5, columns=columns, cluster="story", range=(0, 100))
    assert plan.plug_in.mde == pytest.approx(whole.plug_in.mde)  # type: ignore[union-attr]
    assert hn.plan(runs=[row], n=400).mde > 1.05 * plan.mde


@pytest.mark.parametrize("budget", ["lots", "1e3", "-5", "0", "1.5", "1,000"])
def test_a_budget_that_is_no_number_does_not_decide(tmp_path: Path, forge: Forge, budget: str) -> None:
    new, old = table(tmp_path / "new.csv", "new", 135), table(tmp_path / "old.csv", "old", 140)
    code, summary, outputs = gate(tmp_path, forge, run=str(new), baseline=str(old), margin="0.1", budget=budget)
    assert (code, outputs["outcome"]) == (0, "pass")
    assert f"The budget `{budget}` is not a number of questions" in summary


def test_the_budget_is_at_the_level_that_all_rows_leave_one(tmp_path: Path, forge: Forge) -> None:
    for model, right in (("new", 60), ("old", 70)):
        rows = [f"t{t},q{i},{model},{int((i * 37 + t) % 100 < right)}" for t in range(4) for i in range(100)]
        (tmp_path / f"{model}.csv").write_text("task,question,model,score\n" + "\n".join(rows) + "\n")
    new, old = str(tmp_path / "new.csv"), str(tmp_path / "old.csv")
    row = hn.compare(new, old).rows[0]
    for arguments, alpha in (("", 0.0125), ("--adjust none", 0.05)):
        _, summary, _ = gate(tmp_path, forge, run=new, baseline=old, margin="0.5", budget="300", arguments=arguments)
        plan = hn.plan(runs=[row], n=300, alpha=alpha)
        assert plan.plug_in is not None
        rows = shown_by(summary, 300)
        assert len(rows) == 4
        assert (0.5 + plan.plug_in.mde, 0.5 + plan.mde) == pytest.approx(rows[0], rel=0.02)
    code, summary, _ = gate(tmp_path, forge, run=new, baseline=old, margin="0.5", budget="300", arguments="-o x.md")
    assert code == 0
    assert len(shown_by((tmp_path / "x.md").read_text(), 300)) == 4


def test_groups_arguments_thresholds_and_junit(tmp_path: Path, forge: Forge) -> None:
    for model, right in (("new", 60), ("old", 70)):
        rows = [f"t{t},q{i},{model},{int((i * 37 + t) % 100 < right)}" for t in range(4) for i in range(100)]
        (tmp_path / f"{model}.csv").write_text("task,question,model,score\n" + "\n".join(rows) + "\n")
    new, old = str(tmp_path / "new.csv"), str(tmp_path / "old.csv")
    arguments = "--group 'all=t*' --junit gate.xml --self-test"
    code, summary, outputs = gate(tmp_path, forge, run=new, baseline=old, margin="0.02", arguments=arguments)
    assert (code, outputs["outcome"]) == (1, "regression")
    assert summary.count("| FAIL |") == 5
    assert "What this gate is worth" in summary
    assert (tmp_path / "gate.xml").read_text().count("<failure") == 6
    (tmp_path / "bar.yaml").write_text(
        "tasks:\n" + "".join(f"- {{name: t{t}, metrics: [{{name: score, value: 0.5}}]}}\n" for t in range(4))
    )
    arguments = "--thresholds bar.yaml --rule no-loss"
    code, summary, outputs = gate(tmp_path, forge, run=old, arguments=arguments)
    assert (code, outputs["outcome"]) == (0, "pass")
    code, summary, outputs = gate(tmp_path, forge, process=True, run=new, arguments=arguments)
    assert (code, outputs["outcome"]) == (2, "error")
    assert "⚠ cannot be judged" in summary
    assert "not decided" in summary


def test_what_cannot_be_compared_is_an_error_with_a_reason(tmp_path: Path, forge: Forge) -> None:
    new = table(tmp_path / "new.csv", "new", 135)
    for inputs, reason in (
        ({"baseline": str(tmp_path / "nothing")}, "nothing"),
        ({}, "name the run to compare with"),
        ({"baseline": str(new), "margin": "-1"}, "margin"),
    ):
        code, summary, outputs = gate(tmp_path, forge, run=str(new), **inputs)
        assert (code, outputs["outcome"]) == (2, "error")
        assert reason in summary


def test_the_action_passes_every_input_to_the_script() -> None:
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    step = action["runs"]["steps"][-1]
    given = set(re.findall(r"inputs\.([\w-]+)", json.dumps(step["env"])))
    assert given == set(action["inputs"])
    text = SCRIPT.read_text(encoding="utf-8")
    for name in step["env"]:
        assert f'setting("{name.removeprefix("GATE_")}")' in text.replace("'", '"'), name
    assert all("${{" not in part["run"] for part in action["runs"]["steps"])
    assert step["id"] in action["outputs"]["outcome"]["value"]


@pytest.mark.parametrize(("right", "code"), [(100, 1), (141, 0)])
def test_the_last_step_for_gitlab_is_shell_that_says_the_same(tmp_path: Path, right: int, code: int) -> None:
    yaml = pytest.importorskip("yaml")
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "gate.md").read_text(encoding="utf-8"), re.S)
    script = yaml.safe_load(blocks[-1])["gate"]["script"][-1].replace("results/ ", "results/scores.csv ")
    for folder, model, count in (("results", "new", right), ("baseline/results", "old", 140)):
        (tmp_path / folder).mkdir(parents=True)
        table(tmp_path / folder / "scores.csv", model, count)
    (tmp_path / "harness-noise").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness_noise "$@"\n')
    (tmp_path / "harness-noise").chmod(0o755)
    paths = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "adapters")]),
    }
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=os.environ | paths, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert "| 200 |" in done.stdout

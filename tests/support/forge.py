"""The script of the action with a fake of the forge, which redirects, refuses and lists forks."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

from harness_noise.cli import main

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".github" / "gate.py"


def table(path: Path, model: str, right: int) -> Path:
    rows = [f"q{i},{model},{int(i < right)}" for i in range(200)]
    path.write_text("question,model,score\n" + "\n".join(rows) + "\n")
    return path


class Forge(ThreadingHTTPServer):
    """Comments in pages, artifacts of any run, archives behind a redirect to another host, and what was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: list[dict[str, Any]] = []
        self.artifacts: list[dict[str, Any]] = []
        self.runs: dict[int, dict[str, Any]] = {}
        self.history: list[str] = []
        """Commits of the base branch, the newest first."""
        self.archive = b""
        self.forbidden = ""
        """A part of the paths that are refused."""
        self.total: int | None = None
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.elsewhere = f"http://localhost:{self.server_address[1]}/signed"

    def add(
        self, number: int, day: int, sha: str = "base", *, event: str = "push", fork: bool = False,
        branch: str = "main", expired: bool = False, conclusion: str | None = "success",
    ) -> None:  # fmt: skip
        """An artifact and its run; a fork's run is named by the fork's own branch, which may be called main, too."""
        home, head = {"id": 1}, {"id": 2 if fork else 1}
        self.runs[number] = {
            "id": number, "event": event, "conclusion": conclusion, "status": "completed", "head_sha": sha,
            "head_branch": branch, "repository": home, "head_repository": head,
        }  # fmt: skip
        self.artifacts.append({
            "id": number, "name": "scores", "created_at": f"2026-01-{day:02}T00:00:00Z", "expired": expired,
            "workflow_run": {
                "id": number, "head_branch": branch, "head_sha": sha, "repository_id": 1,
                "head_repository_id": head["id"],
            },
        })  # fmt: skip


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
        if path == "/signed":  # as storage does, which knows the signature alone
            known = self.headers["Authorization"] is None and self.headers["Host"].startswith("localhost")
            return self.send(200, forge.archive) if known else self.send(400, {"message": "one kind of credentials"})
        if self.headers["Authorization"] != "Bearer secret" or (forge.forbidden and forge.forbidden in path):
            return self.send(403, {"message": "Resource not accessible by integration"})
        if path.endswith("/zip"):
            self.send_response(302)
            self.send_header("Location", forge.elsewhere)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        return self.send(*self.asked_for(method, path, content))

    def asked_for(self, method: str, path: str, content: Any) -> tuple[int, Any]:
        forge, last = self.server, path.rpartition("/")[2]
        if path.endswith("/graphql"):
            return 200, {"data": {"viewer": {"login": "gates[bot]"}}}
        if path.endswith("/actions/artifacts"):
            total = len(forge.artifacts) if forge.total is None else forge.total
            return 200, {"artifacts": forge.artifacts, "total_count": total}
        if "/actions/runs/" in path:
            return 200, forge.runs[int(last)]
        if "/compare/" in path:
            old, new = last.split("...")
            if old not in forge.history:
                return 404, {"message": "Not Found"}
            behind = forge.history.index(old) >= forge.history.index(new)
            return 200, {"status": "ahead" if behind else "behind"}
        if method == "POST":
            forge.comments.append({"id": len(forge.comments), "user": {"login": "gates[bot]"}, **content})
        elif method == "PATCH":
            forge.comments[int(last)].update(content)
        else:
            page = int(re.findall(r"[?&]page=(\d+)", self.path)[0])
            return 200, forge.comments[100 * (page - 1) : 100 * page]
        return 200, {}

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
    pull = {"number": 7, "base": {"ref": "main", "sha": "base"}}
    event.write_text(json.dumps({"pull_request": pull, "repository": {"default_branch": "main"}}))
    for name in ("summary", "output"):
        (tmp_path / name).write_text("")
    environment = os.environ | {
        "GITHUB_EVENT_PATH": str(event), "GITHUB_API_URL": forge.url, "GITHUB_REPOSITORY": "some/where",
        "GITHUB_GRAPHQL_URL": f"{forge.url}/graphql", "GITHUB_WORKSPACE": str(tmp_path),
        "GITHUB_RUN_ID": "99", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "GITHUB_OUTPUT": str(tmp_path / "output"), "RUNNER_TEMP": str(tmp_path), "GATE_TOKEN": "secret",
        "GATE_COMMENT": "true", "GATE_NAME": "gate",
        **{f"GATE_{name.upper()}": value for name, value in inputs.items()},
    }  # fmt: skip
    if process:
        done = subprocess.run(
            [sys.executable, "-I", SCRIPT], env=environment, capture_output=True, text=True, cwd=tmp_path
        )
        assert "Traceback" not in done.stderr, done.stderr
        code = done.returncode
    else:
        with mock.patch.dict(os.environ, environment), contextlib.chdir(tmp_path):
            code = script().main()
    outputs = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    return code, (tmp_path / "summary").read_text(), outputs

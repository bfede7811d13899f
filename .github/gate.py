"""What `action.yml` runs: compare two runs, write the job summary and one comment, fail on a regression.

It takes the inputs from `GATE_*` and the rest from the variables that the runner sets, and needs only Python and
the installed package. Exit codes are those of `compare`: 0 pass, 1 a regression, 2 input that cannot be used.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

LONGEST = 60_000  # a comment may have 65,536 characters
MOST_PLANS = 10
OUTCOMES = {0: "pass", 1: "regression"}


class UnusableError(Exception):
    """One paragraph for the person who set the gate up."""


def setting(name: str) -> str:
    return os.environ.get(f"GATE_{name}", "").strip()


def noise(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "harness_noise", *words], capture_output=True, text=True)


def api(method: str, url: str, content: Any = None) -> Any:
    """One request to the API of the forge; the answer's JSON, or its bytes for an archive."""
    headers = {"Authorization": f"Bearer {setting('TOKEN')}", "Accept": "application/vnd.github+json"}
    data = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        body = answer.read()
    return json.loads(body) if "json" in answer.headers.get("Content-Type", "") else body


def repository() -> str:
    return f"{os.environ.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{os.environ['GITHUB_REPOSITORY']}"


def pages(url: str, key: str = "") -> list[dict[str, Any]]:
    """All items of a list that comes in pages."""
    found: list[dict[str, Any]] = []
    for page in range(1, 51):
        answer = api("GET", f"{url}{'&' if '?' in url else '?'}per_page=100&page={page}")
        items = answer[key] if key else answer
        found += items
        if len(items) < 100:
            break
    return found


def event() -> dict[str, Any]:
    path = os.environ.get("GITHUB_EVENT_PATH", "")
    found: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    return found


def baseline(folder: Path) -> str:
    """The path of the baseline; out of the newest artifact of the base branch, if that is asked for."""
    wanted, path = setting("ARTIFACT"), setting("BASELINE")
    if not wanted:
        if not path:
            raise UnusableError("neither baseline nor baseline-artifact is given: name the run to compare with")
        return path
    found = event()
    branch = found.get("pull_request", {}).get("base", {}).get("ref") or found.get("repository", {}).get(
        "default_branch"
    )
    items = pages(f"{repository()}/actions/artifacts?name={urllib.parse.quote(wanted)}", "artifacts")
    ours = [
        item
        for item in items
        if not item["expired"]
        and (item.get("workflow_run") or {}).get("head_branch") == branch
        and str((item.get("workflow_run") or {}).get("id")) != os.environ.get("GITHUB_RUN_ID")
    ]
    if not ours:
        raise UnusableError(
            f"no artifact {wanted!r} of an earlier run on {branch}: let the workflow upload one there "
            "(actions/upload-artifact), or give a baseline as a path"
        )
    newest = max(ours, key=lambda item: item["created_at"])
    with zipfile.ZipFile(io.BytesIO(api("GET", newest["archive_download_url"]))) as archive:
        archive.extractall(folder)  # it leaves out roots and parts that climb
    return str(folder / path) if path else str(folder)


def plans(words: list[str]) -> list[str]:
    """What the budget could show, row by row, with the noise that the comparison found; no reason to fail."""
    text = setting("BUDGET")
    if not text:
        return []
    title = ["", "**What the budget could show**", ""]
    if not text.isdecimal() or int(text) < 2:
        return [
            *title,
            f"- The budget `{text}` is not a number of questions, such as 500. The outcome does not depend on it.",
        ]
    try:
        rows = json.loads(noise(*words, "--format", "json", "-q").stdout)["comparisons"]
    except (ValueError, KeyError):  # the arguments sent it elsewhere
        return [
            *title,
            "- The comparison cannot be read again as JSON: leave `--format` and `-o` out of the arguments.",
        ]
    lines = [f"- {row['task']} {row['metric']}: {seen(row, int(text), len(rows))}" for row in rows[:MOST_PLANS]]
    if len(rows) > MOST_PLANS:
        lines.append(f"- … and {len(rows) - MOST_PLANS} rows more")
    return [*title, *lines]


def seen(row: dict[str, Any], budget: int, rows: int) -> str:
    """The smallest true loss that so many questions show in one row, at the level that Holm leaves it."""
    import harness_noise as hn
    from harness_noise.results.rows import Difference

    known = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    pilot = Difference(**{name: value for name, value in known.items() if name in Difference.__dataclass_fields__})
    K = 1 if pilot.var_prediction is None else min(pilot.repeats_a, pilot.repeats_b)
    adjusted = rows > 1 and "--adjust none" not in " ".join(shlex.split(setting("ARGUMENTS"))).replace("=", " ")
    alpha = (1 - pilot.level) / (rows if adjusted else 1)
    try:
        plan = hn.plan(runs=[pilot], n=budget, repeats=K, alpha=alpha)
    except ValueError as error:
        return str(error)
    plug_in, margin = plan.plug_in, float(setting("MARGIN") or 0)
    answers = "one answer" if K == 1 else f"{K} answers"
    line = f"{budget:,} questions with {answers} each show a true loss of "
    if plug_in is not None:
        line += f"{plug_in.mde:.3g} with 80 % power if the noise is what these runs show, and of "
    line += f"{plan.mde:.3g}" if plug_in is not None else f"{plan.mde:.3g} with 80 % power"
    if plan.assurance is not None:
        whose = "the noise" if plug_in is None else "it"
        line += f" if {whose} is as large as {100 * plan.assurance:.0f} % of such runs would leave possible"
    if adjusted:
        line += f" (Holm over {rows} rows)"
    if 0 < margin < plan.mde:
        line += f"; not one of {margin:g}, the margin: a pass says less than it seems"
    return line


def judge(run: str, against: str) -> tuple[int, str]:
    """The exit code and the report."""
    words = ["compare", run, against, "--fail-on", "regression", "--margin", setting("MARGIN") or "0"]
    words += shlex.split(setting("ARGUMENTS"))
    done = noise(*words, "--format", "markdown")
    if done.returncode not in OUTCOMES:
        raise UnusableError(done.stderr.strip() or f"compare ended with exit code {done.returncode}")
    said = [line.removeprefix("harness-noise: ") for line in done.stderr.splitlines()]
    head = "✅ no regression" if done.returncode == 0 else "❌ a regression"
    lines = [f"### {setting('NAME') or 'gate'}: {head}", "", *(f"> {line}" for line in said), "", done.stdout.strip()]
    return done.returncode, "\n".join([*lines, *plans(words)]) + "\n"


def comment(report: str) -> None:
    """Write the report into the one comment that carries our mark, or make it."""
    number = (event().get("pull_request") or {}).get("number")
    if setting("COMMENT") != "true" or number is None or not setting("TOKEN"):
        return
    mark = f"<!-- harness-noise {setting('NAME') or 'gate'} -->"
    body = f"{mark}\n{report if len(report) <= LONGEST else report[:LONGEST].rpartition(chr(10))[0] + '…'}"
    url = f"{repository()}/issues"
    try:
        ours = [item for item in pages(f"{url}/{number}/comments") if item["body"].startswith(mark)]
        if ours:
            api("PATCH", f"{url}/comments/{ours[0]['id']}", {"body": body})
        else:
            api("POST", f"{url}/{number}/comments", {"body": body})
    except urllib.error.URLError as error:  # a pull request from a fork may not write; the summary has it all
        print(f"::warning::no comment: {error}")


def write(variable: str, text: str) -> None:
    if path := os.environ.get(variable):
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(text)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        try:
            code, report = judge(setting("RUN"), baseline(Path(folder)))
        except (UnusableError, urllib.error.URLError, ValueError) as error:
            code, report = 2, f"### {setting('NAME') or 'gate'}: ⚠ cannot be judged\n\n{error}\n"
            print(f"::error::{' '.join(str(error).split())}")
    print(report)
    path = Path(os.environ.get("RUNNER_TEMP", tempfile.gettempdir())) / "harness-noise-report.md"
    path.write_text(report, encoding="utf-8")
    write("GITHUB_STEP_SUMMARY", report)
    write("GITHUB_OUTPUT", f"outcome={OUTCOMES.get(code, 'error')}\nreport={path}\n")
    comment(report)
    return code


if __name__ == "__main__":
    sys.exit(main())

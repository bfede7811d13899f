"""What `action.yml` runs: `harness-noise gate`, the job summary, and one comment; it fails on a regression.

It takes the inputs from `GATE_*` and the rest from the variables that the runner sets, and needs only Python and the
installed package. Nothing of the checked-out code is ever imported: this script and its child run isolated (`-I`),
outside the workspace, and the child gets no token. Only a whole verdict of `gate`, as JSON, is a pass.

Exit codes: 0 pass, or nothing to compare with yet; 1 a regression; 2 what cannot be judged.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LONGEST = 60_000  # a comment may have 65,536 characters
TRUSTED = "push", "schedule", "workflow_dispatch"
"""Events whose runs may be a baseline: each runs what the repository itself has, never what a pull request brings."""
PATHS = (
    "--against", "--thresholds", "--labels", "--format-file", "--weights", "--chance", "--store", "--junit",
    "--verdict", "--github", "-o",
)  # fmt: skip
"""Options of `gate` whose value is a path."""
WORDS = {"--weights": ("equal", "size", "none"), "--chance": ("auto",)}
"""What they take instead of a path; `--chance` a number, too."""
HEADS = {
    "pass": "✅ no regression",
    "regression": "❌ a regression",
    "no baseline": "no baseline yet; the first push to {branch} stores one",
    "error": "⚠ cannot be judged",
}
CODES = {"pass": 0, "regression": 1, "no baseline": 0}


class UnusableError(Exception):
    """One paragraph for the person who set the gate up."""


class NoBaselineError(Exception):
    """The list of artifacts was read whole, and no run of the base branch has stored any."""


def setting(name: str) -> str:
    return os.environ.get(f"GATE_{name}", "").strip()


def absolute(path: str) -> str:
    """A path of an input, which is meant in the workspace; a URL as it is."""
    return path if not path or "://" in path else str(Path(os.environ.get("GITHUB_WORKSPACE", "")).absolute() / path)


def placed(option: str, value: str) -> str:
    """The value of an option that takes a path, made absolute unless it is none."""
    if value in WORDS.get(option, ()):
        return value
    if option == "--chance":
        with contextlib.suppress(ValueError):
            float(value)
            return value
    return absolute(value)


def arguments() -> list[str]:
    """The words of the input `arguments`, their paths made absolute."""
    words = shlex.split(setting("ARGUMENTS"))
    out: list[str] = []
    for word in words:
        name, joint, value = word.partition("=")
        if out and out[-1] in PATHS:
            out.append(placed(out[-1], word))
        elif joint and name in PATHS:
            out.append(f"{name}={placed(name, value)}")
        elif word.startswith("-o") and len(word) > 2:
            out.append(f"-o{absolute(word[2:])}")
        else:
            out.append(word)
    return out


def environment() -> dict[str, str]:
    """What the child gets: neither the inputs, the token among them, nor anything else that is called one."""
    secret = "GATE_", "ACTIONS_", "INPUT_", "PYTHON"
    return {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith(secret) and "TOKEN" not in name.upper()
    }


def noise(*words: str) -> subprocess.CompletedProcess[str]:
    """The command, in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            [sys.executable, "-I", "-X", "utf8", "-m", "harness_noise", *words],
            cwd=folder, env=environment(), capture_output=True, text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip


def request(method: str, url: str, content: Any = None) -> urllib.request.Request:
    """A request to the forge, whose token stays there: the signed address of an archive refuses it."""
    data = None if content is None else json.dumps(content).encode()
    made = urllib.request.Request(url, data=data, method=method, headers={"Accept": "application/vnd.github+json"})
    made.add_unredirected_header("Authorization", f"Bearer {setting('TOKEN')}")
    return made


def api(method: str, url: str, content: Any = None) -> Any:
    """The JSON that the forge answers."""
    with urllib.request.urlopen(request(method, url, content), timeout=60) as answer:
        return json.loads(answer.read())


def repository() -> str:
    return f"{os.environ.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{os.environ['GITHUB_REPOSITORY']}"


def pages(url: str, key: str = "") -> Iterator[dict[str, Any]]:
    """All items of a list that comes in pages.

    Raises:
        UnusableError: the list cannot be read whole.
    """
    n = 0
    for page in range(1, 101):
        answer = api("GET", f"{url}{'&' if '?' in url else '?'}per_page=100&page={page}")
        items = answer[key] if key else answer
        n += len(items)
        yield from items
        if len(items) < 100:
            if key and n < answer["total_count"]:
                raise UnusableError(f"the list of {key} was not read whole: {n} of {answer['total_count']}")
            return
    raise UnusableError(f"the list at {url} does not end")


def event() -> dict[str, Any]:
    path = os.environ.get("GITHUB_EVENT_PATH", "")
    found: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    return found


def base() -> tuple[str, str]:
    """The branch that the baseline is of, and its commit."""
    found = event()
    pull, queue = found.get("pull_request", {}).get("base", {}), found.get("merge_group", {})
    branch = pull.get("ref") or queue.get("base_ref", "").removeprefix("refs/heads/")
    before = found.get("before") or ""  # all zeros: the branch is new
    commit = pull.get("sha") or queue.get("base_sha") or (before if before.strip("0") else "")
    branch = branch or os.environ.get("GITHUB_REF_NAME") or found.get("repository", {}).get("default_branch", "")
    return branch, commit or os.environ.get("GITHUB_SHA", "")


def newest(name: str) -> dict[str, Any]:
    """The newest artifact of that name whose run may be a baseline.

    That is a run of this repository itself, by an event that a pull request cannot cause, which has succeeded at the
    base commit or one before it.

    Raises:
        NoBaselineError: there is none, nor any that should have been one.
        UnusableError: those of the base branch cannot be used; says why.
    """
    branch, commit = base()
    if not commit:
        raise UnusableError("the event names no commit to which a baseline could belong: give it as a path")
    items = list(pages(f"{repository()}/actions/artifacts?name={urllib.parse.quote(name)}", "artifacts"))
    why, known = "", dict[str, bool]()
    for item in sorted(items, key=lambda item: item["created_at"], reverse=True):
        of = item["workflow_run"] or {}
        if item["name"] != name or not of or of["head_repository_id"] != of["repository_id"]:
            continue
        if str(of["id"]) == os.environ.get("GITHUB_RUN_ID"):
            continue
        run = api("GET", f"{repository()}/actions/runs/{int(of['id'])}")
        if run["event"] not in TRUSTED or run["head_repository"]["id"] != run["repository"]["id"]:
            continue
        sha = run["head_sha"]
        if sha not in known:
            known[sha] = is_ancestor(sha, commit)
        problem = ""
        if not known[sha]:
            problem = f"its commit {sha[:7]} is not in the history of {commit[:7]}"
        elif run["conclusion"] != "success":
            problem = f"its run has not succeeded ({run['conclusion'] or run['status']})"
        elif item["expired"]:
            problem = "it has expired"
        if not problem:
            return item | {"run": run}
        if known[sha] or run["head_branch"] == branch:  # else another branch's, which no baseline is expected of
            why = why or f"the newest artifact {name!r} of {branch} cannot be used: {problem}"
    if why:
        raise UnusableError(f"{why}. Run the workflow on {branch} again, or give a baseline as a path")
    raise NoBaselineError


def is_ancestor(sha: str, commit: str) -> bool:
    """Whether a commit is the other, or one that came before it."""
    if sha == commit:
        return True
    quoted = f"{urllib.parse.quote(sha, safe='')}...{urllib.parse.quote(commit, safe='')}"
    try:
        status = api("GET", f"{repository()}/compare/{quoted}?per_page=1")["status"]
    except urllib.error.HTTPError as error:
        if error.code == 404:  # it is no longer in the repository: a branch was rewritten
            return False
        raise
    return bool(status in ("ahead", "identical"))


def unpacked(item: dict[str, Any], folder: Path) -> None:
    """Unpack an artifact into a folder."""
    url = f"{repository()}/actions/artifacts/{int(item['id'])}/zip"
    with tempfile.TemporaryFile() as file:
        with urllib.request.urlopen(request("GET", url), timeout=60) as answer:
            shutil.copyfileobj(answer, file)
        try:
            with zipfile.ZipFile(file) as archive:
                archive.extractall(folder)  # it leaves out roots and parts that climb
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
            raise UnusableError(f"the artifact {item['name']!r} is no archive that can be unpacked ({error})") from None


def age(created: str) -> str:
    seconds = (datetime.now(UTC) - datetime.fromisoformat(created)).total_seconds()
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{seconds // size:.0f} {name}{'s' * (seconds >= 2 * size)} old"
    return "new"


def baseline(folder: Path) -> tuple[str, str]:
    """The path of the baseline, out of an artifact if that is asked for, and what is to be said of it."""
    wanted, path = setting("ARTIFACT"), setting("BASELINE")
    if not wanted:
        named = {word.partition("=")[0] for word in arguments()}
        if not path and not {"--floor", "--thresholds", "--against"} & named:
            raise UnusableError("neither baseline nor baseline-artifact is given: name the run to compare with")
        return absolute(path), ""
    item = newest(wanted)
    unpacked(item, folder)
    run = item["run"]
    said = f"baseline: {run['head_branch']}@{run['head_sha'][:7]}, {age(item['created_at'])}"
    return str(folder / path) if path else str(folder), said


def outcome(verdict: Path, code: int) -> str:
    """What a verdict says, if it is whole and agrees with itself and the exit code."""
    try:
        gate = json.loads(verdict.read_bytes())["gate"]
        decided = [row["passed"] for row in gate["rows"] if row["decides"]]
        said = gate["outcome"], gate["passed"], code
    except (OSError, ValueError, LookupError, TypeError):
        return "error"
    if said == ("pass", True, 0) and any(decided) and False not in decided:
        return "pass"
    return "regression" if said == ("fail", False, 1) and False in decided else "error"


def judge(run: str, against: str, of: str) -> tuple[str, str]:
    """The outcome and the report."""
    more = arguments()
    words = ["gate", absolute(run), *(["--against", against] if against else []), *more]
    if not {"--ratio", "--margin"} & {word.partition("=")[0] for word in more}:
        words += ["--margin", setting("MARGIN") or "0"]
    with tempfile.TemporaryDirectory() as folder:
        verdict = Path(folder) / "verdict.json"
        done = noise(*words, "--format", "markdown", "--verdict", str(verdict))
        found = outcome(verdict, done.returncode)
        if not verdict.exists():
            raise UnusableError(done.stderr.strip() or f"gate gave no verdict (exit code {done.returncode})")
    told = [line.removeprefix("harness-noise: ") for line in done.stderr.splitlines() if str(verdict) not in line]
    lines = [*(f"> {line}" for line in told if line), "", done.stdout.strip()]
    return found, report(found, "\n".join(lines), of)


def report(found: str, text: str, of: str = "") -> str:
    head = HEADS[found].format(branch=base()[0] or "the base branch")
    return f"### {setting('NAME') or 'gate'}: {head}{of and ' · '}{of}\n\n{text}\n"


def ourselves() -> str:
    """The name that comments written with the token have."""
    url = os.environ.get("GITHUB_GRAPHQL_URL", "https://api.github.com/graphql")
    try:
        return str(api("POST", url, {"query": "{viewer{login}}"})["data"]["viewer"]["login"])
    except (urllib.error.URLError, ValueError, LookupError, TypeError):
        return "github-actions[bot]"


def comment(text: str) -> None:
    """Write the report into the one comment that carries our mark and is ours, or make it."""
    number = (event().get("pull_request") or {}).get("number")
    if setting("COMMENT") != "true" or number is None or not setting("TOKEN"):
        return
    mark = f"<!-- harness-noise {setting('NAME') or 'gate'} -->"
    body = f"{mark}\n{text if len(text) <= LONGEST else text[:LONGEST].rpartition(chr(10))[0] + '…'}"
    url, name = f"{repository()}/issues", ourselves()
    marked = (item for item in pages(f"{url}/{number}/comments") if (item["body"] or "").startswith(mark))
    ours = next((item for item in marked if (item["user"] or {}).get("login") == name), None)
    if ours:
        api("PATCH", f"{url}/comments/{int(ours['id'])}", {"body": body})
    else:
        api("POST", f"{url}/{number}/comments", {"body": body})


def write(variable: str, text: str) -> None:
    if path := os.environ.get(variable):
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(text)


def decided() -> tuple[str, str]:
    """The outcome and the report; whatever happens on the way, there is one, and it is no pass."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            against, of = baseline(Path(folder))
            return judge(setting("RUN"), against, of)
        except NoBaselineError:
            return "no baseline", report("no baseline", "There is nothing to compare with, so nothing was judged.")
        except UnusableError as error:
            text = str(error)
        except Exception as error:  # noqa: BLE001  what it does not know is no pass
            text = f"{type(error).__name__}: {error}"
    print(f"::error::{' '.join(text.split())}")
    return "error", f"### {setting('NAME') or 'gate'}: {HEADS['error']}\n\n{text}\n"


def main() -> int:
    found, text = decided()
    stop = secrets.token_hex(16)
    print(f"::stop-commands::{stop}\n{text}\n::{stop}::")  # no line of the report is a command to the runner
    path = Path(os.environ.get("RUNNER_TEMP", tempfile.gettempdir())) / "harness-noise-report.md"
    path.write_text(text, encoding="utf-8")
    write("GITHUB_STEP_SUMMARY", text)
    write("GITHUB_OUTPUT", f"outcome={found}\nreport={path}\n")
    try:
        comment(text)
    except Exception as error:  # noqa: BLE001  a fork's pull request may not write; the summary has it all
        print(f"::warning::no comment: {type(error).__name__}: {error}")
    return CODES.get(found, 2)


if __name__ == "__main__":
    sys.exit(main())

"""SWE-bench: run reports, folders of instance reports, SWE-bench Pro's eval_results.json, leaderboard submissions.

A question is an instance, its cluster the repository. What was solved counts 1; all else that was tried counts 0, as in
the harness's own rate, except what failed for want of infrastructure or was never handed in: that is missing
(harness/reporting.py, 5.0).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from harness_noise import InputError
from harness_noise.data.answers import Answers
from harness_noise.data.notes import Note
from harness_noise.data.scores import ReadOptions, Run
from harness_noise.io.door import is_inside

from ...records import ReadOnly, document, head

DAMAGED = ": was it written by SWE-bench, and is it whole?"
APPLIED = b'"patch_successfully_applied"'
"""A key that each instance's report has, also in a file with the reports of all instances."""
PRO, REPORT, DETAILS, LISTS = "eval_results.json", "report.json", "per_instance_details.json", "results.json"
OUTCOMES = (
    "unresolved",
    "error",
    "empty_patch",
    "ambiguous_failure",
    "infra_failure",
    "incomplete",
    "failed",
    "pending",
    "resolved",
)
"""Lists of a run report, the more telling later: an infrastructure failure is among the unresolved ones or errors."""
LOST = {
    "infra_failure": "infrastructure",
    "incomplete": "unanswered",
    "failed": "infrastructure",
    "pending": "verifier",
}
"""Outcomes without a grade. The last two come from SWE-bench's service (sb-cli), for runs that failed or still wait."""
_SUFFIX = re.compile(r"-v(?:[0-9a-f]{7,40}|nan)$")
"""The suffix that SWE-bench Pro adds to an instance's name."""
_OF_PRO = re.compile(rb'\s*\{\s*"instance_[^"]+"\s*:\s*(true|false)')
"""The first bytes of SWE-bench Pro's results, whatever their file is called."""
_OF_ONE = re.compile(rb'\s*\{\s*"no_generation"\s*:\s*\[')
"""The first bytes of a report of SWE-bench 1, and of a submission that lists what was not generated."""
_LOST_IN_ONE = {"install_fail": "failed", "reset_failed": "failed", "no_generation": "empty_patch"}
"""Lists of a report of SWE-bench 1 → the outcome of their instances."""
_SERVICE = re.compile("__(?:test|dev)__")
"""In the names of sb-cli's reports, SUBSET__SPLIT__RUN, which say no model."""
Outcomes = dict[str, dict[str, Any]]
"""Instance → its outcome, and what else is known of it."""


class SweBenchAdapter(ReadOnly):
    """The adapter of SWE-bench. It follows `harness_noise.io.protocol`."""

    name = "swe-bench"
    about = "SWE-bench run reports (MODEL.RUN.json), folders of instance reports and submissions, read only"

    def sniff(self, path: Path) -> bool:
        """Return True if a path is a SWE-bench report, a submission folder, or a folder of instance reports."""
        if path.is_dir():
            if (path / "results" / DETAILS).is_file() or _is_submission(path / "results" / LISTS):
                return True
            return any(APPLIED in head(child / REPORT) for child in path.iterdir() if is_inside(child / REPORT))
        start = head(path) if path.suffix == ".json" else b""
        pro = _OF_PRO.match(start) is not None
        listed = b'"total_instances"' in start or APPLIED in start
        return listed or pro or path.name == DETAILS or _is_submission(path)

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """Read a SWE-bench report or folder into one Run: which instances were resolved. Refuse one without the tries.

        The model's name is in the file's name, or is the folder's.
        """
        file = path / "results" / DETAILS if (path / "results").is_dir() else path
        if not file.exists() or (_is_submission(file) and "generated" not in document(file, DAMAGED, dict)):
            raise InputError(
                f"{path}: it lists the instances that were solved, not those that were tried. Give the "
                f"run's report (MODEL.RUN.json), the folder with a {REPORT} of each instance, or {DETAILS}"
            )
        answers = Answers(path, options, kind="instance", auto=lambda task: "repository")
        outcomes, native = (_read_folder if file.is_dir() else _read_report)(file, answers.notes)
        for instance, doc in outcomes.items():
            value = LOST.get(doc["outcome"], float(doc["outcome"] == "resolved"))
            repository = _SUFFIX.sub("", instance).removeprefix("instance_").rpartition("-")[0]
            fields = {"instance_id": instance, "repository": repository or instance, **doc}
            answers.add("swe-bench", "resolved", "none", instance, None, value, fields)
        answers.describe("swe-bench", "resolved", "none", native=native, native_of_answers=True, bounds=(0.0, 1.0))
        folders = {DETAILS: file.parent.parent, LISTS: file.parent.parent, PRO: file.parent}
        folder = folders.get(file.name, file if file.is_dir() else None)
        model = "" if _SERVICE.search(file.stem) else file.stem.rpartition(".")[0]
        return [answers.run(folder.name if folder else model or file.stem, self.name)]


adapter = SweBenchAdapter()


def _is_submission(path: Path) -> bool:
    return path.is_file() and (
        _OF_ONE.match(head(path)) is not None or (path.name == LISTS and b'"no_generation"' in head(path))
    )


def _read_report(path: Path, notes: list[Note]) -> tuple[Outcomes, float | None]:
    """Return ({instance: {"outcome": word, …}}, own rate, None if not all are listed). Refuse counts, note gaps."""
    data = document(path, DAMAGED, dict)
    if "no_generation" in data:
        return _read_first_version(path, data)
    if "total_instances" not in data:
        return {key: _solved(path, key, report) for key, report in data.items()}, None
    lists = {name: data.get(f"{name}_ids") or [] for name in OUTCOMES}
    lists["resolved"] = lists["resolved"] or data.get("resolved") or []  # so Multi-SWE-bench calls its own
    if not all(isinstance(ids, list) and all(isinstance(key, str) for key in ids) for ids in lists.values()):
        raise InputError(f"{path}: it has counts where the instances should be listed: which were solved is not known")
    outcomes: Outcomes = {key: {"outcome": name} for name, ids in lists.items() for key in ids}
    solved = set(lists["resolved"])
    both = solved & {key for name in OUTCOMES[:3] for key in lists[name]}
    count = data.get("resolved_instances", len(solved))
    if both or not outcomes or count != len(solved):
        what = f"{count!r:.40} solved instances are counted and {len(solved)} listed"
        what = f"{min(both)} is listed as solved and as not solved" if both else what
        raise InputError(f"{path}: {what if outcomes else 'it lists no instance'}{DAMAGED}")
    if data["total_instances"] != len(outcomes):
        said = f"{path}: of {data['total_instances']!s:.40} instances {len(outcomes)} are listed and read"
        notes.append(Note("not_all_read", said))
        return outcomes, None
    return outcomes, len(solved) / len(outcomes)


def _read_first_version(path: Path, data: Any) -> tuple[Outcomes, float | None]:
    """Return ({instance: {"outcome": word}}, own rate) of a SWE-bench version 1 report. Refuse lists that do not fit.

    All instances listed, as generated or not, count as tried.
    """
    names = ("generated", *_LOST_IN_ONE, "resolved")
    lists = {name: data.get(name) or [] for name in names}
    if not all(isinstance(ids, list) and all(isinstance(key, str) for key in ids) for ids in lists.values()):
        raise InputError(f"{path}: its lists are no lists of instances{DAMAGED}")
    solved = set(lists["resolved"])
    if extra := solved - set(lists["generated"]):
        raise InputError(f"{path}: {min(extra)[:80]!r} is resolved, but not among those generated{DAMAGED}")
    outcome = dict.fromkeys(lists["generated"], "unresolved")
    for name, means in _LOST_IN_ONE.items():
        outcome |= dict.fromkeys(lists[name], means)
    outcome |= dict.fromkeys(solved, "resolved")
    if not outcome:
        raise InputError(f"{path}: it lists no instance{DAMAGED}")
    return {key: {"outcome": name} for key, name in outcome.items()}, len(solved) / len(outcome)


def _read_folder(folder: Path, notes: list[Note]) -> tuple[Outcomes, float | None]:
    """Return ({instance: {"outcome": word, …}}, None) of a folder, adding notes. Without report: an "error"."""
    outcomes: Outcomes = {}
    for child in sorted(child for child in folder.iterdir() if child.is_dir() and child.name[:1] not in "._"):
        if not is_inside(child / REPORT):  # a note says so
            continue
        outcomes[child.name] = {"outcome": "error"}
        if (file := child / REPORT).is_file():
            outcomes[child.name] = _solved(file, child.name, document(file, DAMAGED, dict).get(child.name))
    lost = sum(doc["outcome"] == "error" for doc in outcomes.values())
    said = f"{folder}: an instance with an empty patch has no folder and is not counted. The run's report has it"
    notes.append(Note("not_all_read", said))
    if lost:
        said = f"{folder}: {lost} instances have no {REPORT} and count as not solved, as in the harness"
        notes.append(Note("missing", said))
    return outcomes, None


def _solved(path: Path, key: str, report: Any) -> dict[str, Any]:
    """Return a dict of an instance's "outcome" (a word) and its report's numbers. Refuse one with no `resolved`."""
    said = report if isinstance(report, dict) else {"resolved": report}
    if not isinstance(solved := said.get("resolved"), bool):
        raise InputError(f"{path}: {key[:80]!r} does not say whether it is resolved{DAMAGED}")
    numbers = {name: value for name, value in said.items() if type(value) in (int, float)}
    return {**numbers, "outcome": "resolved" if solved else "unresolved"}

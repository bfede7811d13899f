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
from harness_noise.data.scores import ReadOptions, Run

from .records import ReadOnly, document, head

DAMAGED = ": was it written by SWE-bench, and is it whole?"
APPLIED = b'"patch_successfully_applied"'
"""What each instance says in a report of its own, or in one of all of them."""
PRO, REPORT, DETAILS, LISTS = "eval_results.json", "report.json", "per_instance_details.json", "results.json"
OUTCOMES = (
    "unresolved", "error", "empty_patch", "ambiguous_failure", "infra_failure", "incomplete", "failed", "pending",
    "resolved",
)  # fmt: skip
"""Lists of a run report, the more telling later: an infrastructure failure is among the unresolved ones or errors."""
LOST = {
    "infra_failure": "infrastructure", "incomplete": "unanswered", "failed": "infrastructure", "pending": "verifier",
}  # fmt: skip
"""What no one graded: the last two are those of SWE-bench's service (sb-cli), of runs that failed or still wait."""
_SUFFIX = re.compile(r"-v(?:[0-9a-f]{7,40}|nan)$")
"""What SWE-bench Pro appends to an instance."""
_SERVICE = re.compile("__(?:test|dev)__")
"""In the names of sb-cli's reports, SUBSET__SPLIT__RUN, which say no model."""
Outcomes = dict[str, dict[str, Any]]
"""Instance → its outcome, and what else is known of it."""


class SweBenchAdapter(ReadOnly):
    """SWE-bench run reports (MODEL.RUN.json), folders of instance reports and submissions, read only"""

    name = "swe-bench"

    def sniff(self, path: Path) -> bool:
        """A report says what it is in its first bytes; a folder has a report for each instance, or is a submission."""
        if path.is_dir():
            if (path / "results" / DETAILS).is_file() or _is_submission(path / "results" / LISTS):
                return True
            return any(APPLIED in head(child / REPORT) for child in path.iterdir())
        start = head(path) if path.suffix == ".json" else b""
        pro = path.name == PRO and b'{"instance_' in start[:16]
        listed = b'"total_instances"' in start or APPLIED in start
        return listed or pro or path.name == DETAILS or _is_submission(path)

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """One Run: the model is in the file's name, or is the folder's."""
        file = path / "results" / DETAILS if (path / "results").is_dir() else path
        if _is_submission(file) or not file.exists():
            raise InputError(
                f"{path}: it lists the instances that were solved, not those that were tried; give the "
                f"run's report (MODEL.RUN.json), the folder with a {REPORT} of each instance, or {DETAILS}"
            )
        answers = Answers(path, options, kind="instance", auto=lambda task: "repository")
        outcomes, native = (_of_instances if file.is_dir() else _of_file)(file, answers.notes)
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
    return path.name == LISTS and b'"no_generation"' in head(path)


def _of_file(path: Path, notes: list[str]) -> tuple[Outcomes, float | None]:
    """The outcomes, and the harness's own rate of solved ones; what is to be said comes to the notes."""
    data = document(path, DAMAGED, dict)
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
        notes.append(f"{path}: of {data['total_instances']!s:.40} instances {len(outcomes)} are listed and read")
        return outcomes, None
    return outcomes, len(solved) / len(outcomes)


def _of_instances(folder: Path, notes: list[str]) -> tuple[Outcomes, float | None]:
    """The outcomes of a folder with one folder for each instance; one without a report is an error."""
    outcomes: Outcomes = {}
    for child in sorted(child for child in folder.iterdir() if child.is_dir() and child.name[:1] not in "._"):
        outcomes[child.name] = {"outcome": "error"}
        if (file := child / REPORT).is_file():
            outcomes[child.name] = _solved(file, child.name, document(file, DAMAGED, dict).get(child.name))
    lost = sum(doc["outcome"] == "error" for doc in outcomes.values())
    notes.append(f"{folder}: an instance with an empty patch has no folder and is not counted; the run's report has it")
    if lost:
        notes.append(f"{folder}: {lost} instances have no {REPORT} and count as not solved, as in the harness")
    return outcomes, None


def _solved(path: Path, key: str, report: Any) -> dict[str, Any]:
    """The outcome of an instance that says whether it is solved, with the numbers that stand beside it."""
    said = report if isinstance(report, dict) else {"resolved": report}
    if not isinstance(solved := said.get("resolved"), bool):
        raise InputError(f"{path}: {key[:80]!r} does not say whether it is resolved{DAMAGED}")
    numbers = {name: value for name, value in said.items() if type(value) in (int, float)}
    return {**numbers, "outcome": "resolved" if solved else "unresolved"}

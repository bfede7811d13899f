"""The harnesses' own tests: without this package, with it, and with the flag on. The outcomes are to be the same.

    python tests/guests/run.py [lm-eval] [inspect] [--tests inspect=FOLDER] [--only PATTERN] [--shard 1/4]

The tests come out of the source archive of the installed version, as the package index has it. An archive without
tests is said and left out, unless `--tests` names a checkout. Each line of `lists/GUEST.txt` is a part: files or
folders that need neither network nor keys, run in one process for each of the three ways, and stopped after
`--seconds`. `GUEST.differ.txt` beside it names the differences that are meant; README.md says what each file holds
and what was seen. What fails in all three ways is the host's own affair.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tarfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
Outcomes = dict[str, str]
"""Test → passed, failure, error or skipped."""


class Guest(NamedTuple):
    """One harness, and how its test runs differ."""

    package: str
    ways: dict[str, tuple[list[str], dict[str, str]]]
    """Name → options of pytest and the environment; the first is without us."""


GUESTS = {
    "lm-eval": Guest(
        "lm_eval",
        {
            "without": ([], {}),
            "with": (["-p", "harness_noise_adapters.lm_eval_harness.plugin"], {}),
            "on": (["-p", "harness_noise_adapters.lm_eval_harness.plugin"], {"HARNESS_NOISE_REPEATS": "2"}),
        },
    ),
    "inspect": Guest(
        "inspect_ai",
        {
            "without": (["-p", "without_noise"], {"HARNESS_NOISE": ""}),
            "with": ([], {"HARNESS_NOISE": ""}),
            "on": ([], {"HARNESS_NOISE": "1"}),
        },
    ),
}


class Part(NamedTuple):
    """One line of a list."""

    paths: tuple[str, ...]
    """Files and folders, relative to the guest's tests."""
    deselected: tuple[str, ...] = ()
    """Tests of these that are left out, as `file.py::test`."""

    def __str__(self) -> str:
        return " ".join(self.paths)


# ---- the lists ----


def lines(path: Path) -> Iterator[tuple[str, str]]:
    """What a line says, and the reason behind its `#`."""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        said, _, reason = line.partition("#")
        if said.strip():
            yield said.strip(), reason.strip()


def parts(path: Path) -> list[Part]:
    """A list: `file.py folder` is a part, `-file.py::test  # reason` leaves a test of it out."""
    found: list[Part] = []
    without: list[str] = []
    for said, reason in lines(path):
        if not said.startswith("-"):
            found.append(Part(tuple(said.split())))
        elif reason:
            without.append(said[1:].strip())
        else:
            raise SystemExit(f"{path}: {said}: say after a # why this test is left out")
    return [part._replace(deselected=tuple(test for test in without if holds(part, test))) for part in found]


def holds(part: Part, test: str) -> bool:
    return any(test.startswith((path + "::", path + "/")) for path in part.paths)


def chosen_parts(every: Sequence[Part], only: str | None, shard: str) -> list[Part]:
    """Those with a path like `only`, and of these every N-th from the I-th on."""
    number, _, of_how_many = shard.partition("/")
    fitting = [part for part in every if only is None or any(fnmatchcase(path, only) for path in part.paths)]
    return fitting[int(number) - 1 :: int(of_how_many or 1)]


def meant(path: Path) -> dict[tuple[str, str], str]:
    """Differences with a reason: `WAY TEST  # reason`."""
    found = {}
    for said, reason in lines(path):
        way, _, test = said.partition(" ")
        if not reason:
            raise SystemExit(f"{path}: {said}: say after a # why this difference is meant")
        found[way, test.strip()] = reason
    return found


# ---- the tests ----


def unpacked(guest: Guest, work: Path) -> Path | None:
    """The folder of the source archive's tests; None where it has none, or cannot be had."""
    release = version(guest.package)
    folder = work / f"{guest.package}-{release}"
    if not folder.exists():
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest",
             str(work), f"{guest.package}=={release}"],
            capture_output=True, text=True,
        )  # fmt: skip
        archives = list(work.glob(f"{guest.package}-{release}.tar.gz"))
        if not archives:
            print(f"{guest.package} {release}: no source archive ({done.stderr.strip()[-200:]})")
            return None
        with tarfile.open(archives[0]) as archive:
            archive.extractall(work, filter="data")
    tests = folder / "tests"
    if not tests.is_dir():
        print(f"{guest.package} {release}: its source archive has no tests; name a checkout with --tests")
        return None
    return tests


def outcomes(name: str, way: str, part: Part, tests: Path, work: Path, seconds: float) -> Outcomes | None:
    """What became of each test; None where the run did not end. What pytest says is kept in a file."""
    options, environment = GUESTS[name].ways[way]
    stem = work / f"{name}-{way}-{str(part).replace('/', '.').replace(' ', '+')[:100]}"
    report = stem.with_name(stem.name + ".xml")
    report.unlink(missing_ok=True)
    folders = [str(HERE), str(tests), os.environ.get("PYTHONPATH", "")]
    command = [
        sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", "--color=no", "-p", "no:cacheprovider",
        "-p", "offline", "--continue-on-collection-errors", f"--junit-xml={report}", *options,
        *(f"--deselect={tests.name}/{test}" for test in part.deselected),
        *(str(tests / path) for path in part.paths),
    ]  # fmt: skip
    paths = os.pathsep.join(filter(None, folders))
    variables = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": paths} | environment
    with stem.with_name(stem.name + ".txt").open("wb") as said:
        running = subprocess.Popen(
            command, cwd=tests.parent, env=variables, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            start_new_session=True,
        )  # fmt: skip
        try:
            running.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:  # servers and workers that its tests have started, too
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    return read(report) if report.exists() else {}


def read(report: Path) -> Outcomes:
    found = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        found[f"{case.get('classname')}::{case.get('name')}"] = min(kinds, default="passed")
    return found


# ---- the comparison ----


def differences(
    runs: Mapping[str, Outcomes | None], meant: Mapping[tuple[str, str], str]
) -> tuple[list[str], set[tuple[str, str]]]:
    """What is not as it is without us, in words, and which of the meant differences are there."""
    plain, *others = runs
    before = runs[plain]
    if before is None:
        return ["not ended without us, so nothing was compared"], set()
    if "passed" not in before.values():
        return ["none of its tests has passed without us, so nothing was compared"], set()
    out, seen = [], set()
    for way in others:
        after = runs[way]
        if after is None:
            out.append(f"ended without us, not {way}")
            continue
        for test in sorted(before.keys() | after.keys()):
            words = before.get(test, "absent"), after.get(test, "absent")
            if words[0] == words[1]:
                if (way, test) in meant:
                    out.append(f"{test}: {words[0]} in both, though a difference {way} is listed as meant")
            elif (way, test) in meant:
                seen.add((way, test))
            else:
                out.append(f"{test}: {words[0]} without, {words[1]} {way}")
    return out, seen


def compared(name: str, tests: Path, work: Path, chosen: argparse.Namespace) -> list[str]:
    """Every part of one guest in its three ways; what is wrong."""
    every = parts(HERE / "lists" / f"{name}.txt")
    listed = meant(HERE / "lists" / f"{name}.differ.txt")
    bad: list[str] = []
    totals: dict[str, Counter[str]] = {way: Counter() for way in GUESTS[name].ways}
    for part in chosen_parts(every, chosen.only, chosen.shard):
        if absent := [path for path in part.paths if not (tests / path).exists()]:
            bad.append(f"{name}: {', '.join(absent)}: not among the tests of {tests}")
            continue
        start = time.monotonic()
        runs = {way: outcomes(name, way, part, tests, work, chosen.seconds) for way in totals}
        for way, found in runs.items():
            totals[way].update((found or {}).values())
        wrong, seen = differences(runs, listed)
        bad += [f"{name}, {part}: {words}" for words in wrong]
        counts = Counter((runs["without"] or {}).values())
        shown = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        print(
            f"{name}, {part}: {shown or 'no outcome'}; {len(wrong)} differ, {len(seen)} more as meant "
            f"({time.monotonic() - start:.0f} s)",
            flush=True,
        )
    for way, total in totals.items():
        shown = ", ".join(f"{total[kind]} {kind}" for kind in ("passed", "failure", "error", "skipped"))
        print(f"{name}, {way}: {shown}")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("guests", nargs="*", default=list(GUESTS), choices=[*GUESTS, []])
    parser.add_argument("--tests", action="append", default=[], metavar="GUEST=FOLDER")
    parser.add_argument("--work", type=Path, default=Path(".guests"))
    parser.add_argument("--only", metavar="PATTERN", help="only parts with a path like this")
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="only every N-th part, from the I-th on")
    parser.add_argument("--seconds", type=float, default=600.0, help="the longest that one part may take in one way")
    chosen = parser.parse_args()
    folders = dict(item.split("=", 1) for item in chosen.tests)
    chosen.work.mkdir(exist_ok=True)
    bad: list[str] = []
    for name in chosen.guests:
        try:
            release = version(GUESTS[name].package)
        except PackageNotFoundError:
            print(f"{name}: not installed")
            continue
        tests = Path(folders[name]).resolve() if name in folders else unpacked(GUESTS[name], chosen.work.resolve())
        if tests is None:
            continue
        print(f"{name} {release}: {tests}", flush=True)
        bad += compared(name, tests, chosen.work.resolve(), chosen)
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

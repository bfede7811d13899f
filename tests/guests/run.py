"""The harnesses' own tests: without this package, with it, and with the flag on. The outcomes are to be the same.

    python tests/guests/run.py [lm-eval] [inspect] [--tests inspect=FOLDER] [--work FOLDER]

The tests come out of the source archive of the installed version, as the package index has it. An archive without
tests is said and left out, unless `--tests` names a checkout. `lists/*.txt` are the tests that need neither network
nor keys; a line `TEST  # reason` of `lists/*.differ.txt` is a difference that is meant. What fails in all three is
the host's own affair.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
Outcomes = dict[str, str]


class Guest(NamedTuple):
    """One harness, and how its test runs differ."""

    package: str
    ways: dict[str, tuple[list[str], dict[str, str]]]
    """Name → options of pytest and the environment."""


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


def unpacked(guest: Guest, work: Path) -> Path | None:
    """The folder of the source archive's tests; None where it has none, or cannot be had."""
    release = version(guest.package)
    folder = work / f"{guest.package}-{release}"
    if not folder.exists():
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation", "--no-binary",
             ":all:", "--dest", str(work), f"{guest.package}=={release}"],
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


def lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [line.split("#")[0].strip() for line in text.splitlines() if line.split("#")[0].strip()]


def outcomes(name: str, way: str, tests: Path, work: Path) -> Outcomes:
    """What became of each test."""
    options, environment = GUESTS[name].ways[way]
    chosen = [str(tests / line) for line in lines(HERE / "lists" / f"{name}.txt")]
    report = work / f"{name}-{way}.xml"
    report.unlink(missing_ok=True)
    paths = [str(HERE), str(tests), os.environ.get("PYTHONPATH", "")]
    command = [
        sys.executable, "-m", "pytest", "-q", "--no-header", "--noconftest", "--tb=no", "-p", "no:cacheprovider",
        "-p", "offline", "--continue-on-collection-errors", f"--junit-xml={report}", *options, *chosen,
    ]  # fmt: skip
    subprocess.run(
        command, cwd=tests.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))} | environment,
    )  # fmt: skip
    return read(report)


def read(report: Path) -> Outcomes:
    found = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        found[f"{case.get('classname')}::{case.get('name')}"] = min(kinds, default="passed")
    return found


def differences(runs: dict[str, Outcomes], meant: Iterable[str]) -> list[str]:
    """The tests whose outcome is not the one without us, but for those that are meant."""
    plain = runs["without"]
    out = []
    for way in ("with", "on"):
        for test in sorted(plain.keys() | runs[way].keys()):
            before, after = plain.get(test, "absent"), runs[way].get(test, "absent")
            if before != after and test not in meant:
                out.append(f"{test}: {before} without, {after} {way}")
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("guests", nargs="*", default=list(GUESTS), choices=[*GUESTS, []])
    parser.add_argument("--tests", action="append", default=[], metavar="GUEST=FOLDER")
    parser.add_argument("--work", type=Path, default=Path(".guests"))
    chosen = parser.parse_args()
    folders = dict(item.split("=", 1) for item in chosen.tests)
    chosen.work.mkdir(exist_ok=True)
    bad: list[str] = []
    for name in chosen.guests:
        try:
            version(GUESTS[name].package)
        except PackageNotFoundError:
            print(f"{name}: not installed")
            continue
        tests = Path(folders[name]).resolve() if name in folders else unpacked(GUESTS[name], chosen.work.resolve())
        if tests is None:
            continue
        runs = {way: outcomes(name, way, tests, chosen.work.resolve()) for way in GUESTS[name].ways}
        for way, found in runs.items():
            counts = {kind: list(found.values()).count(kind) for kind in ("passed", "failure", "error", "skipped")}
            print(f"{name}, {way}: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()))
        if "passed" not in runs["without"].values():
            bad.append(f"{name}: none of its tests passes here, so nothing was compared")
        bad += differences(runs, lines(HERE / "lists" / f"{name}.differ.txt"))
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

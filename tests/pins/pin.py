"""Pin what the package says, and see whether it still says so.

    PYTHONPATH=tests python -m pins.pin make FOLDER     # write the answer to every case
    PYTHONPATH=tests python -m pins.pin check FOLDER    # ask again; exit 1 if anything differs

FOLDER/inputs is kept with the pins: whatever of it is there already is not made again. Only the command line and the
documented functions of `harness_noise` are called, so that the pins outlive any renaming of modules.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from pins import cases, inputs, normal, python_cases
from pins.differences import TOLERANCE, differences

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[2] / "shared/data"
ENVIRONMENT = {"COLUMNS": "140", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC", "MPLBACKEND": "svg"}
Record = dict[str, Any]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("make", "check"))
    parser.add_argument("folder", type=lambda text: Path(text).resolve())  # every case has a folder of its own
    parser.add_argument("--only", default="*", metavar="GLOB", help="cases by name, such as 'compare/plain/*'")
    parser.add_argument("--order", type=int, metavar="SEED", help="ask in another order")
    parser.add_argument("--data", type=Path, default=DATA, help="real files of others, copied to the inputs")
    parser.add_argument("--shown", type=int, default=400, help="differences to print")
    given = parser.parse_args(argv)
    os.environ.update(ENVIRONMENT)
    time.tzset()
    for key in [key for key in os.environ if key.startswith("HARNESS_NOISE")]:
        del os.environ[key]
    if given.what == "make":
        if given.only == "*":
            shutil.rmtree(given.folder / "pins", ignore_errors=True)
        _make_inputs(given.folder / "inputs", given.data)
    start = time.monotonic()
    records: dict[str, Record] = {}
    taken: dict[str, float] = {}
    for name, record in _answers(given.folder / "inputs", given.only, given.order):
        records[name] = record
        taken[name] = time.monotonic() - start - sum(taken.values())
        if given.what == "make":
            _write(given.folder / "pins", name, record)
    slow = sorted(taken, key=lambda name: -taken[name])[:5]
    print(f"{len(records)} cases in {time.monotonic() - start:.0f} s", flush=True)
    print("the slowest: " + ", ".join(f"{name} {taken[name]:.1f} s" for name in slow), flush=True)
    if given.what == "make":
        return 0
    return _compare(given.folder / "pins", records, given.only, given.shown)


def _make_inputs(folder: Path, data: Path) -> None:
    """The generated tables, the real files, a live run of each harness, the demo, and a noise profile."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "tables").exists():
        inputs.write(folder / "tables")
    if not (folder / "data").exists():
        if not data.exists():
            sys.exit(f"{data}: the real files of others are not there; name their folder with --data")
        shutil.copytree(data, folder / "data")
    if not (folder / "tables/matharena.csv").exists():
        inputs.write_real(folder / "tables", folder / "data/tables")
    if not (folder / "live").exists():
        _live(folder / "live")
        shutil.rmtree(folder / "live/cache", ignore_errors=True)
    if not (folder / "demo").exists():
        with contextlib.chdir(folder):
            subprocess.run(
                [sys.executable, "-m", "harness_noise.extra.demo", "-o", "demo"],
                check=True,
                stdout=subprocess.DEVNULL,
            )
        shutil.rmtree(folder / "demo/.cache", ignore_errors=True)
    if not (folder / "profile.json").exists():
        many, profile = str(folder / "tables/many.csv"), str(folder / "profile.json")
        subprocess.run(
            [*_own_python(), "arena", many, "--write-profile", profile], check=True, stdout=subprocess.DEVNULL
        )


def _own_python() -> list[str]:
    return [sys.executable, "-m", "harness_noise"]


def _live(folder: Path) -> str:
    """Both harnesses with the flag on; returns what was printed on stdout."""
    folder = folder.resolve()
    folder.mkdir(parents=True)
    command = [sys.executable, str(HERE / "live.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)  # harnesses ask git there
    if done.returncode:
        sys.exit(f"the live runs ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return done.stdout


def _answers(folder: Path, only: str, order: int | None) -> Iterator[tuple[str, Record]]:
    """The record of every case, each on a copy of the inputs that none of them can change for the next."""
    normal.begin()
    calls: list[tuple[str, Callable[[Path, Mapping[str, str]], Record]]] = [
        (case.name, lambda here, places, case=case: _by_command(case, here, places)) for case in cases.every(folder)
    ]
    calls += [
        (f"python/{name}", lambda here, places, call=call: _by_function(call, places))
        for name, call in python_cases.every().items()
    ]
    calls = [item for item in calls if fnmatch.fnmatchcase(item[0], only)]
    if order is not None:
        random.Random(order).shuffle(calls)
    with tempfile.TemporaryDirectory(prefix="pins-") as scratch, ThreadPoolExecutor(1) as beside:
        here, again = Path(scratch).resolve() / "inputs", Path(scratch).resolve() / "again"
        shutil.copytree(folder, here)
        live = beside.submit(_live, again) if fnmatch.fnmatchcase("live", only) else None
        places = {str(here): "<HERE>", str(HERE.parents[1]): "<PROJECT>", sys.prefix: "<PREFIX>"}
        with contextlib.chdir(here):
            for name, call in calls:
                yield name, call(here, places)
                shutil.rmtree(here / "out", ignore_errors=True)
        if live is not None:
            yield "live", _by_harness(again, live.result(), places)


def _by_command(case: cases.Case, here: Path, places: Mapping[str, str]) -> Record:
    out = here / "out"
    out.mkdir()
    for item in case.copied:
        shutil.copytree(here / item, out / Path(item).name)
    record = _captured(lambda: _command_line()(list(case.arguments)), places)
    files = sorted(path for path in out.rglob("*") if path.is_file())
    written = {str(path.relative_to(out)): normal.file(path, places) for path in files}
    return {"arguments": list(case.arguments), **record, "files": written}


def _command_line() -> Callable[[list[str]], int]:
    (script,) = entry_points(group="console_scripts", name="harness-noise")
    found: Callable[[list[str]], int] = script.load()
    return found


def _by_function(call: Callable[[], Any], places: Mapping[str, str]) -> Record:
    def printed() -> int:
        try:
            print(json.dumps(call(), indent=1, default=_plain))
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            return 2
        return 0

    return _captured(printed, places)


def _plain(value: Any) -> Any:
    """numpy's numbers and arrays, and tuples' like, for JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no JSON")


def _captured(call: Callable[[], int], places: Mapping[str, str]) -> Record:
    out, err = io.StringIO(), io.StringIO()
    with (
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            code: Any = call()
        except Exception as error:  # what escapes is pinned as such: a user sees a traceback
            traceback.print_exc(file=sys.__stderr__)
            code = f"{type(error).__name__}: {error}"
    said = [f"{item.category.__name__}: {item.message}" for item in warned]
    return {
        "code": code,
        "stdout": normal.text(out.getvalue(), places),
        "stderr": normal.text(err.getvalue(), places),
        "warnings": sorted(set(said)),
    }


def _by_harness(folder: Path, printed: str, places: Mapping[str, str]) -> Record:
    """The native files of live runs, byte for byte but for dates, ids and times."""
    shutil.rmtree(folder / "cache", ignore_errors=True)
    own = {str(folder): "<LIVE>", **places}
    files: Record = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"):
        found = normal.file(path, own, live=True)
        label = normal.name(str(path.relative_to(folder)), live=True)
        model = found.get("eval", found.get("header.json", {}).get("eval", {})) if isinstance(found, dict) else {}
        label += f" of {model['model']}" if "model" in model else ""
        if label in files:
            raise RuntimeError(f"two live files are called {label}")
        files[label] = found
    return {"stdout": normal.name(normal.text(printed, own), live=True), "files": files}


def _write(folder: Path, name: str, record: Record) -> None:
    """One file for each case."""
    path = _place(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False, default=_plain), encoding="utf-8")


def _place(folder: Path, name: str) -> Path:
    safe = "".join(c if c.isalnum() or c in "/-_." else "~" for c in name)
    return folder / f"{safe}.json"


def _compare(folder: Path, records: Mapping[str, Record], only: str, shown: int) -> int:
    pinned = {str(path.relative_to(folder))[:-5]: path for path in folder.rglob("*.json") if path.is_file()}
    asked = {str(_place(folder, name).relative_to(folder))[:-5]: name for name in records}
    found: list[str] = []
    for label in sorted(pinned.keys() | asked.keys()):
        if label not in asked:
            if only == "*":
                found.append(f"{label}: pinned, but no such case now")
        elif label not in pinned:
            found.append(f"{label}: a case that is not pinned")
        else:
            old = json.loads(pinned[label].read_text(encoding="utf-8"))
            new = json.loads(json.dumps(records[asked[label]], ensure_ascii=False, default=_plain))
            tolerance = 0 if label == "live" else TOLERANCE
            found += [f"{label}: {at}: {a!r} → {b!r}" for at, a, b in differences(old, new, "$", tolerance)]
    for line in found[:shown]:
        print(line)
    if not records:
        print("no case was compared")
    several = len({line.split(":")[0] for line in found})
    print(f"{len(records)} cases compared, {len(found)} differences in {several} cases")
    return 1 if found or not records else 0


if __name__ == "__main__":
    sys.exit(main())

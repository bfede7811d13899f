"""The table of all benchmarks: what we take beside what a peer takes, in one run.

    python benchmarks/table.py            every benchmark, into benchmarks/README.md
    python benchmarks/table.py read arena only bench_read.py and bench_arena.py; the other sections stay
    python benchmarks/table.py --small    every benchmark in a small size, to see that it runs; writes nothing

A benchmark is a script `bench_NAME.py`. It makes `Row`s, calls `show(rows)` and exits with what that
returns: 1 where a target is missed. Its options all have defaults, made by `size` where a size is
meant, which also says what is small. With `--json` among its arguments `show` prints the rows as one
line of JSON, the last of stdout; whatever else it has to say goes to stderr. The first paragraph of
its docstring stands above its rows in the README.

    rows = [Row("read 1 GB of samples", ours=2.1, beside="a plain json pass", peer=4.0, target=0.6)]
    sys.exit(show(rows))
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).resolve().parent
SMALL = "--small" in sys.argv
"""Whether only a small size is measured, of which no ratio says anything."""
PACKAGES = ("numpy", "scipy", "pandas", "orjson", "msgspec", "lm-eval", "inspect-ai", "click")


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement and its peer."""

    what: str
    """What we do."""
    ours: float
    beside: str
    """What the peer does; for a budget, what it allows."""
    peer: float
    target: float
    """The largest allowed ratio ours / peer; with `faster`, the least allowed peer / ours."""
    unit: str = "s"
    """Unit of `ours` and `peer`: "s", "MB", or "" for a share."""
    faster: bool = False
    """The aim is "so many times faster or leaner than the peer"."""

    @property
    def ratio(self) -> float:
        return self.peer / self.ours if self.faster else self.ours / self.peer

    @property
    def met(self) -> bool:
        return self.ratio >= self.target if self.faster else self.ratio <= self.target

    def cells(self) -> list[str]:
        """What is shown: what, ours, beside, peer, ratio, target, verdict."""
        sign, verdict = "≥" if self.faster else "≤", "met" if self.met else "MISSED"
        ours, peer, ratio = _amount(self.ours, self.unit), _amount(self.peer, self.unit), _digits(self.ratio)
        return [self.what, ours, self.beside, peer, ratio, f"{sign} {self.target:g}", verdict]


HEAD = ["what", "ours", "beside", "peer", "ratio", "target", ""]
RIGHT = (1, 3, 4, 5)


def _amount(value: float, unit: str) -> str:
    if unit == "s" and value < 1:
        value, unit = value * 1000, "ms"
    return f"{_digits(value)} {unit}".rstrip()


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def show(rows: Sequence[Row], as_json: bool | None = None) -> int:
    """Print the rows, aligned or as JSON (by default where `--json` was given); 1 where a target is missed."""
    if "--json" in sys.argv if as_json is None else as_json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        table = [HEAD, *(row.cells() for row in rows)]
        widths = [max(len(line[i]) for line in table) for i in range(len(HEAD))]
        for line in table:
            cells = [line[i].rjust(w) if i in RIGHT else line[i].ljust(w) for i, w in enumerate(widths)]
            print("  ".join(cells).rstrip(), flush=True)
    return 0 if SMALL or all(row.met for row in rows) else 1


def size(usual: int, small: int) -> int:
    """How many of something a benchmark takes: fewer where it only has to run."""
    return small if SMALL else usual


def best(*calls: Callable[[], object], rounds: int) -> list[float]:
    """Processor seconds of each, the best of some rounds that all take part in."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, spent in zip(calls, times, strict=True):
            start = time.process_time()
            call()
            spent.append(time.process_time() - start)
    return [min(spent) for spent in times]


def parser(doc: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has; it may add its own, with defaults."""
    out = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("--json", action="store_true", help="one line of JSON in place of the table")
    out.add_argument("--small", action="store_true", help="a small size, to see that it runs")
    return out


def measure(script: Path) -> list[Row] | None:
    """The rows of one benchmark, run as a process of its own; None where it fails."""
    command = [sys.executable, str(script), "--json", *(["--small"] if SMALL else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    try:
        rows = [Row(**item) for item in json.loads(done.stdout.strip().splitlines()[-1])]
        return rows if rows and (done.returncode == 0 or not SMALL) else None
    except (IndexError, ValueError, TypeError):
        print(f"{script.name}: no rows (exit {done.returncode})", file=sys.stderr)
        return None


def about(script: Path) -> str:
    """The first paragraph of a script's docstring, on one line."""
    doc = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    return " ".join(doc.partition("\n\n")[0].split())


def machine() -> str:
    """The machine in general words."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GB, {platform.system()}"


def versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} not installed")
    return ", ".join(found)


def section(script: Path, rows: Sequence[Row]) -> str:
    """A benchmark's part of the README: what it measures, when and where, and its table."""
    out = [about(script), "", "| what | ours | beside | peer | ratio | target | |", "|---|---:|---|---:|---:|---:|---|"]
    out += [f"| {' | '.join(row.cells())} |" for row in rows]
    return "\n".join([*out, "", f"{datetime.date.today():%-d %B %Y}, {machine()}. {versions()}."])


def sections(page: str) -> dict[str, str]:
    """The sections of the README by name."""
    parts = (part.partition("\n") for part in page.split("\n## ")[1:])
    return {name: text.strip() for name, _, text in parts}


def page(found: Mapping[str, str]) -> str:
    """The README, of its sections."""
    head = (
        "# Benchmarks\n\n`make bench` measures these and writes this page. `make bench BENCH=read` writes one section. "
        "Both things of a line are measured in turns, in one run on one machine. So their ratio also holds on other "
        "machines. For a target with ≤ it is our amount over the peer's, for a target with ≥ the peer's over ours. "
        "If the peer is a budget, its amount is what the target allows."
    )
    return "\n\n".join([head, *(f"## {name}\n\n{text}" for name, text in sorted(found.items()))]) + "\n"


def small(scripts: Sequence[Path]) -> int:
    """Run them beside each other; 1 where one of them gives no rows."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ran = list(pool.map(measure, scripts))
    for script, rows in zip(scripts, ran, strict=True):
        print(f"{script.name}: {'FAILED' if rows is None else f'{len(rows)} rows'}")
    return int(None in ran)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", help="which; default: all")
    options.add_argument("--small", action="store_true", help="a small size, to see that they run; writes nothing")
    names = options.parse_args().names
    readme = HERE / "README.md"
    scripts = [HERE / f"bench_{name}.py" for name in names] or sorted(HERE.glob("bench_*.py"))
    if SMALL:
        return small(scripts)
    found = sections(readme.read_text(encoding="utf-8")) if names and readme.exists() else {}
    bad = False
    for script in scripts:
        name = script.stem.removeprefix("bench_")
        print(f"== {name}", flush=True)
        rows = measure(script)
        bad |= rows is None or show(rows, as_json=False) != 0
        if rows is not None:
            found[name] = section(script, rows)
            readme.write_text(page(found), encoding="utf-8")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())

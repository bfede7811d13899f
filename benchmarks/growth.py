"""How time and memory grow with questions, answers, clusters, models and files: a figure and a page.

    python benchmarks/growth.py [PAGE.md FIGURE.svg] [--only NAME …]

Each point is a process of its own on one core: processor time of the work, the least of some rounds,
and the peak of its resident memory less what it held before the work (imports and input). The slope is
fitted to the upper decade of each curve, on log axes: 1 is linear. Exits with 1 where a curve is
steeper than it may be.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy is loaded

import numpy as np

LINEAR = 1.2
"""A slope up to this is linear: it leaves room for n log n, for memory that is slower than the caches, and for
what else the machine does."""
LOOKED_UP = 1.4
"""The largest slope where each question is looked up by its text, in any order, and misses the caches."""
LEAST_SECONDS, LEAST_MEGABYTES = 0.003, 3.0
"""Below these a point says more about the interpreter than about the work."""

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Curve:
    axis: str
    what: str
    sizes: tuple[int, ...]
    prepare: Callable[[int, Path], Work]
    """(size, an empty folder) → the work; what this does is not measured."""
    slope: float = LINEAR
    """The largest allowed slope of time and of memory."""


def answers(n: int, K: int = 10, seed: int = 0, continuous: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    p = rng.random((n, 1))
    return np.clip(p + 0.2 * rng.standard_normal((n, K)), 0, 1) if continuous else (rng.random((n, K)) < p) * 1.0


def run(n: int, K: int = 1, seed: int = 0, order: np.ndarray | None = None, **choices: Any) -> Any:
    """A Run with texts to verify the pairing by, in any order of its questions."""
    from harness_noise.data.questions import Questions
    from harness_noise.data.scores import Run, Scores

    order = np.arange(n) if order is None else order
    keys = tuple(f"q{i}" for i in order)
    questions = Questions(keys, "sample id", inputs=tuple(f"{i}?" for i in order), targets=("a",) * n)
    values = answers(n, K, seed, **choices)
    return Run(f"m{seed}", f"r{seed}", "array", scores=(Scores("t", "acc", "none", questions, values),))


def estimate(n: int, _: Path, K: int = 10, labels: np.ndarray | None = None, **settings: Any) -> Work:
    import harness_noise as hn

    x, clusters = answers(n, K), [f"c{i}" for i in (np.arange(n) // 10 if labels is None else labels)]
    hn.estimate(x[:50], clusters=clusters[:50])  # what is imported on the way
    return lambda: hn.estimate(x, clusters=clusters, **settings)


def difference(n: int, _: Path, K: int = 10, **settings: Any) -> Work:
    import harness_noise as hn

    x, y, clusters = answers(n, K), answers(n, K, 1), [f"c{i // 10}" for i in range(n)]
    hn.estimate_difference(x[:50], y[:50], clusters=clusters[:50], **settings)
    return lambda: hn.estimate_difference(x, y, clusters=clusters, **settings)


def shuffled(n: int, _: Path) -> Work:
    import harness_noise as hn

    order = np.random.default_rng(2).permutation(n)
    a, b = run(n), run(n, seed=1, order=order)
    hn.compare(run(20), run(20, seed=1))
    return lambda: hn.compare(a, b, questions=10)


def corpus(n: int, _: Path) -> Work:
    """F1 as a function of three counts per question."""
    import harness_noise as hn
    from harness_noise.data.questions import Questions
    from harness_noise.data.scores import CorpusScores, Run

    def made(n: int) -> Run:
        counts = np.random.default_rng(0).integers(0, 3, (n, 2, 3)).astype(float)
        item = CorpusScores(
            "t", "f1", "none", Questions(tuple(map(str, range(n)))), stats=counts,
            value=lambda s: 2 * s[..., 0] / (2 * s[..., 0] + s[..., 1] + s[..., 2]),
        )  # fmt: skip
        return Run("m", "r", "array", corpus=(item,))

    item = made(n)
    hn.analyze(made(20))
    return lambda: hn.analyze(item, resamples=200)


def group(tasks: int, _: Path) -> Work:
    """The mean of many tasks of 100 questions."""
    from dataclasses import replace

    import harness_noise as hn
    from harness_noise.data.scores import Group

    def made(tasks: int) -> Any:
        one = run(100)
        parts = tuple(replace(one.scores[0], task=f"t{i}") for i in range(tasks))
        whole = Group("all", "acc", "none", tuple(part.task for part in parts), "equal")
        return replace(one, parts=parts, scores=(), groups=(whole,))

    item = made(tasks)
    hn.analyze(made(3))
    return lambda: hn.analyze(item)


def arena(M: int, _: Path, n: int = 1000, K: int = 4, **choices: Any) -> Work:
    import harness_noise as hn

    runs = [run(n, K, seed, **choices) for seed in range(M)]
    hn.arena([run(20, 2), run(20, 2, 1)])
    return lambda: hn.arena(runs)


def repeats(R: int, _: Path) -> Work:
    """Runs of one model, joined as its repeats."""
    from dataclasses import replace

    from harness_noise.analysis.repeats import as_repeats

    runs = [replace(run(1000, seed=seed), model="m") for seed in range(R)]
    as_repeats(runs[:2])
    return lambda: as_repeats(runs)


def table(n: int, folder: Path) -> Work:
    import harness_noise as hn

    path = folder / "scores.csv"
    path.write_text("question,score\n" + "".join(f"q{i},{i % 2}\n" for i in range(n)))
    small = folder / "small.csv"
    small.write_text("question,score\nq1,1\nq2,0\n")
    hn.analyze(small)
    return lambda: hn.analyze(path)


def lm_eval_rows(n: int, folder: Path) -> Work:
    from bench_startup import write_lm_eval

    import harness_noise as hn

    write_lm_eval(folder / "small", 20)
    hn.analyze(folder / "small")
    write_lm_eval(folder / "run", n)
    return lambda: hn.analyze(folder / "run")


def lm_eval_files(files: int, folder: Path) -> Work:
    from bench_startup import write_lm_eval

    import harness_noise as hn

    write_lm_eval(folder / "small", 20)
    hn.analyze(folder / "small")
    for i in range(files):
        write_lm_eval(folder / f"run{i}", 50, f"m{i}")
    return lambda: hn.analyze([folder / f"run{i}" for i in range(files)])


def inspect_files(files: int, folder: Path) -> Work:
    """One log, again and again under other names, as if of other tasks."""
    from bench_inspect import write_log

    write_log(folder / "log.eval", 50, 1)
    from zipfile import ZIP_DEFLATED, ZipFile

    import harness_noise as hn

    hn.analyze(folder / "log.eval")
    source = ZipFile(folder / "log.eval")
    (folder / "logs").mkdir()
    for i in range(files):
        with ZipFile(folder / "logs" / f"{i}.eval", "w", ZIP_DEFLATED, compresslevel=1) as target:
            for name in source.namelist():
                data = source.read(name)
                if name == "header.json":
                    header = json.loads(data)
                    header["eval"] |= {"task_id": f"id{i}", "task": f"task{i}"}
                    data = json.dumps(header).encode()
                target.writestr(name, data)
    return lambda: hn.analyze(folder / "logs")


def steps(*ends: int) -> tuple[int, ...]:
    """Powers of ten between the ends, and the middle of the last decade."""
    low, high = ends
    out = [high, round(high / 10**0.5), high // 10]
    while out[-1] // 10 >= low:
        out.append(out[-1] // 10)
    return tuple(reversed(out))


def giant(n: int) -> np.ndarray:
    """Half of the questions are one cluster."""
    return np.where(np.arange(n) < n // 2, 0, np.arange(n))


N, K, G, M, F = "questions", "answers per question", "clusters", "models or runs", "tasks or files"
CURVES = {
    "estimate": Curve(N, "estimate, K = 10, clusters of 10", steps(1000, 1_000_000), estimate),
    "giant": Curve(N, "estimate, half of them one cluster", steps(1000, 1_000_000),
                   lambda n, folder: estimate(n, folder, 1, giant(n))),
    "difference": Curve(N, "estimate_difference, K = 10", steps(1000, 300_000), difference),
    "bootstrap": Curve(N, "the same by bootstrap (1,000)", steps(1000, 100_000),
                       lambda n, folder: difference(n, folder, 1, test="bootstrap", resamples=1000)),
    "permutation": Curve(N, "the same by permutation (1,000)", steps(1000, 100_000),
                         lambda n, folder: difference(n, folder, 1, test="permutation", resamples=1000)),
    "compare": Curve(N, "compare, questions in another order", steps(1000, 300_000), shuffled, LOOKED_UP),
    "corpus": Curve(N, "a corpus metric (F1, 200 resamples)", steps(1000, 100_000), corpus),
    "arena_n": Curve(N, "arena of 10 models, K = 4", steps(300, 100_000), lambda n, folder: arena(10, folder, n)),
    "table": Curve(N, "reading a CSV table", steps(1000, 300_000), table),
    "lm_eval": Curve(N, "reading an lm-eval run", steps(300, 30_000), lm_eval_rows),
    "estimate_k": Curve(K, "estimate, 1,000 questions", steps(1, 3000),
                        lambda k, folder: estimate(1000, folder, k)),
    "difference_k": Curve(K, "estimate_difference, 1,000 questions", steps(1, 1000),
                          lambda k, folder: difference(1000, folder, k)),
    "arena_k": Curve(K, "arena of 5 models, 200 questions, graded scores", steps(1, 300),
                     lambda k, folder: arena(5, folder, 200, k, continuous=True)),
    "estimate_g": Curve(G, "estimate, 300,000 questions", steps(3, 300_000),
                        lambda g, folder: estimate(300_000, folder, 1, np.arange(300_000) % g)),
    "bootstrap_g": Curve(G, "the same, bootstrap interval (200)", steps(3, 300_000),
                         lambda g, folder: estimate(300_000, folder, 1, np.arange(300_000) % g,
                                                    interval="bootstrap", resamples=200)),
    "arena": Curve(M, "arena, 1,000 questions, K = 4 (all pairs)", steps(10, 1000), arena, 2.15),
    "repeats": Curve(M, "runs joined as repeats, 1,000 questions", steps(3, 300), repeats),
    "group": Curve(F, "a group of tasks, 100 questions each", steps(3, 3000), group),
    "lm_eval_files": Curve(F, "lm-eval runs, 50 questions each", steps(3, 300), lm_eval_files),
    "inspect_files": Curve(F, "Inspect logs, 50 questions each", steps(3, 100), inspect_files),
}  # fmt: skip


def one(name: str, size: int) -> None:
    """In a process of its own: prints processor seconds and megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        work = CURVES[name].prepare(size, Path(folder))
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        before = peak()
        seconds = []
        while sum(seconds) < 0.3 and len(seconds) < 5:
            start = time.process_time()
            kept = work()
            seconds.append(time.process_time() - start)
            del kept
        print(json.dumps([min(seconds), peak() - before]))


def peak() -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def measure(name: str) -> list[tuple[float, float]]:
    points = []
    for size in CURVES[name].sizes:
        done = subprocess.run(
            [sys.executable, __file__, "--one", name, str(size)], stdout=subprocess.PIPE, text=True, check=True
        )
        points.append(tuple(json.loads(done.stdout.splitlines()[-1])))
    return points


def slope(sizes: tuple[int, ...], values: list[float], least: float) -> float | None:
    """Slope of the upper decade on log axes; None where it is too small to be seen."""
    kept = [(x, y) for x, y in zip(sizes[-3:], values[-3:], strict=True) if y >= least]
    if len(kept) < 2:
        return None
    x, y = np.log(np.array(kept, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])


def draw(found: dict[str, list[tuple[float, float]]], path: Path) -> None:
    """A column for each thing that grows; time above, memory below."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "growth", "svg.fonttype": "none", "font.size": 8, "font.family": "sans-serif",
                     "axes.spines.top": False, "axes.spines.right": False}  # fmt: skip
    import matplotlib.pyplot as plt

    axes = [axis for axis in (N, K, G, M, F) if any(CURVES[name].axis == axis for name in found)]
    figure, grid = plt.subplots(2, len(axes), figsize=(3.4 * len(axes), 6.4), squeeze=False, sharex="col")
    for column, axis in enumerate(axes):
        names = [name for name in found if CURVES[name].axis == axis]
        for row, label in enumerate(("seconds", "MB")):
            panel = grid[row, column]
            for name in names:
                values = [max(point[row], 1e-4 if row == 0 else 0.1) for point in found[name]]
                panel.loglog(CURVES[name].sizes, values, marker=".", linewidth=1, label=CURVES[name].what)
            panel.minorticks_off()
            low, high = panel.get_xlim()
            floor = panel.get_ylim()[0]
            panel.plot([low, high], [floor, floor * high / low], color="0.8", linewidth=0.8, zorder=0)
            panel.set_xlim(low, high)
            panel.set_ylim(floor, max(max(p[row] for p in found[name]) for name in names) * 2)
            panel.set_ylabel(label if column == 0 else "")
        grid[1, column].set_xlabel(axis)
        grid[0, column].legend(fontsize=6, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0))
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def page(found: dict[str, list[tuple[float, float]]], figure: str) -> str:
    from table import machine

    out = [
        "# Performance",
        "",
        "What an analysis takes, and how that grows. `make growth` measures it and writes this page. `make bench` "
        "measures the speed next to other programs, into `benchmarks/README.md`.",
        "",
        f"![Time and memory against questions, answers, clusters, models and files]({figure})",
        "",
        f"Each point is a process of its own on one core of a machine: {machine()}. Time is the processor time of the "
        "work. Memory is its peak, less imports and input. Grey: linear. Everything is linear except what is computed "
        "for every pair of models: an arena's matrices have an entry for each.",
        "",
        "The slope is that of the upper decade on log axes. 1 is linear. Less than 1: a part of the cost does not "
        "grow. –: too little to measure. The slope is a little above 1 if questions are looked up by their text. The "
        "more there are, the fewer of them are in the processor's caches.",
        "",
        "| against | what | up to | time | memory | slope of time | of memory |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for name, points in found.items():
        curve = CURVES[name]
        seconds, megabytes = points[-1]
        slopes = ["–" if s is None else f"{s:.2f}" for s in slopes_of(name, points)]
        out.append(
            f"| {curve.axis} | {curve.what} | {curve.sizes[-1]:,} | {seconds:.3g} s | {megabytes:.0f} MB | "
            f"{slopes[0]} | {slopes[1]} |"
        )
    return "\n".join(out) + "\n"


def slopes_of(name: str, points: list[tuple[float, float]]) -> tuple[float | None, float | None]:
    sizes = CURVES[name].sizes
    return (
        slope(sizes, [p[0] for p in points], LEAST_SECONDS),
        slope(sizes, [p[1] for p in points], LEAST_MEGABYTES),
    )


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("page", nargs="?", type=Path, help="write the page there")
    options.add_argument("figure", nargs="?", type=Path, help="and the figure there")
    options.add_argument("--only", nargs="+", metavar="NAME", choices=CURVES, help="only these curves")
    options.add_argument("--one", nargs=2, metavar=("NAME", "SIZE"), help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one:
        one(chosen.one[0], int(chosen.one[1]))
        return 0
    found, steep = {}, []
    for name in chosen.only or CURVES:
        points = found[name] = measure(name)
        slopes = slopes_of(name, points)
        bad = any(s is not None and s > CURVES[name].slope for s in slopes)
        steep += [name] if bad else []
        seconds, megabytes = points[-1]
        shown = ["   –" if s is None else f"{s:4.2f}" for s in slopes]
        print(f"{CURVES[name].axis:22} {CURVES[name].what:50} {CURVES[name].sizes[-1]:>9,} {seconds:8.3f} s {shown[0]} "
              f"{megabytes:7.0f} MB {shown[1]}  {'TOO STEEP' if bad else ''}".rstrip(), flush=True)  # fmt: skip
    if chosen.page and chosen.figure:
        chosen.figure.parent.mkdir(parents=True, exist_ok=True)
        draw(found, chosen.figure)
        text = page(found, os.path.relpath(chosen.figure, chosen.page.parent))
        chosen.page.write_text(text, encoding="utf-8")
    return int(bool(steep))


if __name__ == "__main__":
    sys.exit(main())

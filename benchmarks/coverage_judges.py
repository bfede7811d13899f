"""Coverage of means and differences that human labels correct, by simulation; one page of tables.

    python benchmarks/coverage_judges.py [docs/methods/coverage-judges.md] [--replications N] [--only WORD]…

With `--only` the other rows of the page stay as they are.

People are right; the judge finds a right answer right with the probability that is its sensitivity, and a wrong one
wrong with its specificity, or gives a grade from 1 to 10. A random subset of the answers has labels, whole clusters.
What the library computes is called as it is (`extra.labels.correcting`, `analysis.comparison`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

from harness_noise.analysis.comparison import difference_of_scores
from harness_noise.analysis.mean import estimate_scores
from harness_noise.analysis.sample import as_scores
from harness_noise.extra.labels.correcting import LabelOptions, label_arrays
from harness_noise.settings import Settings

SEED = 20261124
SPREAD = 0.7
"""Standard deviation of the clusters' effects, in logits: an intraclass correlation of about .1."""
LOW, HIGH = 0.935, 0.985
WARNINGS = frozenset({"few_clusters", "few_labels", "few_labelled_failures", "few_failures", "few_flips", "skewed"})
OPTIONS, SETTINGS = LabelOptions(at_random=True), Settings()


@dataclass(frozen=True, slots=True)
class Judge:
    """How a judge grades right and wrong answers."""

    name: str
    sensitivity: float = 0.0
    specificity: float = 0.0
    graded: bool = False
    """Grades from 1 to 10, which are too high by 1; labels are grades, too."""


GOOD, LENIENT, POOR = (Judge(f"{a} / {b}", a, b) for a, b in ((0.95, 0.95), (0.9, 0.7), (0.6, 0.6)))
HARSH = Judge("0.7 / 0.95", 0.7, 0.95)
GRADES = Judge("grades 1–10", graded=True)


@dataclass(frozen=True, slots=True)
class Cell:
    """One design."""

    part: str
    judges: tuple[Judge, ...]
    """Of one model, or of A and B."""
    N: int
    m: int
    size: int
    """Questions of a cluster."""
    right: tuple[float, ...] = (0.7,)
    """Accuracy by human labels."""


MEANS = "Means"
ALIKE = "Differences, the judge biased alike"
UNLIKE = "Differences, the judge biased towards A"


def cells() -> Iterator[Cell]:
    sizes = [(N, m, size) for N in (500, 2000) for m in (30, 100, 300) for size in (1, 10)]
    for judge in (GOOD, LENIENT, POOR, GRADES):
        for design in sizes:
            yield Cell(MEANS, (judge,), *design)
    for m, size in ((100, 1), (300, 1), (300, 10)):
        yield Cell(f"{MEANS} near the end of the range", (LENIENT,), 2000, m, size, (0.95,))
    for N, m, size in sizes:
        if m > 30 and (N, m) != (500, 100):
            for right in ((0.7, 0.7), (0.7, 0.6)):
                yield Cell(ALIKE, (LENIENT, LENIENT), N, m, size, right)
                yield Cell(UNLIKE, (LENIENT, HARSH), N, m, size, right)
    yield Cell(ALIKE, (GRADES, GRADES), 500, 100, 1, (0.7, 0.7))


def labels_of(rng: np.random.Generator, cell: Cell, effects: np.ndarray) -> list[np.ndarray]:
    """(N,) labels of every model; questions of a cluster share their effect, and so do the models."""
    out = []
    for right in cell.right:
        if cell.judges[0].graded:
            out.append(10 * right + 1.5 * effects + rng.normal(size=cell.N))
            continue
        # the logit whose mean over the effects is the accuracy
        centre = logit(right) * np.sqrt(1 + 0.346 * SPREAD**2)
        out.append((rng.random(cell.N) < expit(centre + SPREAD * effects)).astype(np.float64))
    return out


def judged(rng: np.random.Generator, judge: Judge, label: np.ndarray) -> np.ndarray:
    """(N,) scores of the judge."""
    if judge.graded:
        return np.round(label + 1 + rng.normal(size=len(label)))
    r = rng.random(len(label))
    return np.where(label == 1, r < judge.sensitivity, r >= judge.specificity).astype(np.float64)


def population(cell: Cell) -> list[float]:
    """The true means."""
    if cell.judges[0].graded:
        return [10 * right for right in cell.right]
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    effect = [expit(logit(p) * np.sqrt(1 + 0.346 * SPREAD**2) + SPREAD * nodes) @ weights for p in cell.right]
    return [float(x / weights.sum()) for x in effect]


@dataclass(frozen=True, slots=True)
class Shares:
    """What the replications of a cell say."""

    covered: float
    coded: float
    """Share with a code that warns."""
    naive: float
    """The same of the judge's own scores."""
    width: float
    rejected: float
    """Share that call a difference, or say nothing of a mean."""
    naive_rejected: float


def shares(cell: Cell, R: int) -> Shares:
    """R replications of a cell."""
    rng = np.random.default_rng([SEED, hash_of(cell)])
    G, true = cell.N // cell.size, population(cell)
    target = true[0] if len(true) == 1 else true[0] - true[1]
    clusters = None if cell.size == 1 else np.repeat(np.arange(G), cell.size)
    counts = np.zeros(6)
    for _ in range(R):
        effects = np.repeat(rng.normal(size=G), cell.size)
        labels = labels_of(rng, cell, effects)
        drawn = np.zeros(G, dtype=np.bool_)
        drawn[rng.permutation(G)[: cell.m // cell.size]] = True
        asked = np.repeat(drawn, cell.size)
        scores = [as_scores(judged(rng, x, y), clusters) for x, y in zip(cell.judges, labels, strict=True)]
        fixed = [
            label_arrays(score, np.where(asked, y, np.nan), OPTIONS, SETTINGS)
            for score, y in zip(scores, labels, strict=True)
        ]
        rows: list[Any] = [
            estimate_scores(x[0], SETTINGS) if len(x) == 1 else difference_of_scores(x[0], x[1], SETTINGS)
            for x in (fixed, scores)
        ]
        inside = [row.ci_low <= target <= row.ci_high for row in rows]
        differ = [len(true) == 2 and row.verdict != "not separable" for row in rows]
        warned = bool(WARNINGS.intersection(rows[0].diagnostics))
        counts += (inside[0], warned, inside[1], rows[0].ci_high - rows[0].ci_low, differ[0], differ[1])
    return Shares(*(counts / R).tolist())


def hash_of(cell: Cell) -> int:
    """A number of the cell's own, the same in every run."""
    text = repr(cell).encode()
    return int.from_bytes(text[-8:], "little") ^ (len(text) * cell.N * cell.m * cell.size)


PAGE = """# Judges corrected by labels, by simulation

`make coverage` writes this page (`benchmarks/coverage_judges.py`). *m* of *N* questions have human labels, in whole
clusters of the size given. A judge is named by its sensitivity / specificity. *Grades* are 1 to 10, by people and by a
judge that is too high by 1. People call 0.7 of the answers right, in differences 0.7 against 0.7 or 0.6. Questions of
one cluster share their difficulty (standard deviation 0.7 in logits), as do two models on one question. *covered* is
the share of 95% intervals that hold what people would say of all questions, with labels and by the judge's own scores.
*code* is the share of replications with {codes}.
A dash: counted with a code that differences no longer have (`few_flips`, on influences).
Of 200 replications a share of 95% is known to ± 3 points, of 700 to ± 1.6. Cells outside {low} to {high}% by more
than that are marked.
"""


def designed(cell: Cell) -> list[str]:
    """The columns that name a cell."""
    names = " and ".join(dict.fromkeys(judge.name for judge in cell.judges))
    effect = [f"{cell.right[0] - cell.right[1]:.1f}"] if len(cell.judges) == 2 else []
    return [names, f"{cell.N:,}", str(cell.m), str(cell.size), *effect]


def found_in(cell: Cell, R: int) -> list[str]:
    """The columns that R replications of a cell fill, without digits that they do not give."""
    found, pair = shares(cell, R), len(cell.judges) == 2
    error = 2 * np.sqrt(0.05 * 0.95 / R)
    mark = "" if LOW - error <= found.covered <= HIGH + error else " *"
    if mark and found.coded < 0.95 - found.covered:
        print(f"without a code: {cell}", file=sys.stderr)
    out = [f"{100 * found.covered:.0f}{mark}", f"{100 * found.naive:.0f}", f"{found.width:.2f}"]
    out += [f"{100 * found.rejected:.0f}", f"{100 * found.naive_rejected:.0f}"] if pair else []
    return [*out, f"{100 * found.coded:.0f}", str(R)]


def earlier(path: Path | None) -> dict[tuple[str, ...], list[str]]:
    """Part and design of every row that a page has → its other columns."""
    from results import read

    out, part = dict[tuple[str, ...], list[str]](), ""
    for line in read(path).splitlines() if path is not None else ():
        part = line.removeprefix("## ") if line.startswith("## ") else part
        columns, n = [column.strip() for column in line.strip("|").split("|")], 5 if part.startswith("Diff") else 4
        if line.startswith("| ") and columns[1].replace(",", "").isdecimal():
            out[part, *columns[:n]] = columns[n:]
    return out


def page(R: int, only: list[str] | None, kept: dict[tuple[str, ...], list[str]]) -> str:
    """The page; of a row without a word of `only` as it was."""
    parts: dict[str, list[str]] = {}
    for cell in cells():
        key = (cell.part, *designed(cell))
        stays = key in kept and only is not None and not any(word in " | ".join(key) for word in only)
        columns = [*key[1:], *(kept[key] if stays else found_in(cell, R))]
        parts.setdefault(cell.part, []).append(f"| {' | '.join(columns)} |")
        if not stays:
            print(cell.part, parts[cell.part][-1], file=sys.stderr, flush=True)
    codes = ", ".join(f"`{code}`" for code in sorted(WARNINGS))
    out = [PAGE.format(codes=codes, low=f"{100 * LOW:g}", high=f"{100 * HIGH:g}")]
    for part, rows in parts.items():
        pair = part.startswith("Differences")
        head = ["judge", "N", "m", "cluster", *(["A − B"] if pair else []), "covered, %", "judge's own, %", "width"]
        head += ["called different, %", "by the judge's own, %"] if pair else []
        head += ["code, %", "replications"]
        out.append(
            "\n".join([f"## {part}\n", f"| {' | '.join(head)} |", "| --- |" + " ---: |" * (len(head) - 1), *rows])
        )
    return "\n\n".join([out[0].rstrip("\n"), *out[1:]]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", nargs="?", type=Path)
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--only", nargs="*", help="words of a part or a design; the other rows stay")
    chosen = parser.parse_args()
    text = page(chosen.replications, chosen.only, earlier(chosen.output))
    if chosen.output is None:
        print(text)
    else:
        from results import write

        write(chosen.output, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

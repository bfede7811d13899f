"""How often a gate is wrong, and what it sees, by simulation; one page of tables.

    python benchmarks/coverage_gate.py [docs/methods/coverage-gate.md] [--replications N] [--only WORD]…

With `--only` the other rows of the page stay as they are.

A model answers as its baseline does but for a tenth of the questions, which it answers anew: scores are 0 or 1, the
accuracy is .7, and 4% of the questions score otherwise in two runs. A loss is exact: so many right answers are made
wrong. What the library computes is called as it is (`extra.gate.judge.judge`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from harness_noise.arrays import rows_of
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.errors import counted
from harness_noise.extra.gate.judge import Bar, Floor, judge
from harness_noise.settings import Settings
from harness_noise.stats.baselines import by_runs, run_spread, with_new_run
from harness_noise.stats.contrast import Design, design
from harness_noise.stats.decision import adjusted, decide
from harness_noise.stats.moments import RunComponent, mean_variance, run_component
from harness_noise.stats.pairs import extended_samples, leads, paired

SEED = 20261123
RIGHT, ANEW = 0.7, 0.1
ANSWER_NOISE = RIGHT * (1 - ANEW * (1 - RIGHT)) * ANEW * (1 - RIGHT) + (1 - RIGHT) * ANEW * RIGHT * (1 - ANEW * RIGHT)
"""Variance of one answer about the mean of its question."""
N = 400


@dataclass(frozen=True)
class Cell:
    """One design, and how often the gate does what is asked about."""

    part: str
    name: str
    outcome: str
    """fail or pass: whose share is shown."""
    bar: Bar
    nominal: float | None = None
    """The most that the share may be; None: it is power."""
    rows: int = 1
    losses: tuple[float, ...] = (0.0,)
    """True losses of the rows, in turn."""
    groups: int = 0
    """Tasks in a group; 0: no groups."""
    baselines: int = 1
    run_noise: float = 0.0
    """Variance between runs, in variances of the answers' mean."""
    clusters: int = 0
    floor: float | None = None
    published: int | None = None
    """Questions that the floor was measured on, each time anew."""
    n: int = N
    level: float = field(default=0.95)


def answers(
    rng: np.random.Generator, cell: Cell, truth: np.ndarray, codes: np.ndarray, losses: np.ndarray
) -> np.ndarray:
    """(P, rows, n) scores of a run; `truth` has the answers that most runs give, `losses` (P, rows, 1) what is lost."""
    P, rows, _ = truth.shape
    size = cell.clusters or cell.n
    anew = (rng.random((P, rows, size)) < ANEW)[:, :, codes]
    values = np.where(anew, (rng.random((P, rows, size)) < RIGHT)[:, :, codes], truth)
    if cell.run_noise:
        losses = losses + rng.normal(size=(P, rows, 1)) * np.sqrt(cell.run_noise * ANSWER_NOISE / cell.n)
    worse, better = (rng.random(values.shape) < x for x in (losses / RIGHT, -losses / (1 - RIGHT)))
    return np.where(worse, 0.0, np.where(better, 1.0, values)).astype(np.float64)


def tails(d: np.ndarray, plan: Design, cell: Cell, table: np.ndarray | None = None) -> np.ndarray:
    """(P, 2) one-sided p-values below and above the margin of (P, n) differences, as `compare` has them."""
    m, settings = mean_variance(d, plan, "cr2"), Settings(level=cell.level, margin=cell.bar.margin or None)
    of, far = leads(d, plan, m), extended_samples(d, plan, m, "cr2")
    if table is None:
        return decide(paired(m, of, far, 1.0), settings).one_sided[:, :2]
    out = []
    for i, runs in enumerate(table):  # (P, n, R) baseline runs
        one, few, led = (rows_of(part, slice(i, i + 1)) for part in (m, far, of))
        spread = run_spread(runs, component(runs, plan), plan, "cr2", 1.0)
        last = paired(with_new_run(one, spread, cell.level), led, few, 1.0)
        out.append(decide(last, settings, by_runs(last, one, spread, few)).one_sided[0, :2])
    return np.array(out)


def component(values: np.ndarray, plan: Design) -> RunComponent:
    found = run_component(values, plan.weights, plan.strata)
    assert found is not None
    return found


def outcomes(rng: np.random.Generator, cell: Cell, P: int) -> list[str]:
    """The verdicts of P replications; the first is that of `judge`, too."""
    codes = np.arange(cell.n) % cell.clusters if cell.clusters else np.arange(cell.n)
    truth = (rng.random((P, cell.rows, cell.clusters or cell.n)) < RIGHT)[:, :, codes]
    lost = np.resize(np.array(cell.losses), cell.rows)[None, :, None]
    new = answers(rng, cell, truth, codes, lost)
    if cell.floor is not None:
        settings = Settings(level=cell.level)
        value = [cell.floor] * P
        if cell.published is not None:
            value = list(rng.binomial(cell.published, cell.floor, P) / cell.published)
        return [
            judge(run_of(new[i], cell, codes, "new"), [], [Floor(value[i], cell.published)], cell.bar, settings).outcome
            for i in range(P)
        ]
    old = [answers(rng, cell, truth, codes, np.zeros((1, 1, 1))) for _ in range(cell.baselines)]
    base = np.mean(old, axis=0)
    sets = [[r] for r in range(cell.rows)]
    if cell.groups:
        sets += [list(range(i, min(i + cell.groups, cell.rows))) for i in range(0, cell.rows, cell.groups)]
    if cell.bar.pooled:
        sets = [list(range(cell.rows))]
    d = new - (cell.bar.ratio or 1.0) * base
    p = np.empty((2, P, len(sets)))
    for k, rows in enumerate(sets):
        strata = np.repeat(np.arange(len(rows)), cell.n)
        labels = np.tile(codes, len(rows)) if cell.clusters else None
        plan = design(cell.n * len(rows), labels, strata)
        table = np.stack([run[:, rows[0]] for run in old], axis=2) if cell.baselines > 1 else None
        p[:, :, k] = tails(d[:, rows].reshape(P, -1), plan, cell, table).T
    alpha = (1 - cell.level) / 2
    shown = np.array([adjusted(row, "holm") for row in p[0]]) < alpha
    excluded = p[1] < alpha  # it must be excluded in every row, so that none is adjusted
    says = np.where(shown.any(axis=1), "fail", "pass" if cell.bar.rule == "regression" else "cannot judge")
    says[~shown.any(axis=1) & excluded.all(axis=1)] = "pass"
    olds = [run_of(run[0], cell, codes, f"old {r}") for r, run in enumerate(old)]
    whole = judge(run_of(new[0], cell, codes, "new"), olds, [], cell.bar, Settings(level=cell.level))
    of = 1 if cell.bar.rule == "no-loss" else 0
    theirs = sorted(row.p_value for row in whole.rows if row.decides and row.p_value is not None)
    assert whole.outcome == says[0]
    assert np.allclose(theirs, np.sort(p[of, 0]), rtol=1e-6, atol=1e-9)
    return list(says)


def run_of(values: np.ndarray, cell: Cell, codes: np.ndarray, name: str) -> Run:
    """(rows, n) scores as a run."""
    labels = tuple(map(str, codes.tolist())) if cell.clusters else None
    questions = Questions(tuple(map(str, range(cell.n))))
    scores = tuple(
        Scores(f"t{i}", "acc", "none", questions, values[i][:, None], higher_is_better=True, bounds=(0.0, 1.0),
               clusters=labels, cluster_spec=None if labels is None else "passage")
        for i in range(cell.rows)
    )  # fmt: skip
    starts = range(0, cell.rows, cell.groups) if cell.groups else ()
    groups = tuple(
        Group(f"g{i}", "acc", "none", tuple(f"t{j}" for j in range(i, min(i + cell.groups, cell.rows)))) for i in starts
    )
    return Run(name, name, "array", scores=scores, groups=groups)


def cells() -> Iterator[Cell]:
    """All designs; the loss on the margin is where a gate is wrong most often."""
    M = 0.02
    part = "Regression: a loss beyond the margin must be shown"
    for rows in (1, 4, 20, 57):
        for groups in (0, 5) if rows >= 20 else (0,):
            said = f"{counted(rows, 'row')}" + (f", and {-(-rows // groups)} groups of {groups}" if groups else "")
            yield Cell(part, f"{said}, no margin, no loss", "fail", Bar(), 0.025, rows, groups=groups)
            yield Cell(part, f"{said}, margin {M}, loss {M} in all", "fail", Bar(margin=M), 0.025, rows, (M,), groups)
    for rows in (1, 4, 20):
        for times in (0.5, 2, 3):
            name = f"{counted(rows, 'row')}, margin {M}, loss {times:g} × that in all"
            nominal = 0.025 if times < 1 else None
            yield Cell(part, name, "fail", Bar(margin=M), nominal, rows, (times * M,))
        one = (3 * M, *[0.0] * (rows - 1))
        if rows > 1:
            yield Cell(part, f"{rows} rows, margin {M}, loss 3 × that in one", "fail", Bar(margin=M), None, rows, one)
    part, M = "No-loss: a loss beyond the margin must be excluded", 0.05
    for rows in (1, 4, 20):
        for times in (0, 0.5, 1, 2):
            name = f"{counted(rows, 'row')}, margin {M}, loss {times:g} × that in one"
            loss = (times * M, *[0.0] * (rows - 1))
            bar = Bar(rule="no-loss", margin=M)
            yield Cell(part, name, "pass", bar, 0.025 if times >= 1 else None, rows, loss)
    part = "Recovery: 97% of the baseline must be kept"
    bar, kept = Bar(ratio=0.97), Bar(ratio=0.97, rule="no-loss")
    for rows in (1, 4, 20):
        for times in (0.5, 1, 2):
            loss = (times * 0.03 * RIGHT,)
            name = f"{counted(rows, 'row')}, loss {times:g} × 3% in all"
            yield Cell(part, f"regression, {name}", "fail", bar, 0.025 if times <= 1 else None, rows, loss)
            yield Cell(part, f"no-loss, {name}", "pass", kept, 0.025 if times >= 1 else None, rows, loss)
    part = "Floors"
    for rows in (1, 4, 20):
        for published in (None, 1319):
            of = "exact" if published is None else f"measured on {published:,} questions"
            name = f"{counted(rows, 'row')}, floor {RIGHT} {of}"
            yield Cell(part, f"{name}, no loss", "fail", Bar(), 0.025, rows, floor=RIGHT, published=published)
            loss = (0.08,)
            yield Cell(part, f"{name}, loss .08", "fail", Bar(), None, rows, loss, floor=RIGHT, published=published)
    part, M = "Pooled: the equal-weight mean decides", 0.02
    for rows in (4, 20):
        pooled = Bar(margin=M, pooled=True)
        yield Cell(part, f"{rows} rows, margin {M}, loss {M} in all", "fail", pooled, 0.025, rows, (M,))
        yield Cell(part, f"{rows} rows, margin {M}, loss 1.5 × that in all", "fail", pooled, None, rows, (1.5 * M,))
        kept = Bar(rule="no-loss", margin=M, pooled=True)
        yield Cell(part, f"{rows} rows, no-loss, loss {M} in all", "pass", kept, 0.025, rows, (M,))
        yield Cell(part, f"{rows} rows, no-loss, no loss", "pass", kept, None, rows)
    part = "Several baseline runs, and noise from run to run"
    for R in (1, 3, 6):
        for noise in (0, 0.25, 1):
            said = f"{R} baseline runs, run noise {noise:g} × the answers'"
            nominal = None if R == 1 and noise else 0.025
            yield Cell(part, f"{said}, no loss", "fail", Bar(), nominal, baselines=R, run_noise=noise)
            loss = (0.04,)
            yield Cell(part, f"{said}, loss .04", "fail", Bar(), None, losses=loss, baselines=R, run_noise=noise)
    part = "Few clusters"
    for G in (5, 8, 20):
        yield Cell(part, f"{G} clusters, no loss", "fail", Bar(), 0.025, clusters=G)
        for rule, outcome in (("regression", "fail"), ("no-loss", "pass")):
            name, bar = f"{G} clusters, {rule}, loss .05 on a margin of .05", Bar(rule=rule, margin=0.05)
            yield Cell(part, name, outcome, bar, 0.025, losses=(0.05,), clusters=G)


def page(found: list[tuple[Cell, int, float]]) -> str:
    """The tables, a part each."""
    lines = [
        "# Gates by simulation",
        "",
        "`make coverage` writes this page (`benchmarks/coverage_gate.py`). A model answers as its baseline does but "
        "for a tenth of the questions, which it answers again. Accuracy is 0.7, and a loss is exact. "
        f"{N} questions in each row. If a share may be at most 2.5%, this is the gate's promise. Else it is power. "
        "Standard errors are from the replications. Shares have as many digits as these allow.",
    ]
    for part in dict.fromkeys(cell.part for cell, _, _ in found):
        rows = [item for item in found if item[0].part == part]
        lines += ["", f"## {part}", "", "| design | says | share | promised | ± | replications |",
                  "| --- | --- | ---: | ---: | ---: | ---: |"]  # fmt: skip
        for cell, n, share in rows:
            se = np.sqrt(max(share * (1 - share), 1 / n / 4) / n)
            promised = "" if cell.nominal is None else f"≤ {100 * cell.nominal:g}%"
            digits = 1 if 100 * se < 0.5 else 0
            lines.append(
                f"| {cell.name} | {cell.outcome} | {100 * share:.{digits}f}% | {promised} | {100 * se:.1f} | {n:,} |"
            )
    return "\n".join(lines) + "\n"


def earlier(path: Path | None) -> dict[tuple[str, str], tuple[int, float]]:
    """Replications and share of every row that a page has, by part and name."""
    from results import read

    out, part = dict[tuple[str, str], tuple[int, float]](), ""
    for line in read(path).splitlines() if path is not None else ():
        part = line.removeprefix("## ") if line.startswith("## ") else part
        columns = [column.strip() for column in line.strip("|").split(" | ")]
        if len(columns) == 6 and columns[2].endswith("%"):
            out[part, columns[0]] = int(columns[5].replace(",", "")), float(columns[2].removesuffix("%")) / 100
    return out


def main(argv: list[str] | None = None, show: Callable[[str], None] = print) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("path", nargs="?", type=Path)
    parser.add_argument("--replications", type=int, default=4000, help="of designs with one row")
    parser.add_argument("--only", nargs="*", help="words of a part or a design; the other rows stay")
    chosen = parser.parse_args(argv)
    found, kept = [], {} if chosen.only is None else earlier(chosen.path)
    for i, cell in enumerate(cells()):
        stays = kept.get((cell.part, cell.name))
        if stays is not None and not any(word in f"{cell.part}, {cell.name}" for word in chosen.only):
            found.append((cell, *stays))
            continue
        rng, counts = np.random.default_rng([SEED, i]), [0, 0]
        P = chosen.replications // (10 if cell.floor is not None else 4 if cell.rows > 4 else 1)
        while counts[1] < P:
            n = min(P - counts[1], max(1, 400 // cell.rows))
            counts[0] += outcomes(rng, cell, n).count(cell.outcome)
            counts[1] += n
        found.append((cell, counts[1], counts[0] / counts[1]))
        show(f"{cell.part}, {cell.name}: {cell.outcome} {100 * found[-1][2]:.1f}% of {counts[1]}")
    if chosen.path is not None:
        from results import write

        write(chosen.path, page(found))
    for cell, n, share in found:
        if cell.nominal is not None and share > cell.nominal + 2 * np.sqrt(cell.nominal * (1 - cell.nominal) / n):
            show(f"ABOVE: {cell.part}, {cell.name}: {100 * share:.1f}% of {n}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

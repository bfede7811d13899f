"""Every public function that computes says the same of 1 − x, 100 x, the runs swapped and the questions reordered.

And of scores that are all right, all wrong, all equal or of one cluster it says what can be said: no interval that
does not hold its estimate, none from end to end of the range, no number by rounding. The list of functions is that of
`harness_noise.__all__`: one that is in neither table fails.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest

import harness_noise as hn

N, K, M = 60, 2, 4
"""Questions, answers to each, questions in a cluster."""


@dataclass
class Said:
    """The numbers of a result, by what becomes of them."""

    means: list[tuple[Any, Any, Any]] = field(default_factory=list)
    """(lower limit, value, upper limit) of quantities on the scale of the scores."""
    diffs: list[tuple[Any, Any, Any]] = field(default_factory=list)
    """The same of differences A − B."""
    scales: list[Any] = field(default_factory=list)
    """Standard errors and what else is a distance."""
    squares: list[Any] = field(default_factory=list)
    same: list[Any] = field(default_factory=list)
    """p-values, degrees of freedom, counts."""

    def mirrored(self, width: float) -> Said:
        """What 1 − x gives."""
        means = [tuple(None if x is None else width - x for x in reversed(three)) for three in self.means]
        return Said(means, self.negated().diffs, self.scales, self.squares, self.same)

    def times(self, by: float) -> Said:
        """What 100 x gives."""
        triples = [
            [tuple(None if x is None else by * x for x in three) for three in y] for y in (self.means, self.diffs)
        ]
        singles = [[None if x is None else c * x for x in y] for c, y in ((by, self.scales), (by * by, self.squares))]
        return Said(*triples, *singles, self.same)

    def negated(self) -> Said:
        """What B − A gives."""
        diffs = [tuple(None if x is None else -x for x in reversed(three)) for three in self.diffs]
        return Said(self.means, diffs, self.scales, self.squares, self.same)

    def swapped(self) -> Said:
        """What the other run first gives."""
        return Said(self.means[::-1], self.negated().diffs, self.scales, self.squares, self.same)

    def assert_like(self, other: Said) -> None:
        for name in ("means", "diffs", "scales", "squares", "same"):
            mine, theirs = (np.array(getattr(x, name), dtype=np.float64) for x in (self, other))
            np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9, err_msg=name)


@dataclass
class Case:
    """Two runs of N questions, and what else a function may take."""

    a: np.ndarray
    b: np.ndarray
    clusters: list[str] | None
    width: float = 1.0
    order: np.ndarray = field(default_factory=lambda: np.arange(N))

    @property
    def range(self) -> tuple[float, float]:
        return 0.0, self.width

    @property
    def labels(self) -> np.ndarray:
        """Human labels of a third of A's answers: B's first score, in place of a person."""
        chosen = np.random.default_rng(8).permutation(N)[: N // 2]
        return np.where(np.isin(np.arange(N), chosen), self.b[:, 0], np.nan)

    def frame(self, *names: str) -> pd.DataFrame:
        """The answers as a table, question by question in `order`."""
        runs = {"a": self.a, "b": self.b}
        return pd.DataFrame(
            [
                {"model": m, "question": f"q{i:02d}", "repeat": k, "score": runs[m][i, k], "kind": "xy"[i % 2]}
                | ({} if self.clusters is None else {"cluster": self.clusters[i]})
                for m in names or ("a", "b")
                for i in self.order.tolist()
                for k in range(K)
            ]
        )

    def mirrored(self) -> Case:
        return Case(self.width - self.a, self.width - self.b, self.clusters, self.width, self.order)

    def times(self, by: float) -> Case:
        return Case(by * self.a, by * self.b, self.clusters, by * self.width, self.order)

    def swapped(self) -> Case:
        return Case(self.b, self.a, self.clusters, self.width, self.order)

    def reordered(self) -> Case:
        """The questions in another order: of arrays the rows, of tables the lines, with the names as they were."""
        order = np.random.default_rng(5).permutation(N)
        return Case(self.a, self.b, self.clusters, self.width, order)

    def rows(self, x: np.ndarray) -> np.ndarray:
        return x[self.order]

    @property
    def groups(self) -> list[str] | None:
        return None if self.clusters is None else [self.clusters[i] for i in self.order.tolist()]


def mixed(seed: int = 0, *, clusters: bool = False) -> Case:
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 1, N)
    a, b = ((rng.random((N, K)) < np.clip(p + shift, 0, 1)[:, None]).astype(float) for shift in (0.1, -0.05))
    return Case(a, b, [f"c{i // M}" for i in range(N)] if clusters else None)


def graded() -> Case:
    rng = np.random.default_rng(3)
    return Case(np.round(rng.beta(4, 2, (N, K)), 2), np.round(rng.beta(3, 2, (N, K)), 2), None)


CASES = {"0/1": mixed(), "0/1 in clusters": mixed(1, clusters=True), "graded": graded()}


def of_estimate(row: Any) -> Said:
    return Said(
        means=[(row.ci_low, row.mean, row.ci_high)],
        scales=[row.se, row.se_total, row.se_data, row.se_prediction, row.se_data_upper],
        squares=[row.var_data],
        same=[row.df, row.n_questions, row.n_clusters],
    )


def of_difference(row: Any) -> Said:
    return Said(
        means=[(None, row.mean_a, None), (None, row.mean_b, None)],
        diffs=[(row.ci_low, row.diff, row.ci_high)],
        scales=[row.se, row.se_total, row.se_data, row.mde],
        squares=[row.var_data],
        same=[row.p_value, row.df, row.n_questions],
    )


def of_gate(row: Any, *, floor: bool = False) -> Said:
    three = (None, row.estimate, None)
    return Said(means=[three] if floor else [], diffs=[] if floor else [three], scales=[row.se], same=[row.df])


def _sequential(case: Case) -> Said:
    row = hn.compare_in_sequence(case.rows(case.a), case.rows(case.b), case.groups, looks=3, range=case.range)
    return Said(diffs=[(row.ci_low, row.estimate, row.ci_high)], same=[row.looks, row.n_asked])


def _from_part(case: Case) -> Said:
    rng = np.random.default_rng(2)
    asked = rng.random(N) < 0.6
    references = np.column_stack([case.b.mean(axis=1), case.a.mean(axis=1)[::-1]])
    row = hn.estimate_from_part(
        case.rows(case.a)[case.rows(asked)],
        np.flatnonzero(case.rows(asked)),
        case.rows(references),
        case.groups,
        range=case.range,
    )
    return Said(means=[(row.ci_low, row.estimate, row.ci_high)], scales=[row.se, row.se_population], same=[row.n_asked])


def _factor_noise(case: Case) -> Said:
    x = case.rows(case.a)
    questions = np.repeat(case.order, K)
    result = hn.factor_noise(x.ravel(), questions.tolist(), {"seed": np.tile(np.arange(K), N).tolist()})
    return Said(
        squares=[v for row in result.factors for v in (row.var, row.var_low, row.var_high)],
        same=[row.df for row in result.factors],
    )


def _factors(case: Case) -> Said:
    result = hn.factors(case.frame("a"), {"seed": "repeat"}, columns={"repeat": "repeat"})
    return Said(squares=[v for row in result.factors for v in (row.var, row.var_low, row.var_high)])


def _regress(case: Case) -> Said:
    result = hn.regress(case.frame("a"), on=["kind"])
    rows = [row for row in result.coefficients if row.value is not None]
    return Said(
        diffs=[(row.ci_low, row.coefficient, row.ci_high) for row in rows],
        scales=[row.se for row in rows],
        same=[row.p_value for row in rows],
    )


def _combine(case: Case) -> Said:
    d = (case.a - case.b).mean(axis=1)[:9]
    order = np.argsort(case.order[case.order < 9])
    ses = case.width * np.linspace(0.02, 0.05, 9)
    rows = hn.combine(d[order], ses[order], np.full(9, 30.0)[order])
    diffs = [(None, row.diff, None) for row in rows]
    return Said(diffs=diffs, same=[row.p_value for row in rows])


def _plan(case: Case) -> Said:
    row = hn.estimate(case.rows(case.a), case.groups, range=case.range)
    result = hn.plan(runs=row, effect=0.1 * case.width)
    return Said(squares=[result.omega2, result.omega2_upper], same=[result.n_questions])


COMPUTE: dict[str, Callable[[Case], Said]] = {
    "estimate": lambda case: of_estimate(hn.estimate(case.rows(case.a), case.groups, range=case.range)),
    "estimate_difference": lambda case: of_difference(
        hn.estimate_difference(case.rows(case.a), case.rows(case.b), case.groups, range=case.range)
    ),
    "estimate_with_labels": lambda case: of_estimate(
        hn.estimate_with_labels(case.rows(case.a), case.rows(case.labels), None, at_random=True, range=case.range)
    ),
    "estimate_from_part": _from_part,
    "compare_in_sequence": _sequential,
    "combine": _combine,
    "factor_noise": _factor_noise,
    "factors": _factors,
    "regress": _regress,
    "plan": _plan,
    "analyze": lambda case: of_estimate(hn.analyze(case.frame("a"), range=case.range).estimates[0]),
    "compare": lambda case: of_difference(hn.compare(case.frame(), range=case.range).comparisons[0]),
    "arena": lambda case: of_difference(next(iter(hn.arena(case.frame(), range=case.range).pairs))),
    "gate": lambda case: of_gate(hn.gate(case.frame("a"), case.frame("b"), range=case.range).rows[0]),
    "pass_at_k": lambda case: Said(same=sorted(hn.pass_at_k(case.rows(case.a), 2).tolist())),
}
"""Public function → what it says of a case."""
TELL = {
    "adapters": "lists formats",
    "as_scores": "wraps an array",
    "boundaries": "critical values of a design, of no scores",
    "export": "writes what `analyze` computes into a harness's files",
    "label_sample": "draws answers for people",
    "profiles": "lists what is there",
    "read": "reads",
    "render": "prints",
    "write_figures": "writes what `arena` computes",
    "write_html": "writes a result",
    "write_profile": "writes what `arena` computes",
    "write_tables": "writes what `arena` computes",
}
"""Public function → why it computes nothing of its own."""
NOT_MIRRORED = {"pass_at_k": "one right answer of k is not one wrong one", "plan": "see `omega2`"}
ONLY_01 = {"pass_at_k"}
SWAPPED = {"estimate_difference", "compare", "arena", "combine", "gate"}
DRAWN_BY_PLACE = {
    "compare_in_sequence": "arrays have no names: the order of asking is drawn for their places",
    "estimate_from_part": "arrays have no names: folds are drawn for their places",
    "estimate_with_labels": "arrays have no names: folds are drawn for their places",
}


def cases(names: Sequence[str], *, but: Sequence[str] = ()) -> Any:
    each = [(name, kind) for name in names if name not in but for kind in CASES]
    return pytest.mark.parametrize(("name", "kind"), [x for x in each if x[0] not in ONLY_01 or x[1] != "graded"])


def test_every_public_function_is_in_one_of_the_tables() -> None:
    public = {name for name in hn.__all__ if inspect.isfunction(getattr(hn, name))}
    assert public == COMPUTE.keys() | TELL.keys()
    assert not COMPUTE.keys() & TELL.keys()


@cases(sorted(COMPUTE), but=[*NOT_MIRRORED, "gate"])
def test_one_minus_the_scores_is_the_mirror_image(name: str, kind: str) -> None:
    case = CASES[kind]
    COMPUTE[name](case.mirrored()).assert_like(COMPUTE[name](case).mirrored(case.width))


@cases(sorted(COMPUTE), but=["pass_at_k"])
def test_a_hundred_times_the_scores_is_a_hundred_times_the_result(name: str, kind: str) -> None:
    case = CASES[kind]
    COMPUTE[name](case.times(100.0)).assert_like(COMPUTE[name](case).times(100.0))


@cases(sorted(SWAPPED))
def test_the_runs_swapped_change_the_sign(name: str, kind: str) -> None:
    case = CASES[kind]
    COMPUTE[name](case.swapped()).assert_like(COMPUTE[name](case).swapped())


@cases(sorted(COMPUTE), but=[*DRAWN_BY_PLACE])
def test_the_order_of_the_questions_changes_nothing(name: str, kind: str) -> None:
    case = CASES[kind]
    COMPUTE[name](case.reordered()).assert_like(COMPUTE[name](case))


RESAMPLED: dict[str, dict[str, Any]] = {
    "permutation": {"test": "permutation"},
    "bootstrap": {"test": "bootstrap", "interval": "bootstrap"},
    "wild": {"test": "wild"},
    "sign": {"test": "sign"},
}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("name", RESAMPLED)
def test_resampled_results_do_not_depend_on_the_order_of_rows(name: str, kind: str) -> None:
    case, choices = CASES[kind], RESAMPLED[name]

    def said(case: Case) -> Said:
        return of_difference(hn.compare(case.frame(), range=case.range, **choices).comparisons[0])

    said(case.reordered()).assert_like(said(case))
    said(case.times(100.0)).assert_like(said(case).times(100.0))
    if name != "bootstrap":  # the quantiles of what is drawn are not symmetric
        said(case.swapped()).assert_like(said(case).swapped())


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("interval", ["t", "wilson", "korn-graubard", "bootstrap", "bootstrap-t"])
def test_every_interval_of_one_mean_is_invariant(interval: str, kind: str) -> None:
    case = CASES[kind]

    def said(case: Case) -> Said:
        return of_estimate(hn.analyze(case.frame("a"), range=case.range, interval=interval).estimates[0])

    said(case.reordered()).assert_like(said(case))
    said(case.times(100.0)).assert_like(said(case).times(100.0))
    said(case.mirrored()).assert_like(said(case).mirrored(1.0))


@pytest.mark.parametrize("kind", CASES)
def test_labels_and_references_do_not_depend_on_the_order_of_rows(kind: str) -> None:
    case = CASES[kind]
    known = ~np.isnan(case.labels)
    labels = pd.DataFrame({"question": [f"q{i:02d}" for i in np.flatnonzero(known)], "label": case.labels[known]})
    rows = [
        of_estimate(hn.analyze(x.frame("a"), labels=labels, labels_at_random=True, range=case.range).estimates[0])
        for x in (case, case.reordered())
    ]
    rows[1].assert_like(rows[0])


FLAT = {
    "all right": lambda width: np.full((N, K), width),
    "all wrong": lambda width: np.zeros((N, K)),
    "all equal": lambda width: np.full((N, K), 0.3 * width),
}


@pytest.mark.parametrize("width", [1.0, 100.0])
@pytest.mark.parametrize("flat", FLAT)
@pytest.mark.parametrize("name", sorted(COMPUTE))
def test_scores_without_variance_have_no_limits_by_rounding(name: str, flat: str, width: float) -> None:
    if name == "pass_at_k" and (flat == "all equal" or width != 1):
        return
    x = FLAT[flat](width)
    for clusters in (None, [f"c{i // M}" for i in range(N)]):
        case = Case(x, x.copy(), clusters, width)
        try:
            said = COMPUTE[name](case)
        except hn.InputError:  # it is refused, with a sentence
            continue
        value = x[0, 0]
        for low, mean, high in said.means:
            assert mean is None or mean == pytest.approx(value, abs=1e-9 * width)
            if flat != "all equal":
                assert mean in (None, value)  # an end is that end
            assert (low is None) == (high is None)
            if low is not None:
                assert low <= mean <= high
                assert high - low < 0.5 * width
        for low, diff, high in said.diffs:
            assert diff in (None, 0.0)
            if low is not None:
                assert low <= 0 <= high
                assert high - low < 0.5 * width
        for number in (*said.scales, *said.squares, *said.same):
            assert number is None or math.isfinite(number)


@pytest.mark.parametrize("name", sorted(COMPUTE.keys() - {"combine", "factor_noise", "pass_at_k"}))
def test_one_cluster_has_no_error_bar(name: str) -> None:
    case = Case(CASES["0/1"].a, CASES["0/1"].b, ["only"] * N)
    if name == "estimate_with_labels":
        with pytest.raises(hn.InputError, match="fewer than two labelled"):
            hn.estimate_with_labels(case.a, case.labels, case.clusters, at_random=True)
        return
    try:
        said = COMPUTE[name](case)
    except hn.InputError:
        return
    assert all(low is None and high is None for low, _, high in (*said.means, *said.diffs))
    assert all(x is None for x in said.scales[:1])

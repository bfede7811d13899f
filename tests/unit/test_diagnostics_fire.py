"""One table of simulated answers for each diagnostic: some with which it must come, some with which it must not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import extras
from harness_noise.data.scores import CorpusScores
from harness_noise.results.diagnostics import DIAGNOSTICS
from support.lm_eval_written import choices, lm_eval, seeded

RNG = np.random.default_rng(20)
P = RNG.random((60, 1))
NORMAL = RNG.normal(size=(60, 3)) + RNG.normal(size=(60, 1))
BINARY = (RNG.random((60, 3)) < P).astype(float)
BINARY[:, 0] = np.arange(60) % 2  # both scores are there, and no repeat is better than another
GAPS = np.where(np.arange(180).reshape(60, 3) == 7, np.nan, NORMAL)
SOME_SINGLE = np.where((np.arange(60)[:, None] < 20) & (np.arange(3) > 0), np.nan, NORMAL)
OTHER_SINGLE = SOME_SINGLE + 3 * (np.arange(60)[:, None] < 20)
EVEN = np.tile(RNG.permutation([0.0, 1.0] * 2), (60, 1)) + RNG.normal(size=(60, 1)) / 1000
NOISY = np.stack([RNG.permutation(row) for row in EVEN])
TAIL, SHORT = np.exp(1.5 * RNG.normal(size=(60, 1))), RNG.random((60, 1))
WRONG = (np.arange(60)[:, None] >= np.array([3, 30])).astype(float)
PAIRS = np.arange(60) // 2
RETRIED = np.where(np.cumsum(np.cumsum(BINARY, axis=1), axis=1) > 1, np.nan, BINARY)  # up to the first success

MEANS = {
    # code: what it must come with, and what it must not come with: scores and their clusters
    "single_repeat": ((NORMAL[:, :1], None), (NORMAL, None)),
    "partly_single_repeat": ((SOME_SINGLE, None), (GAPS, None)),
    "single_repeats_differ": ((OTHER_SINGLE, None), (SOME_SINGLE, None)),
    "missing_repeats": ((GAPS, None), (NORMAL, None)),
    "identical_repeats": ((np.repeat(NORMAL[:, :1], 3, axis=1), None), (NORMAL, None)),
    "shared_repeat_noise": ((NORMAL + np.array([0.0, 2.0, 4.0]), None), (NORMAL, None)),
    "too_few_questions": ((NORMAL[:1], None), (NORMAL[:2], None)),
    "too_few_clusters": ((NORMAL, np.zeros(60)), (NORMAL, np.arange(60) // 30)),
    "few_clusters": ((NORMAL, np.arange(60) // 12), (NORMAL, PAIRS)),
    "singleton_clusters": ((NORMAL, np.arange(60)), (NORMAL, PAIRS)),
    "negative_data_variance": ((NOISY, None), (NORMAL, None)),
    "zero_variance": ((np.full((60, 2), 0.5), None), (NORMAL, None)),
    "few_failures": ((WRONG[:, :1], None), (WRONG[:, 1:], None)),
    "skewed": ((TAIL, None), (SHORT, None)),
    "stopped_on_success": ((RETRIED, None), (BINARY, None)),
    "stopped_on_failure": ((1 - RETRIED, None), (RETRIED, None)),
}
FLIPS = np.zeros((60, 2))
FLIPS[:3, 0] = 1
DIFFERENCES: dict[str, tuple[Any, Any]] = {
    # code: two runs and the keywords with which it must come, and with which it must not
    "identical_scores": ((NORMAL, NORMAL, {}), (NORMAL, NORMAL[::-1], {})),
    "few_flips": ((FLIPS[:, :1], FLIPS[:, 1:], {}), (BINARY[:, :1], BINARY[::-1, :1], {})),
    "unpaired": ((NORMAL, NORMAL[::-1], {"unpaired": True}), (NORMAL, NORMAL[::-1], {})),
    "single_repeat": ((NORMAL[:, :1], NORMAL[::-1, :1], {}), (NORMAL, NORMAL[::-1], {})),
    "few_clusters": (
        (NORMAL, NORMAL[::-1], {"clusters": np.arange(60) // 12}),
        (NORMAL, NORMAL[::-1], {"clusters": PAIRS}),
    ),
    "too_few_clusters": (
        (NORMAL, NORMAL[::-1], {"clusters": np.zeros(60)}),
        (NORMAL, NORMAL[::-1], {"clusters": PAIRS}),
    ),
    "zero_variance": ((NORMAL + 1, NORMAL, {}), (NORMAL, NORMAL[::-1], {})),
    "negative_data_variance": ((NOISY, NOISY[::-1], {}), (NORMAL, NORMAL[::-1], {})),
    "missing_repeats": ((GAPS, NORMAL[::-1], {}), (NORMAL, NORMAL[::-1], {})),
}


@pytest.mark.parametrize("code", MEANS)
def test_a_mean_has_the_code_exactly_where_it_must(code: str) -> None:
    must, must_not = ((hn.estimate(scores, clusters)).diagnostics for scores, clusters in MEANS[code])
    assert (code in must, code in must_not) == (True, False)


@pytest.mark.parametrize("code", DIFFERENCES)
def test_a_difference_has_the_code_exactly_where_it_must(code: str) -> None:
    must, must_not = (hn.estimate_difference(a, b, **more).diagnostics for a, b, more in DIFFERENCES[code])
    assert (code in must, code in must_not) == (True, False)


def table(model: str, rows: dict[str, list[float | None]]) -> list[dict[str, object]]:
    return [
        {"model": model, "task": task, "question": str(i), "score": score}
        for task, scores in rows.items()
        for i, score in enumerate(scores)
    ]


A, B = (np.arange(80) % 10 < 6).astype(float).tolist(), (np.arange(80) % 7 < 3).astype(float).tolist()
TABLES: dict[str, tuple[Any, Any]] = {
    "unpaired_questions": (({"t": A}, {"t": B[:-1]}, {}), ({"t": A}, {"t": B}, {})),
    "missing_matters": (({"t": [*A[:40], *[None] * 40]}, {"t": B}, {}), ({"t": A}, {"t": B}, {})),
    "unscored_task": (({"t": A, "u": [None] * 80}, {"t": B, "u": B}, {}), ({"t": A, "u": A}, {"t": B, "u": B}, {})),
    "chance_corrected": (({"t": A}, {"t": B}, {"chance": 0.25}), ({"t": A}, {"t": B}, {})),
}


@pytest.mark.parametrize("code", TABLES)
def test_a_comparison_of_tables_has_the_code_exactly_where_it_must(code: str) -> None:
    import pandas as pd

    def codes(a: dict[str, list[float | None]], b: dict[str, list[float | None]], more: dict[str, object]) -> set[str]:
        runs = [pd.DataFrame(table(model, rows)) for model, rows in (("a", a), ("b", b))]
        return set().union(*(row.diagnostics for row in hn.compare(*runs, **more).comparisons))  # type: ignore[arg-type]

    must, must_not = (codes(*case) for case in TABLES[code])
    assert (code in must, code in must_not) == (True, False)


def frame(rows: Iterable[Mapping[str, object]]) -> Any:
    """A score table. A column that a row lacks is empty."""
    import pandas as pd

    return pd.DataFrame(list(rows))


def scored(values: Any, **columns: Any) -> Any:
    """A score table of one answer to each question, with columns that hold one value for each."""
    return frame(
        {"question": str(i), "score": value} | {name: held[i] for name, held in columns.items()}
        for i, value in enumerate(np.asarray(values, dtype=float).tolist())
    )


def part(values: Any, keys: Iterable[object] | None = None, *, prompts: Any = None, **fields: Any) -> hn.Run:
    """A run of one task, as an adapter hands it over."""
    x = np.asarray(values, dtype=float)
    x = x[:, None] if x.ndim == 1 else x
    questions = hn.Questions(tuple(map(str, range(len(x)) if keys is None else keys)), "id", prompts=prompts)
    name = fields.pop("name", "m")
    return hn.Run(name, name, "array", scores=(hn.Scores("t", "acc", "none", questions, x, **fields),))


def over_rows(n: int, metric: Any) -> Any:
    """A metric over all rows at once: n questions of four rows, each row right or wrong."""
    items = [(f"g{i // 4}", float(right)) for i, right in enumerate(np.random.default_rng(1).random(4 * n) < 0.85)]
    whole = CorpusScores(
        task="t", metric="em", scorer="none", questions=hn.Questions(tuple(map(str, range(len(items))))),
        records=tuple((item,) for item in items), aggregate=metric, bounds=(0.0, 1.0),
    )  # fmt: skip
    return hn.analyze(hn.Run("m", "m", "array", corpus=(whole,)))


def all_right(items: list[tuple[str, float]]) -> float:
    """The share of questions of which all rows are right."""
    wrong = {group for group, right in items if not right}
    return 1 - len(wrong) / len({group for group, _ in items})


def share_right(items: list[tuple[str, float]]) -> float:
    return float(np.mean([right for _, right in items]))


def answers(levels: int, spread: float, **columns: Any) -> Any:
    """Noise by factor, of four answers to each of 20 questions at every level of a prompt."""
    rng = np.random.default_rng(3)
    prompts, questions = rng.normal(0, spread, levels), rng.normal(0, 1, 20)
    cells = [(i, level, k) for i in range(20) for level in range(levels) for k in range(4)]
    rows = [
        {
            "question": f"q{i}",
            "prompt": f"p{level}",
            "score": questions[i] + prompts[level] + rng.normal(),
            "seed": f"{k}",
        }
        | {name: held[i] for name, held in columns.items()}
        for i, level, k in cells
    ]
    return hn.factors(frame(rows), {name: name for name in ("prompt", *columns)})


def within(outer: float) -> Any:
    """Questions of 5 passages in each of 20 articles, clustered by passage."""
    rng = np.random.default_rng(0)
    articles = rng.normal(0, outer, 20)
    cells = [(a, p, q) for a in range(20) for p in range(5) for q in range(4)]
    rows = [
        {"question": f"{a}.{p}.{q}", "score": articles[a] + rng.normal(), "passage": f"{a}.{p}", "article": f"A{a}"}
        for a, p, q in cells
    ]
    return hn.analyze(frame(rows), cluster="passage")


def prompted(other: str) -> Any:
    runs = (part(BINARY, prompts=("x",) * 59 + (last,), name=last) for last in ("x", other))
    return hn.compare(*runs)


def spent(**columns: Any) -> Any:
    """A table with the cost of each answer."""
    return scored(np.arange(40) % 2, **({"cost": [0.1] * 20 + [0.2] * 20} | columns))


def tasks(
    differences: Mapping[str, float], *, n: int = 60, tail: bool = False, shared: bool = False, noise: float = 1.0
) -> Any:
    """Two models on tasks with these differences, which share no question unless they should."""
    rng, rows = np.random.default_rng(4), []
    for name, difference in differences.items():
        for i in range(n):
            question = f"{'Any task' if shared else name} asks for number {i} in words"
            rare = tail * (rng.random() < 0.15) * rng.exponential()
            for model, more in (("a", difference + rare), ("b", 0.0)):
                rows.append({"task": name, "question_id": i, "prompt": question, "model": model})
                rows[-1]["score"] = rng.normal(0, noise) + more
    return hn.compare(frame(rows), range=(-20, 20))


EVEN_TASKS = dict.fromkeys("uvwx", 0.0)
MANY = {f"t{i}": 0.55 * (i == 0) for i in range(12)}


def drawn(*, chances: bool = False, stopped: bool = False, of: int = 100) -> Any:
    """A random subset of 100 questions, with what its run recorded of the draw."""
    from harness_noise.analysis.drawing import with_record
    from harness_noise.extra.drawing import draw, drawing_chances

    expected = np.where(np.arange(100) < 30, 0.5, 0.01)
    how = drawing_chances(40, expected) if chances else None
    rows = draw(100, 40, seed=1, chances=how)
    record: dict[str, Any] = {
        "task": "t",
        "n_asked": len(rows),
        "n_total": 100,
        "order_seed": 1,
        "stopped_early": stopped,
    }
    if how is not None:
        record["chances"] = {str(i): float(how[i]) for i in rows}
    return hn.analyze(with_record(part(rows % 2, rows, bounds=(0.0, 1.0)), [], [record], sizes={"t": of}))


def halves(rows: Any) -> Any:
    """A − B of two parts of a benchmark: A of the first 150 of 400 questions in random order, B of these."""
    rng = np.random.default_rng(10)
    hard = rng.standard_normal(400)
    scores = (np.linspace(-0.6, 0.8, 5) - hard[:, None] + 0.6 * rng.standard_normal((400, 5)) > 0).astype(float)
    order = rng.permutation(400)
    a, b = (part(scores[i, m], i, name=f"m{m}", bounds=(0.0, 1.0)) for m, i in ((4, order[:150]), (3, order[rows])))
    return hn.compare(a, b, complete=[part(scores[:, m], name=f"m{m}", bounds=(0.0, 1.0)) for m in (0, 1, 2)])


def profiled(folder: Path, best: float | None) -> Any:
    """Two scores with the noise of a profile, or two runs."""
    from support.boards import board

    runs = board(M=6, K=4)
    if best is None:
        return hn.compare(*runs[:2])
    hn.write_profile(hn.arena(runs), folder / "p.json")
    return hn.compare(best, 0.4, profile=folder / "p.json")


def labelled(n: int, failures: int | None = None) -> Any:
    """A judge of 400 answers, of which people labelled n, or as many with so many failures."""
    rng = np.random.default_rng(7)
    truth = (rng.random(400) < (0.6 if failures is None else 0.9)).astype(float)
    judge = np.where(rng.random(400) < 0.9, truth, 1 - truth)
    right, wrong = np.flatnonzero(truth == 1), np.flatnonzero(truth == 0)
    some = rng.permutation(400)[:n] if failures is None else np.r_[wrong[:failures], right[: n - failures]]
    labels = np.full(400, np.nan)
    labels[some] = truth[some]
    return hn.estimate_with_labels(judge, labels, at_random=True)


def gated(baselines: int) -> Any:
    rng = np.random.default_rng(1)
    truth = rng.normal(size=200)
    new, *old = (part(truth + 0.3 * rng.normal(size=200), name=f"r{i}") for i in range(baselines + 1))
    return hn.gate(new, old)


def log(folder: Path, cluster: str) -> Any:
    """A log of Inspect whose metadata name its clusters."""
    from security.hostile.limits import log as written

    return hn.analyze(written(folder / "a.json", noise=True, noise_cluster=cluster))


def doubled(n: int) -> Any:
    """Forty questions, of which the first n are the same."""
    texts = [f"What is number {max(i, n)} in words please?" for i in range(40)]
    return hn.analyze(
        scored(np.arange(40) % 3 % 2, prompt=texts, gold=[text[5:18] for text in texts]).rename(
            columns={"question": "question_id"}
        )
    )


def rescored(differ: int) -> Any:
    """Two runs that gave the same 60 answers in words. The second scores some of them differently."""
    words = [f"answer {i} in words" for i in range(60)]
    one, other = np.arange(60) % 2, np.where(np.arange(60) < differ, 1 - np.arange(60) % 2, np.arange(60) % 2)
    return hn.compare(*(scored(x, response=words, model=[name] * 60) for name, x in (("a", one), ("b", other))))


def regressed(values: Any, x: Any, clusters: int = 60) -> Any:
    groups = [f"c{i * clusters // 60}" for i in range(60)]
    return hn.regress(scored(values, kind=x, group=groups), on=["kind"], cluster="group")


def verdicts(n: int, *, both: bool = True, at: str = "q", best: str = "") -> list[dict[str, object]]:
    """Verdicts on n questions between three models, in both orders or one. The best one always wins."""
    rng = np.random.default_rng(5)
    rows: list[dict[str, object]] = []
    for i in range(n):
        for a, b in (("m0", "m1"), ("m0", "m2"), ("m1", "m2")):
            for first, second in ((a, b), (b, a))[: 1 + both]:
                winner = best if best in (a, b) else str(rng.choice([a, b]))
                rows.append({"question": f"{at}{i}", "model_a": first, "model_b": second, "winner": winner})
    return rows


def judged(n: int, **how: Any) -> Any:
    return hn.pairs(verdicts(n, **how))


def totals(n: int) -> Any:
    return frame({"model": "m", "run": f"r{i}", "score": 0.5 + 0.01 * (i % 3)} for i in range(n))


ANSWERS = np.arange(60).reshape(30, 2) % 3 % 2
FIRST_OTHER = BINARY.copy()
FIRST_OTHER[:, 0] = 1
RESULTS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    # code: a result in which it must come, and one in which it must not
    "uses_all_repeats": (
        lambda _: hn.analyze(part(BINARY, bounds=(0.0, 1.0)), measures=["pass@2"]),
        lambda _: hn.analyze(part(BINARY, bounds=(0.0, 1.0))),
    ),
    "single_level": (lambda _: answers(1, 0.5), lambda _: answers(4, 0.5)),
    "aliased_factor": (lambda _: answers(4, 0.5, author=range(20)), lambda _: answers(4, 0.5)),
    "negative_component": (lambda _: answers(4, 0.0), lambda _: answers(4, 2.0)),
    "cluster_template": (lambda at: log(at, "{{ passage }}"), lambda at: log(at, "passage")),
    "few_df": (
        lambda _: regressed(NORMAL[:, 0], [i // 12 + (i // 12 == 1) for i in range(60)], 5),
        lambda _: regressed(NORMAL[:, 0], range(60)),
    ),
    "rare_category": (
        lambda _: regressed(np.maximum(BINARY[:, 0], np.arange(60) < 3), ["few"] * 3 + ["many"] * 57),
        lambda _: regressed(BINARY[:, 0], ["one"] * 30 + ["other"] * 30),
    ),
    "few_resampled": (
        lambda _: over_rows(5, lambda items: max(right for _, right in items)),
        lambda _: over_rows(40, share_right),
    ),
    "grouped_metric": (lambda _: over_rows(40, all_right), lambda _: over_rows(40, share_right)),
    "inner_clusters": (lambda _: within(1.0), lambda _: within(0.0)),
    "different_prompts": (lambda _: prompted("y"), lambda _: prompted("x")),
    "mean_mismatch": (
        lambda at: hn.analyze(lm_eval(at, "a", said=0.9)),
        lambda at: hn.analyze(lm_eval(at, "a")),
    ),
    "skipped_metric": (
        lambda at: hn.analyze(lm_eval(at, "a", samples=False)),
        lambda at: hn.analyze(lm_eval(at, "a")),
    ),
    "not_asked_for": (
        lambda at: hn.analyze(choices(at, "a", scores=True)),
        lambda at: hn.analyze(choices(at, "a", scores=False)),
    ),
    "other_version": (
        lambda at: hn.compare(lm_eval(at, "a"), lm_eval(at, "b", version=2)),
        lambda at: hn.compare(lm_eval(at, "a"), lm_eval(at, "b")),
    ),
    "scored_differently": (lambda _: rescored(20), lambda _: rescored(0)),
    "copied_repeats": (lambda _: seeded(copies=True), lambda _: seeded(copies=False)),
    "ratio_undefined": (
        lambda _: hn.analyze(scored(np.arange(40) == 0, cost=[0.1] * 40), measures=["cost/score"]),
        lambda _: hn.analyze(spent(), measures=["cost/score"]),
    ),
    "cached_usage": (
        lambda _: hn.analyze(spent(cached=["true"] + [""] * 39), measures=["cost"]),
        lambda _: hn.analyze(spent(cached=[""] * 40), measures=["cost"]),
    ),
    "not_after_adjustment": (lambda _: tasks(MANY), lambda _: tasks({"t": 0.55})),
    "identical_scores_only": (
        lambda _: hn.analyze(part(np.repeat(BINARY[:, :1], 3, axis=1), answers_differ=True)),
        lambda _: hn.analyze(part(np.repeat(BINARY[:, :1], 3, axis=1))),
    ),
    "first_answer_differs": (
        lambda _: hn.analyze(part(FIRST_OTHER, native_is_first=True, native=1.0)),
        lambda _: hn.analyze(part(BINARY, native_is_first=True, native=0.5)),
    ),
    "doubled_questions": (lambda _: doubled(5), lambda _: doubled(0)),
    "stopped_early": (lambda _: drawn(stopped=True), lambda _: drawn()),
    "not_a_random_part": (lambda _: drawn(of=200), lambda _: drawn()),
    "unequal_chances": (lambda _: drawn(chances=True), lambda _: drawn()),
    "reference_noise": (lambda at: profiled(at, 0.5), lambda at: profiled(at, None)),
    "beyond_reference": (lambda at: profiled(at, 0.99), lambda at: profiled(at, 0.5)),
    "skewed_rows": (
        lambda _: tasks(dict.fromkeys("abcdefghijkl", 0.0), n=40, tail=True, noise=0.01),
        lambda _: tasks(EVEN_TASKS),
    ),
    "tasks_share_questions": (lambda _: tasks(EVEN_TASKS, shared=True), lambda _: tasks(EVEN_TASKS)),
    "tasks_differ": (lambda _: tasks({"u": 2.0, "v": -2.0}), lambda _: tasks(EVEN_TASKS)),
    "chance_varies": (
        lambda _: hn.analyze(scored(np.arange(60) % 2, choices=[2, 4, 10] * 20), chance="auto"),
        lambda _: hn.analyze(scored(np.arange(60) % 2, choices=[4] * 60), chance="auto"),
    ),
    "judge_corrected": (lambda _: labelled(100), lambda _: hn.estimate(BINARY)),
    "few_labels": (lambda _: labelled(15), lambda _: labelled(100)),
    "few_labelled_failures": (lambda _: labelled(60, 4), lambda _: labelled(60, 5)),
    "not_these_questions": (
        lambda _: hn.compare(part(ANSWERS, bounds=(0.0, 1.0)), 0.474, answers_b=1),
        lambda _: hn.compare(part(ANSWERS, bounds=(0.0, 1.0)), 0.467, answers_b=1),
    ),
    "few_runs": (lambda _: gated(3), lambda _: gated(6)),
    "overlap_unknown": (lambda _: halves(slice(140, 290)), lambda _: halves(slice(75, 225))),
    "one_order": (lambda _: judged(10, both=False), lambda _: judged(10)),
    "one_order_left_out": (
        lambda _: hn.pairs([*verdicts(10), *verdicts(5, both=False, at="other")]),
        lambda _: judged(10),
    ),
    "separated": (lambda _: judged(20, best="m0"), lambda _: judged(20)),
    "too_few_to_rank": (lambda _: judged(4), lambda _: judged(20)),
    "single_run": (lambda _: hn.totals(totals(1)), lambda _: hn.totals(totals(4))),
    "equal_totals": (
        lambda _: hn.totals(frame({"model": "m", "score": 0.5} for _ in range(3))),
        lambda _: hn.totals(totals(4)),
    ),
}


def codes_of(found: Any) -> set[str]:
    """Return every code that stands anywhere in the JSON of a result."""
    held = found.to_dict() if hasattr(found, "to_dict") else found
    if isinstance(held, Mapping):
        inner = [codes_of(value) for key, value in held.items() if key != "diagnostics"]
        return set(held.get("diagnostics") or ()).union(*inner)
    return set().union(*map(codes_of, held)) if isinstance(held, (list, tuple)) else set()


@pytest.mark.parametrize("code", RESULTS)
def test_a_result_has_the_code_exactly_where_it_must(code: str, tmp_path: Path) -> None:
    found = []
    for name, case in zip(("must", "must not"), RESULTS[code], strict=True):
        (tmp_path / name).mkdir()
        found.append(code in codes_of(case(tmp_path / name)))
    assert found == [True, False]


def test_every_diagnostic_has_a_case_in_which_it_comes_and_one_in_which_it_does_not() -> None:
    extras.result_modules()  # they add their own
    assert {*MEANS, *DIFFERENCES, *TABLES, *RESULTS} == {*DIAGNOSTICS}

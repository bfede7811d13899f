"""The rows of the measures that were asked for, made of what readers found with each answer (`Scores.usage`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import inf
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..data.measures import HIGHER, OF_REPEATS, PRICED, SCORE, UNBOUNDED, unit_of
from ..data.native_values import MISMATCH
from ..data.scores import ReadOptions, Run, Scores, Usage
from ..errors import InputError, NotThereError, counted
from .joining import is_meant

PER = 1e6
"""Tokens that a price is of."""
CACHED_USAGE = "cached_usage"
_KINDS = tuple(name.removesuffix("_tokens") for name in PRICED)
_WHY = {
    "cached": "came from a cache",
    "no_price": "have tokens and no price: give `prices`, as input=3,output=15",
    "error": "ended in an error",
}


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens of the models that a glob matches. Without one, of all others."""

    model: str
    input: float
    output: float
    cache_read: float
    cache_write: float

    @classmethod
    def parse(cls, text: str) -> Price:
        """Parse $ per million tokens: ``[MODEL:]input=3,output=15[,cache_read=1][,cache_write=4]``. Refuse other text.

        Cached input costs what other input does.

        Raises:
            InputError: it says something else.
        """
        first, equals, rest = text.partition("=")
        model, _, name = first.rpartition(":")
        try:
            pairs = (part.split("=") for part in f"{name}{equals}{rest}".split(","))
            prices = {key.strip(): float(value) for key, value in pairs}
            if not {"input", "output"} <= prices.keys() <= set(_KINDS):
                raise ValueError
            if not all(0 <= value < inf for value in prices.values()):
                raise ValueError
        except ValueError:
            raise InputError(
                f"`prices` {text!r}: write dollars per million tokens as input=3,output=15 (also cache_read=, "
                "cache_write=), of one model as MODEL:input=3,output=15"
            ) from None
        return cls(model.strip(), **{"cache_read": prices["input"], "cache_write": prices["input"], **prices})

    def cost(self, tokens: Mapping[str, Usage]) -> Usage:
        """Return the cost of every answer in $ as a `Usage`, from its tokens. Refuse more cached than input tokens.

        Raises:
            InputError: a cache held more of the input than there was, so that the input does not count it.
        """
        entire, output = tokens["input_tokens"], tokens["output_tokens"]
        cached = {name: np.nan_to_num(tokens[f"{name}_tokens"].values) for name in ("cache_read", "cache_write")}
        fresh = entire.values - sum(cached.values())
        if (fresh < 0).any():
            raise InputError(
                "cache_read_tokens and cache_write_tokens are more than input_tokens, which have to count them: add "
                "them to input_tokens, or give the cost itself"
            )
        spent = fresh * self.input + output.values * self.output
        spent += cached["cache_read"] * self.cache_read + cached["cache_write"] * self.cache_write
        lost = max(entire.missing, output.missing, key=lambda causes: sum(causes.values()))
        return Usage(spent / PER, lost, (*entire.codes, *output.codes))


def price_of(model: str, prices: Sequence[str]) -> Price | None:
    """Return the last price given for this model (globs), else the last without a model, else None."""
    each = [Price.parse(text) for text in reversed(prices)]
    named = (price for price in each if price.model and fnmatchcase(model, price.model))
    return next(named, next((price for price in each if not price.model), None))


def measured(run: Run, options: ReadOptions) -> Run:
    """Return the run with rows of `options.measures`, or as it is. Groups and corpus stay with score only. Refuse lack.

    Raises:
        NotThereError: its answers have nothing of a measure; lists what they have.
    """
    if not options.measures:
        return run
    scores = [_priced(part, run.model, options) for part in run.scores if part.unit is None]
    ready = [part for part in run.scores if part.unit is not None]  # a run that was read with its measures
    rows: list[Scores] = []
    lacking: list[str] = []
    for name in options.measures:
        named = list(scores) if name == SCORE else _measure_scores(name, scores, options) or _called(name, ready)
        rows += named
        if not named and not (name == SCORE and (run.corpus or run.skipped)):
            lacking.append(name)
    if lacking:
        unknown = [f"{name} ({why})" if (why := _reason(name, run, scores, options)) else name for name in lacking]
        who = f"{run.model} ({run.name})" if run.model not in ("", run.name) else run.name
        raise NotThereError([who], "measures", unknown, _available_measures(run, scores, ready))
    if SCORE in options.measures:
        return replace(run, scores=tuple(rows))
    return replace(run, scores=tuple(rows), groups=(), corpus=(), skipped=(), parts=())


def _called(name: str, parts: Sequence[Scores]) -> list[Scores]:
    return [part for part in parts if part.metric == name.removesuffix(HIGHER)]


def _measure_scores(name: str, scores: Sequence[Scores], options: ReadOptions) -> list[Scores]:
    """Return one measure: usages once per task, else for each chosen metric and scorer. [] if no answer has it."""
    plain = name.removesuffix(HIGHER)
    higher = name.endswith(HIGHER)
    metrics, scorers = options.metrics or ("*",), options.scorers or ("*",)
    chosen = [part for part in scores if any(is_meant(part.metric, name) for name in metrics)]
    chosen = [part for part in chosen if any(is_meant(part.scorer, name) for name in scorers)] or list(scores)
    if (of_repeats := OF_REPEATS.fullmatch(plain)) is not None:
        return [
            row for part in chosen if (row := _repeat_measure(part, of_repeats[1].lower(), of_repeats[2])) is not None
        ]
    above, _, below = plain.partition("/")
    if not below:
        usages = [_measure(part, plain, part.usage[plain], higher) for part in _widest(scores, plain)]
        return [row for row in usages if _has_value(row.values)]
    if {above, below} <= {text for part in scores for text, usage in part.usage.items() if _has_value(usage.values)}:
        both = (_ratio(part, plain, part.usage[above], part.usage[below], higher) for part in _widest(scores, above))
        return [row for row in both if _has_value(row.values)]
    return [row for row in _score_ratios(plain, chosen, higher) if _has_value(row.values)]


def _widest(scores: Sequence[Scores], measure: str) -> list[Scores]:
    """Return, for each task with the measure, the scores that have it most often, so that answers count once."""
    tasks: dict[str, list[Scores]] = {}
    for part in scores:
        if measure in part.usage:
            tasks.setdefault(part.task, []).append(part)
    return [max(parts, key=lambda part: np.isfinite(part.usage[measure].values).sum()) for parts in tasks.values()]


def _has_value(values: FloatArray) -> bool:
    return bool((values == values).any())


def _derived(part: Scores, name: str, values: FloatArray, codes: set[str], **fields: Any) -> Scores:
    """Return scores of other values of the same answers, with these codes, without usage, native or missing counts."""
    plain: dict[str, Any] = {
        "n_missing": 0,
        "missing": {},
        "n_zero": 0,
        "native": None,
        "names": None,
        "gradings": None,
        "asked": None,
    }
    codes_ = tuple(sorted(codes))
    return replace(part, metric=name, values=values, usage={}, diagnostics=codes_, **(plain | fields))


def _measure(part: Scores, name: str, usage: Usage, higher: bool) -> Scores:
    """Return the `Scores` of one measure (such as cost) of a part's answers. `higher` says whether more is better."""
    dropped = sum(n for cause, n in usage.missing.items() if cause == "cached")
    return _derived(
        part,
        name,
        usage.values,
        {*part.diagnostics, *usage.codes} - {MISMATCH} | ({CACHED_USAGE} if dropped else set()),
        scorer="none",
        higher_is_better=higher,
        bounds=UNBOUNDED,
        n_missing=sum(usage.missing.values()),
        missing=dict(usage.missing),
        unit=unit_of(name),
    )


def _score_ratios(name: str, scores: Sequence[Scores], higher: bool) -> Iterator[Scores]:
    """Yield a ratio such as cost/score of all scores with both parts, named by metric if a scorer has several."""
    above, _, below = name.partition("/")
    for part in scores:
        score = Usage(part.values, {"": part.n_missing - part.n_zero})
        usages = {SCORE: score, part.metric: score}
        usages |= {text: usage for text, usage in part.usage.items() if _has_value(usage.values)}
        if above not in usages or below not in usages:
            continue
        alone = sum((x.task, x.scorer) == (part.task, part.scorer) for x in scores) == 1
        called = [part.metric if text == SCORE and not alone else text for text in (above, below)]
        row = _ratio(part, "/".join(called), usages[above], usages[below], higher or above in (SCORE, part.metric))
        yield replace(row, scorer=part.scorer)


def _ratio(part: Scores, name: str, above: Usage, below: Usage, higher: bool) -> Scores:
    """Return Σx/Σy as scores: x as `values`, y as `per`, both NaN for an answer without either. Never None."""
    holes = np.isnan(above.values) | np.isnan(below.values)
    lost = max(above.missing, below.missing, key=lambda causes: sum(causes.values()))
    cells = np.isnan(part.values).sum() - (part.n_missing - part.n_zero)  # that no answer belongs to
    row = _measure(part, name, Usage(np.where(holes, np.nan, above.values), lost, above.codes + below.codes), higher)
    missing = {cause: n for cause, n in lost.items() if cause}
    per = np.where(holes, np.nan, below.values)
    return replace(row, per=per, n_missing=max(int(holes.sum() - cells), 0), missing=missing)


def _repeat_measure(part: Scores, kind: str, k: str | None) -> Scores | None:
    """Return consistency, pass^k or pass@k per question (no k: fewest repeats). None without k repeats, or not 0/1."""
    from ..stats import passk

    if part.stops_on:
        return _stopped_measure(part, kind, k)
    counts = (~np.isnan(part.values)).sum(axis=1)
    K = int(counts[counts > 0].min(initial=part.values.shape[1]))
    size = K if k in (None, "", "k") else int(k or 0)
    right = bool((np.isnan(part.values) | (part.values == 0) | (part.values == 1)).all())
    if size > counts.max(initial=0) or (size < 2 and kind == "consistency") or (kind != "consistency" and not right):
        return None
    if kind == "consistency":
        values = passk.consistency(part.values, size)[:, None]
    else:
        values = passk.pass_curves(part.values, [size])[kind == "pass^"]
    return _row_of_questions(part, kind, size, values)


def _stopped_measure(part: Scores, kind: str, k: str | None) -> Scores | None:
    """Return pass@k of repeats that stop at success, pass^k of ones at failure. None else, for k above K or not 0/1."""
    K = part.values.shape[1]
    size = K if k in (None, "", "k") else int(k or 0)
    right = bool((np.isnan(part.values) | (part.values == 0) | (part.values == 1)).all())
    known = {"pass@": "success", "pass^": "failure"}.get(kind) == part.stops_on
    if part.stops_on is None or not known or not right or size > K:
        return None
    from ..stats.stopped import within_k  # a run without the flag reads nothing, and loads no statistics

    return _row_of_questions(part, kind, size, within_k(part.values, size, part.stops_on)[:, None])


def _row_of_questions(part: Scores, kind: str, size: int, values: FloatArray) -> Scores:
    """Return (n, 1) values, each from all answers to a question, as scores in [0, 1]. Add `uses_all_repeats`."""
    name = f"{kind.rstrip('^')}^{size}" if kind != "pass@" else f"{kind}{size}"
    answered = ~np.isnan(part.values).all(axis=1)
    return _derived(
        part,
        name,
        values,
        {*part.diagnostics, "uses_all_repeats"} - {MISMATCH, "identical_repeats"},
        higher_is_better=True if kind == "consistency" else part.higher_is_better,
        bounds=(0.0, 1.0),
        n_missing=int((np.isnan(values[:, 0]) & answered).sum()),
        factors=None,
        repeats_are_runs=False,
        repeats_named=None,
        repeat_names=None,
    )


def _priced(part: Scores, model: str, options: ReadOptions) -> Scores:
    """Return the scores with answers' cost by the user's price, else as logged. Cost 0 is missing, but for price 0.

    A harness writes 0 for an answer from a cache, and for a model whose price it does not know.
    """
    if "cost" not in part.usage:
        return part
    price = price_of(model, options.prices)
    cost = part.usage["cost"] if price is None else price.cost(part.usage)
    if price is None or price.input or price.output:
        nothing = cost.values == 0
        paid = bool((cost.values > 0).any())
        counts = Counter(cost.missing) + Counter({"cached" if paid else "no_price": int(nothing.sum())})
        cost = replace(cost, values=np.where(nothing, np.nan, cost.values), missing=counts)
    if price is None and not _has_value(cost.values) and "output_tokens" in part.usage:
        cost = replace(cost, missing={"no_price": sum(cost.missing.values())})
    return replace(part, usage={**part.usage, "cost": cost})


def _available_measures(run: Run, scores: Sequence[Scores], ready: Sequence[Scores]) -> list[str]:
    """Return up to 30 names of measures that a run's answers have, `score` first, for a message."""
    names = dict.fromkeys(part.metric for part in ready)
    names |= {name: None for part in scores for name, usage in part.usage.items() if _has_value(usage.values)}
    return list(dict.fromkeys([SCORE, *names, *run.measurable]))[:30]


def _reason(name: str, run: Run, scores: Sequence[Scores], options: ReadOptions) -> str:
    """Return why no answer has the measure asked for, for a message. "" if the reason is unknown."""
    plain = name.removesuffix(HIGHER)
    names = {text for part in scores for text, usage in part.usage.items() if _has_value(usage.values)}
    if options.prices and "cost" in plain.split("/") and names.isdisjoint(PRICED):
        return "`prices` are of tokens, and there are none"
    if OF_REPEATS.fullmatch(plain):
        return "it is made of several answers to each question, pass^k and pass@k of right or wrong ones"
    causes: Counter[str] = Counter()
    for measure in plain.split("/"):
        causes.update(sum((Counter(x.usage[measure].missing) for x in scores if measure in x.usage), Counter()))
    if not run.measurable and not causes:
        return f"what {run.harness} has written holds no tokens, times or costs of single answers"
    lost = [(cause, n) for cause, n in causes.items() if cause in _WHY and n]
    return " and ".join(f"{counted(n, 'answer')} {_WHY[cause]}" for cause, n in lost)

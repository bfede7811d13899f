"""What it comes to, in one plain line for each row; of many rows a count first."""

from __future__ import annotations

from collections import Counter

from ..data.native_values import is_proportion
from ..results.diagnostics import explained
from ..results.rows import Comparison, Difference
from .columns import (
    _level,
    _named,
    digits_of,
    has_t,
    interval_name,
    limit,
    metric_name,
    names_of,
    number,
    p_text,
    plain,
    shorten,
)
from .sentences import ODD

FEW = 12
"""Rows of which each has a line, and which a table shows; of more, those that say something."""
_NAME = 60
NOT_DECIDED = "not decided"
"""The verdict of a run that grows, at a look that did not decide."""


def verdict_lines(table: Comparison) -> list[str]:
    """One line for each row, or a count of the verdicts and the lines of the rows that differ."""
    items = table.differences
    told = [verdict_line(item, alone=len(items) == 1, settings=table.settings) for item in shown_rows(table)]
    return told if len(items) <= FEW else [_count(table), *told]


def shown_rows(table: Comparison) -> list[Difference]:
    """The rows that a terminal shows: all if they are few, else the smallest adjusted p, in the table's order.

    The rows of groups, which sum up the others, are always there.
    """
    items = table.differences
    if len(items) <= FEW:
        return list(items)
    groups = set(table.families) - {""}
    p = [2.0 if item.p_adjusted is None else item.p_adjusted for item in items]
    order = sorted(range(len(items)), key=lambda i: (items[i].task not in groups, p[i]))
    clear = [i for i in order if items[i].task in groups or _decided(items[i])][:FEW]
    return [items[i] for i in sorted(clear)]


def _decided(item: Difference) -> bool:
    return item.verdict in ("A better", "B better")


def _count(table: Comparison) -> str:
    """ "3 better, 1 worse, 53 not separable after adjustment"."""
    found = Counter(item.verdict for item in table.differences)
    words = {"A better": "better", "B better": "worse"}
    after = "" if table.settings.get("adjust") == "none" else " after adjustment"
    unjudged = sum(item.ci_low is None and item.p_value is None for item in table.differences)
    parts = [f"{found[key]} {word}" for key, word in words.items()]
    parts += [f"{n} {verdict}" for verdict, n in found.items() if verdict.startswith("equivalent")]
    if same := found["not separable"] - unjudged:
        parts.append(f"{same} not separable{after}")
    parts += [f"{found[NOT_DECIDED]} {NOT_DECIDED}"] if found[NOT_DECIDED] else []
    parts += [f"{unjudged} that cannot be judged"] if unjudged else []
    pairs = {names_of(item) for item in table.differences}
    a, b = next(iter(pairs)) if len(pairs) == 1 else ("A", "B")
    return plain(f"{shorten(a, _NAME)} against {shorten(b, _NAME)}, {len(table.differences)} rows: {', '.join(parts)}.")


def verdict_line(item: Difference, *, alone: bool = True, settings: object = None) -> str:
    """ "sim-a is not shown to differ from sim-b: −0.3 to +14.1 points; t test, 19 df; smallest detectable 9.7"."""
    a, b = _names(item)
    where = "" if alone else f"{' '.join(filter(None, (item.task, metric_name(item.metric, item.scorer))))}: "
    if item.ci_low is None and item.p_value is None:
        why = next((explained(code, item.cluster is not None) for code in _REASONS if code in item.diagnostics), "")
        by = "" if item.diff is None else f" ({_signed(item, item.diff, settings)})"
        return plain(f"{where}whether {a} and {b} differ{by} is not known{': ' + why if why else '.'}")
    text = _verdict(item, a, b, settings)
    if item.ci_low is not None and item.ci_high is not None:
        unit = " points" if _in_points(item, settings) else ""
        level = "" if _level([item]) == "95 %" else f" ({_level([item])} interval)"
        low, high = (_signed(item, x, settings) for x in (item.ci_low, item.ci_high))
        text += f": {low} to {high}{unit}{level}"
    test = _test(item)
    if _decided(item) and item.p_adjusted is not None:
        p = p_text(item.p_adjusted)
        test += f", {'p' if item.p_adjusted == item.p_value else 'adjusted p'} {p if p.startswith('<') else '= ' + p}"
    text += f"; {test}" if test else ""
    if item.verdict == NOT_DECIDED:
        text += f"; {NOT_DECIDED} yet"
    if item.mde is not None and not _decided(item):
        none = _in_points(item, settings) and item.mde > 1  # no two scores of a question differ by so much
        text += f"; smallest detectable {'none' if none else _amount(item, item.mde, settings, unit=False)}"
    if "not_after_adjustment" in item.diagnostics:
        text += "; no longer significant after adjustment"
    if "missing_matters" in item.diagnostics:
        text += f"; its {item.n_missing:,} missing answers could change this"
    if "mean_mismatch" in item.diagnostics:
        text += f"; {ODD}"
    return plain(f"{where}{text}.")


def _names(item: Difference) -> tuple[str, str]:
    """The runs' names; counts that have none are told by themselves."""
    a, b = (shorten(name, _NAME) for name in names_of(item))
    if item.test == "fisher" and (a, b) == ("A", "B"):
        counts = ((item.mean_a, item.n_only_a), (item.mean_b, item.n_only_b))
        a, b = (f"{round((mean or 0.0) * n)} of {n}" for mean, n in counts)
    return a, b


_REASONS = ("too_few_questions", "too_few_clusters", "identical_scores", "zero_variance", "skipped_metric")


def _verdict(item: Difference, a: str, b: str, settings: object) -> str:
    if item.verdict.startswith("equivalent"):
        return f"{a} and {b} are {item.verdict}"
    if not _decided(item) or item.diff is None:
        return f"{a} is not shown to differ from {b}"
    word = "better" if item.verdict == "A better" else "worse"
    lower = ", where lower is better," if item.higher_is_better is False else ""
    return f"{a} is {word} than {b}{lower} by {_amount(item, abs(item.diff), settings)}"


def _test(item: Difference) -> str:
    shown = interval_name(item)
    tested = item.p_value is not None and has_t(item)
    name = _named(item.test, item) if tested else (shown if item.interval != "none" else "")
    if name == "t" or name.startswith("t, "):
        name = name.replace("t", "t test", 1)
    if name in ("Fisher's exact", "sequential"):
        return f"{name} test"
    unpaired = "unpaired " if "unpaired" in item.diagnostics else ""
    return f"{unpaired}{name}"


def _in_points(item: Difference, settings: object) -> bool:
    """Whether the scores are right or wrong, so that a difference is one of percentage points."""
    if item.test == "fisher":
        return True
    bounds = settings.get("range") if isinstance(settings, dict) else None
    if bounds is not None:
        return tuple(bounds) == (0, 1)
    means = (item.mean_a, item.mean_b)
    return is_proportion(item.metric) and all(mean is not None and 0 <= mean <= 1 for mean in means)


def _digits(item: Difference, settings: object) -> tuple[float, int]:
    scale = 100.0 if _in_points(item, settings) else 1.0
    return scale, max(0, digits_of(item) - (2 if scale > 1 else 0))


def _amount(item: Difference, value: float, settings: object, *, unit: bool = True) -> str:
    scale, digits = _digits(item, settings)
    return number(scale * value, digits) + (" points" if unit and scale > 1 else "")


def _signed(item: Difference, value: float, settings: object) -> str:
    scale, digits = _digits(item, settings)
    text = limit(scale * value, digits)
    return text if text.startswith("−") or float(scale * value) == 0 else f"+{text}"

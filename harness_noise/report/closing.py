"""What a mean comes to, in one plain line: also the closing line of a live run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..results.rows import Estimate
from .columns import _level, decimals, interval, metric_name, number, plain, shorten
from .sentences import ODD, answers

_NAME = 60


def closing_line(item: Estimate, harness: str = "", native_se: float | None = None, *, who: str = "") -> str:
    """ "0.625 ± 0.064 (20 clusters of 10, 5 answers each); lm-eval's own ± 0.035 takes 200 independent questions".

    Parameters
    ----------
    item
        The mean.
    harness
        Who printed `native_se`.
    native_se
        The harness's own standard error, if it has printed one.
    who
        To begin with: whose mean it is, where there are several.
    """
    name = " ".join(filter(None, (who, item.task, metric_name(item.metric, item.scorer))))
    start = f"{shorten(name, _NAME)}: " if name else ""
    digits = decimals(item.se, item.mean)
    if item.mean is None:
        return plain(f"{start}no mean{'' if 'skipped_metric' in item.diagnostics else ': there is no score'}.")
    if "skipped_metric" in item.diagnostics:
        return plain(f"{start}{number(item.mean, digits)}, the harness's own value, without an error bar.")
    if item.n_questions == 1:
        return plain(f"{start}{number(item.mean, digits)} on one question, which has no standard error.")
    if item.se is None:
        return plain(f"{start}{number(item.mean, digits)}, whose noise is not known.")
    known = f" ± {number(item.se, digits)}"
    if not item.se:  # what never varied is not certain
        known = "" if item.ci_low is None else f", {_level([item])} CI {interval(item.ci_low, item.ci_high, digits)}"
    text = f"{start}{number(item.mean, digits)}{known} ({_asked(item)}, {answers(item)})"
    if not item.se:
        text += f"; all {'clusters' if item.cluster else 'questions'} have the same mean"
    if native_se is not None:
        own = number(native_se, digits)
        if item.cluster:
            takes = f"takes {item.n_questions} independent questions"
        elif item.repeats_max > 1:
            takes = "is that of its own value"
        elif own == number(item.se, digits):
            takes = "agrees: one answer each, no clusters"
        else:
            takes = f"takes {item.n_questions} independent questions by its own formula"
        text += f"; {harness}'s own ± {own} {takes}"
    return plain(f"{text}; {ODD}." if "mean_mismatch" in item.diagnostics else f"{text}.")


def closing_lines(
    estimates: Iterable[Estimate], harness: str, native_se: Callable[[Estimate], float | None]
) -> list[str]:
    """One line for each task and group of a live run, about its first metric that has an error bar."""
    first: dict[tuple[str, str, str], Estimate] = {}
    for item in estimates:
        if item.se is not None:
            first.setdefault((item.model, item.run, item.task), item)
    return [closing_line(item, harness, native_se(item)) for item in first.values()]


def _asked(item: Estimate) -> str:
    """ "20 clusters of 10", "200 questions"."""
    if not item.cluster:
        return f"{item.n_questions} questions"
    size = item.n_questions / item.n_clusters
    return f"{item.n_clusters} clusters of {f'about {size:.1f}' if size % 1 else f'{size:.0f}'}"

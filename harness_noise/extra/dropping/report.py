"""Display of looks at many models."""

from __future__ import annotations

from ...errors import some_of
from ...report import fmt
from ...report.columns import Column, Summary, TextColumn, section
from .results import Dropping, LookedModel

_NO_VERDICT = (
    "A model that is no longer asked is not thereby shown to be worse than every other one: verdicts are those of "
    "`arena` over the models that are left."
)
_CORRECTED = "“By” is corrected for stopping at a look, so it can differ from the difference of the two means."
_MOST = 12
"""Models that a sentence names."""


def of_dropping(table: Dropping, *, brief: bool = False, wide: bool = False) -> Summary:
    """Return the interim looks at many models as a `Summary`: who goes on, who was dropped and when."""
    columns = [
        TextColumn("Model", lambda row: fmt.plain(row.model)),
        Column("Mean", lambda row: fmt.mean_of(row, row.mean, unit=True), "over the questions of its last look"),
        Column("asked", lambda row: f"{100 * row.asked:.0f}%", "share of its answers that had been asked by then"),
        TextColumn("behind", lambda row: fmt.plain(row.behind or "")),
        Column("by", _by, "its mean minus that model's, corrected for the looks"),
        Column("interval", _interval, "of this difference, allowing for the looks and the number of models"),
        TextColumn("", lambda row: "goes on" if row.goes_on else f"no longer asked, look {row.dropped_at}"),
    ]
    corrected = () if all(row.goes_on for row in table.models) else (_CORRECTED,)
    steps = ("Next:", *(f"  {step}" for step in table.next_steps)) if table.next_steps else ()
    return Summary((section("", table.models, columns),), (), (*corrected, _NO_VERDICT, *steps), (_sentence(table),))


def _by(row: LookedModel) -> str:
    return fmt.shown(row, row.diff) if row.behind else ""


def _interval(row: LookedModel) -> str:
    return fmt.interval_text(row, row.diff_low, row.diff_high) if row.behind and row.diff_low is not None else ""


def _sentence(table: Dropping) -> str:
    """Return a sentence that names the models that go on and those that were dropped."""
    on = [row.model for row in table.models if row.goes_on]
    out = [f"{row.model} (behind {row.behind} at look {row.dropped_at})" for row in table.models if not row.goes_on]
    looks = f"of {table.looks}" if table.look <= table.looks else f"({table.looks} were planned)"
    go = f"{len(on)} of {len(table.models)} models {'goes' if len(on) == 1 else 'go'} on"
    text = f"{table.models[0].title}, look {table.look} {looks}: {go}: {some_of(on, _MOST)}."
    if out:
        text += f" No longer asked: {some_of(out, _MOST)}."
    return fmt.plain(f"{text} {100 * table.share_asked:.0f}% of all answers were asked.")

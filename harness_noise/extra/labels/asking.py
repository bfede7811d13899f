"""Keywords of the core's functions that ask for a correction by human labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...data.scores import Run
from ...errors import InputError
from ...io.paths import is_frame, is_path, resolve_path, rows_of
from ...settings import Settings, check_obeyed
from .correcting import LabelOptions, corrected_runs, scored_by
from .files import EDITS, LabelFile


@dataclass(frozen=True, slots=True)
class AskedCorrection:
    """A correction of the judge's scores that keywords asked for, by `labels` or `labels_scorer`."""

    given: Mapping[str, Any]
    """Keyword → value, of those that were given."""
    settings: Settings

    @property
    def scorer(self) -> str | None:
        """The name of the scorer whose scores are labels, None if the user named none."""
        name: str | None = self.given.get("labels_scorer")
        return name

    def reads(self, scorers: tuple[str, ...]) -> dict[str, Any]:
        """Return the `ReadOptions` fields needed to read the labels along with the wanted scorers."""
        more = (self.scorer,) if self.scorer and scorers and self.scorer != EDITS else ()
        return {"scorers": (*scorers, *more), "edits": self.scorer == EDITS}

    def of(self, runs: Sequence[Run]) -> list[Run]:
        """Return the runs with the judge's scores corrected by human labels. Refuse labels that do not fit."""
        how = LabelOptions(bool(self.given.get("labels_at_random")), self.given.get("label_range"))
        if self.scorer:
            return [scored_by(run, self.scorer, how, self.settings) for run in runs]
        return corrected_runs(runs, _read_label_file(self.given["labels"]), how, self.settings)


def _read_label_file(source: Any) -> LabelFile:
    """Read human labels from a file, a DataFrame, or rows as dictionaries. Refuse one without their columns."""
    from harness_noise_adapters.extra.labels.reading import read_labels

    if is_path(source):
        return read_labels(resolve_path(source))
    return read_labels(None, rows_of(source) if is_frame(source) else source)


def correction(given: Mapping[str, Any], settings: Settings, own: Mapping[str, Any] | None) -> AskedCorrection:
    """Return the label correction that keywords ask for. Refuse none or two sources of labels, and what it cannot do.

    Args:
        given: the keywords about labels that were given.
        settings: all of them.
        own: further keywords of the function.

    Raises:
        InputError: no labels or two sources of them, or a keyword that labels do not obey.
    """
    sources = [name for name in ("labels", "labels_scorer") if name in given]
    if len(sources) == 2:
        raise InputError("`labels` and `labels_scorer` both say where the labels are: give one of them")
    if not sources:
        raise InputError(f"`{next(iter(given))}` is about human labels: give `labels` or `labels_scorer`, too")
    settings.check("labels")
    check_obeyed("labels", dict(own or {}))
    low, high = given.get("label_range", (0, 1))
    if not low < high:
        raise InputError(f"`label_range` {low:g}, {high:g} must be the lowest and the highest label, such as 1, 5")
    return AskedCorrection(given, settings)

"""What weights of a field do to runs that were read, and what must be read for them."""

from __future__ import annotations

from ...data.scores import Run
from ...settings import Settings
from .weighing import with_strata


def prepare(runs: list[Run], settings: Settings) -> list[Run]:
    """Return the runs weighted as the settings say, with notes. Refuse as `with_strata` does."""
    assert settings.strata is not None
    return [with_strata(run, *settings.strata) for run in runs]


def fields(settings: Settings) -> list[str]:
    """Return the question field whose values have weights, as a list of one."""
    assert settings.strata is not None
    return [settings.strata[0]]

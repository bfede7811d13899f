"""What `chance` does to runs that were read, and what must be read for it."""

from __future__ import annotations

from ...data.scores import Run
from ...settings import Settings
from .correcting import CHOICES, shares_of, without_chance


def prepare(runs: list[Run], settings: Settings) -> list[Run]:
    """Return the runs corrected for chance, notes in them. `chance` must be set. Refuse as `without_chance` does."""
    assert settings.chance is not None
    shares = shares_of(runs, settings)
    return [without_chance(run, settings.chance, settings, shares) for run in runs]


def fields(settings: Settings) -> list[str]:
    """Return the question fields that `prepare` needs: the number of choices for ``"auto"``, else none."""
    return [CHOICES] if settings.chance == "auto" else []

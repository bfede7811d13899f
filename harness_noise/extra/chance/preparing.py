"""What `chance` does to runs that were read, and what must be read for it."""

from __future__ import annotations

from ...data.scores import Run
from ...settings import Settings
from .correcting import CHOICES, without_chance


def prepare(run: Run, settings: Settings) -> Run:
    """Return the run corrected for chance, its notes in it. `chance` must be set. Refuse as `without_chance` does."""
    assert settings.chance is not None
    return without_chance(run, settings.chance, settings)


def fields(settings: Settings) -> list[str]:
    """Return the question fields that `prepare` needs: the number of choices for ``"auto"``, else none."""
    return [CHOICES] if settings.chance == "auto" else []

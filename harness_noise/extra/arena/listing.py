"""Noise profiles as `harness-noise list` shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ...io.paths import is_url
from .profiles import NamedProfile, is_profile, named, names

HEADING = "Noise profiles for --profile NAME (list NAME: the sources of one):"


def rows() -> dict[str, str]:
    """Return {profile's name: its main figures as text} for the noise profiles in this package."""
    every = [noise for name in names() for noise in named(name)]
    return {noise.name: ", ".join(f"{key} {value}" for key, value in _figures(noise)) for noise in every}


def about(what: str) -> list[Mapping[str, object]] | None:
    """Return {figures…, task, metric, source…} per profile of a file or name. None: URL, other file. Refuse others."""
    if is_url(what) or (Path(what).exists() and not is_profile(what)):
        return None
    return [
        {
            **dict(_figures(noise)),
            "task": noise.profile.task,
            "metric": noise.profile.metric,
            **(noise.source or {}),
        }
        for noise in named(what)
    ]


def _figures(noise: NamedProfile) -> Iterable[tuple[str, object]]:
    profile = noise.profile
    yield "questions", profile.n_questions
    if profile.cluster is not None:
        yield "clusters", f"{profile.n_clusters} ({profile.cluster})"
    yield "models", profile.n_models
    yield "SE of A − B", profile.units.text(profile.se_total.median, 3, unit=True)

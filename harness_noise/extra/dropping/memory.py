"""The small file next to each run that says which looks were taken, at which models."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...analysis.drawing import valid_objects
from ...errors import InputError
from ...results.parts import KEPT_BESIDE
from .. import kept_looks
from ..boundaries import critical_values
from .stats import Looked, ModelFamily

ANEW = kept_looks.ANEW.format("files")


@dataclass(frozen=True, slots=True)
class Kept:
    """A family of models with what all looks at the family have in common."""

    head: Mapping[str, Any]
    models: tuple[str, ...]
    family: ModelFamily


def beside(path: Path) -> Path:
    """Return the path of the file next to a run in which its looks are recorded."""
    return path.with_name(f"{path.name}.arena{KEPT_BESIDE}")


def read(paths: Iterable[Path], head: Mapping[str, Any]) -> Kept | None:
    """Return the `Kept` with most looks of the files next to these runs, or None. Refuse broken, other models, choices.

    Raises:
        InputError: a broken file, another family, or looks that were taken with other choices.
    """
    kept = [(memory, _read(memory)) for memory in map(beside, paths) if memory.exists()]
    if not kept:
        return None
    memory, latest = max(kept, key=lambda each: len(each[1].family.info))
    for other, one in kept:
        if one.models != latest.models:
            raise InputError(
                f"{other} and {memory} are of looks at other models ({', '.join(one.models)} and "
                f"{', '.join(latest.models)}): a model that comes later starts a new family. Name the runs of one, or "
                f"{ANEW}"
            )
    kept_looks.check_choices(memory, latest.head, head, "files")
    return latest


def write(paths: Iterable[Path], kept: Kept) -> list[Path]:
    """Write the models' looks into a file next to each run. Return the paths."""
    family = kept.family
    found = {kept.models[m]: asdict(of) for m, of in family.models.items()}
    for of in found.values():
        of |= {name: None if of[name] != of[name] else of[name] for name in ("low", "high")}
    content = dict(kept.head) | {
        "models": list(kept.models),
        "information": family.info,
        "fractions": family.fractions,
        "found": found,
    }
    files = [beside(path) for path in paths]
    for file in files:
        kept_looks.write(file, content)
    return files


def _looked(of: Mapping[str, Any], family: ModelFamily) -> Looked:
    """Check one model's last interim look from a looks file, and return it. ValueError if values are impossible.

    Raises:
        ValueError: a value of another kind, or one that cannot be.
    """
    unknown = {end: math.nan for end in ("low", "high") if of[end] is None}
    (values,) = valid_objects([dict(of) | dict.fromkeys(unknown, 0.0)], Looked)
    looked = Looked(**(values | unknown))
    if not (1 <= looked.look <= len(family.info) and 0 <= looked.leader < family.M and 0 < looked.n <= looked.answers):
        raise ValueError(of)
    return looked


def _read(memory: Path) -> Kept:
    with kept_looks.content_of(memory, "the looks at many models") as content:
        models = tuple(content.pop("models"))
        info, fractions, found = content.pop("information"), content.pop("fractions"), content.pop("found")
        family = ModelFamily(len(models), float(content["level"]), list(map(float, info)), list(map(float, fractions)))
        critical_values([1e-9, *family.fractions], 0.05, info=[1e-9, *family.info])  # refuses what does not rise
        if content["kind"] != "arena looks" or not 0 < family.level < 1 or set(found) - set(models) or len(models) < 2:
            raise ValueError(memory)
        for name, of in found.items():
            family.models[models.index(name)] = _looked(of, family)
    return Kept(content, models, family)

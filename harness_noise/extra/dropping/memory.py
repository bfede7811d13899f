"""The small file next to each run that says which looks were taken, at which models."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..._version import __version__
from ...analysis.drawing import valid_objects
from ...errors import InputError
from ...io.paths import KEPT_BESIDE, LARGEST, loads, opened
from ...results.forms import SCHEMA_VERSION
from ..boundaries import critical_values
from .stats import Looked, ModelFamily

_ABOUT = ("schema_version", "harness_noise_version")
ANEW = "take the files away to start again, which forgets the error spent"


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
    """Read the latest looks file next to these runs, None if there is none. Refuse ones with other choices.

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
    for name, value in head.items():
        before = latest.head.get(name)
        if name not in _ABOUT and before != value:
            raise InputError(
                f"{memory}: the looks before were taken with {name} {before!r}, not {value!r}, and cannot be counted "
                f"with this one: ask as before, or {ANEW}"
            )
    return latest


def head_of(**choices: Any) -> dict[str, Any]:
    """Return the fields that a looks file starts with: kind, versions and the choices made."""
    return {
        "kind": "arena looks",
        "schema_version": SCHEMA_VERSION,
        "harness_noise_version": __version__,
        **choices,
    }


def write(paths: Iterable[Path], kept: Kept) -> list[Path]:
    """Write the models' looks into a file next to each run. Return the paths."""
    from ...io.atomic import write_text

    family = kept.family
    found = {kept.models[m]: asdict(of) for m, of in family.models.items()}
    for of in found.values():
        of |= {name: None if of[name] != of[name] else of[name] for name in ("low", "high")}
    content = dict(kept.head) | {
        "models": list(kept.models), "information": family.info, "fractions": family.fractions, "found": found,
    }  # fmt: skip
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    files = [beside(path) for path in paths]
    for file in files:
        write_text(file, text)
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
    try:
        with opened(memory) as file:
            content = loads(file.read(LARGEST))
        models = tuple(content.pop("models"))
        info, fractions, found = content.pop("information"), content.pop("fractions"), content.pop("found")
        family = ModelFamily(len(models), float(content["level"]), list(map(float, info)), list(map(float, fractions)))
        critical_values([1e-9, *family.fractions], 0.05, info=[1e-9, *family.info])  # refuses what does not rise
        if content["kind"] != "arena looks" or not 0 < family.level < 1 or set(found) - set(models) or len(models) < 2:
            raise ValueError(memory)
        for name, of in found.items():
            family.models[models.index(name)] = _looked(of, family)
    except OSError as error:
        raise InputError(f"{memory}: cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            f"{memory}: not the looks at many models, or a broken file of them. Take it away to start again"
        ) from None
    return Kept(content, models, family)

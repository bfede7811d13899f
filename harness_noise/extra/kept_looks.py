"""Files beside runs that keep the looks taken: written, read back, and refused if broken or of other choices."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._version import __version__
from ..errors import InputError
from ..io.atomic import write_text
from ..io.paths import LARGEST, loads, opened
from ..results.forms import SCHEMA_VERSION

ANEW = "delete the {} to start again, which forgets the error spent"


def head_of(kind: str, **choices: Any) -> dict[str, Any]:
    """Return the fields with which a file of looks begins: its kind, its version, and the choices of all looks."""
    return {"kind": kind, "schema_version": SCHEMA_VERSION, "harness_noise_version": __version__, **choices}


@contextmanager
def content_of(memory: Path, looks: str) -> Iterator[Any]:
    """Yield the parsed JSON of a looks file for a `with` block. InputError if unreadable, or broken to the block."""
    try:
        with opened(memory) as file:
            yield loads(file.read(LARGEST))
    except OSError as error:
        raise InputError(f"{memory}: cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{memory}: not {looks}, or a broken file of them. Delete it to start again") from None


def check_choices(memory: Path, before: Mapping[str, Any], head: Mapping[str, Any], files: str) -> None:
    """Refuse a look with other choices than those of the looks before. The package's version may differ."""
    for name, value in head.items():
        if name not in ("schema_version", "harness_noise_version") and before.get(name) != value:
            raise InputError(
                f"{memory}: the looks before were taken with {name} {before.get(name)!r}, not {value!r}, and cannot be "
                f"counted with this one: ask as before, or {ANEW.format(files)}"
            )


def write(memory: Path, content: Mapping[str, Any]) -> None:
    """Write a file of looks, whole or not at all."""
    write_text(memory, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")

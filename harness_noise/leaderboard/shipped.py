"""The noise profiles that come with the package, by name; `benchmarks/reference_noise.py` makes them."""

from __future__ import annotations

import json
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..errors import InputError

FOLDER = Path(__file__).parent / "noise"


def names() -> list[str]:
    """The benchmarks whose noise is known, in alphabetical order."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def locate(path: str | Path) -> Path:
    """The file that is meant: a file that is there, or the profile of that name (`-`, `_` and case are alike).

    Raises:
        InputError: a bare name that no profile has; names those like it.
    """
    path = Path(path)
    if path.exists() or path.name != str(path) or path.suffix == ".json":
        return path
    known = {_plain(name): name for name in names()}
    if _plain(path.name) in known:
        return FOLDER / f"{known[_plain(path.name)]}.json"
    within = [item for item in known if _plain(path.name) and _plain(path.name) in item]
    near = [known[item] for item in within or get_close_matches(_plain(path.name), known, n=3)]
    raise InputError(
        f"{path}: neither a file nor a benchmark whose noise comes with this package"
        f"{'; did you mean ' + ' or '.join(near) + '?' if near else '.'} `harness-noise references` lists them; "
        "`write_profile` makes one of an arena of your own runs"
    )


def source(path: str | Path) -> dict[str, Any] | None:
    """Where a shipped profile's table came from: `what`, `repository`, `commit`, `licence`, …; None for others."""
    path = locate(path)
    if path.parent != FOLDER:
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["source"]
    return found


def sentence(path: str | Path) -> str | None:
    """What a shipped profile rests on, for whoever uses it; None for a profile of one's own."""
    found = source(path)
    if found is None:
        return None
    return (
        f"the noise is that of {locate(path).stem}: {found['what']} ({found['repository'].partition('//')[2]}, "
        f"{found['licence']}). It applies to models of similar accuracy that agree about as often, prompted the same "
        "way"
    )


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())

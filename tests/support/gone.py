"""A copy of the package from which every extra is gone, as far as Python can see."""

from __future__ import annotations

import sys
from typing import Any

FOLDERS = ("harness_noise.extra", "harness_noise_adapters.extra")


def _is_of_one(name: str) -> bool:
    return any(f"{name}.".startswith(f"{folder}.") for folder in FOLDERS)


class _Gone:
    """A finder for which modules of extras do not exist."""

    def find_spec(self, name: str, *_: Any) -> None:
        if _is_of_one(name):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def remove_extras() -> None:
    """Take all extras away from this process, which has imported none."""
    assert not loaded()
    sys.meta_path.insert(0, _Gone())  # type: ignore[arg-type]


def loaded() -> list[str]:
    """Modules of extras that are imported, but for the declarations by which the core finds what there is."""
    names = filter(_is_of_one, sys.modules)
    return sorted(name for name in names if name.startswith(FOLDERS[1]) or name.count(".") > 2)

"""The door to `harness_noise_adapters/extra/`: an adapter imports no module of it, and asks here when it needs one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from harness_noise.errors import InputError
from harness_noise.extras import FOLDER, not_installed


def if_any(path: str) -> Any:
    """Import and return a module of our folder of extras, None if it is not installed.

    Args:
        path: from the folder of extras on.
    """
    try:
        return extra(path, path)
    except InputError:
        return None


def extra(path: str, what: str) -> Any:
    """Import and return a module of our folder of extras. If absent, refuse option `what`, saying how to install it.

    Args:
        path: from the folder of extras on.
        what: the option that needs it, as its user writes it.

    Raises:
        InputError: the extra, or its other half in `harness_noise`, is not installed.
    """
    own = f"{__package__}.extra"
    try:
        return import_module(f"{own}.{path}")
    except ModuleNotFoundError as error:
        if not str(error.name).startswith((own, FOLDER)):
            raise
    raise InputError(not_installed(what))

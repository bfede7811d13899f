"""The page of all diagnostics on standard output: `python -m harness_noise.cli.diagnostics > docs/diagnostics.md`."""

from __future__ import annotations

from ..report.diagnostics import page
from . import commands  # noqa: F401  they know the flags
from .flags import in_flags

if __name__ == "__main__":
    print(page(in_flags), end="")

"""The page of all diagnostics on standard output: `python -m harness_noise.cli.diagnostics > docs/diagnostics.md`."""

from __future__ import annotations

from ..report.diagnostics import page
from .commands import in_flags

if __name__ == "__main__":
    print(page(in_flags), end="")

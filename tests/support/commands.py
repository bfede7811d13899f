"""Commands called in this process."""

from __future__ import annotations

from click.testing import CliRunner


def runner() -> CliRunner:
    """One that keeps stdout and stderr apart, which click before 8.2 does only if asked and later ones always do."""
    try:
        return CliRunner(mix_stderr=False)  # type: ignore[call-arg]
    except TypeError:
        return CliRunner()

"""The errors that users are meant to see."""

from __future__ import annotations


class InputError(ValueError):
    """Input that cannot be used: one paragraph that says what, where and what to do.

    The command line prints it without a traceback and exits with 2.
    """


class NothingSharedError(InputError):
    """Two runs measured the same thing on questions of which they share none."""

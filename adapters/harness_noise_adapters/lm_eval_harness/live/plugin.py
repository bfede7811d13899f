"""Importing this module adds the noise to every lm-eval run of the process.

For lm-eval's `--plugins harness_noise.lm_eval` (the short name of this module), or a YAML's
`!function`; it may be imported while a run is already starting. Options come from the environment:
HARNESS_NOISE_REPEATS, HARNESS_NOISE_CLUSTER, HARNESS_NOISE_GROUPS (NAME=PATTERN,…),
HARNESS_NOISE_ROWS, HARNESS_NOISE_RESEED, HARNESS_NOISE_LEVEL; HARNESS_NOISE_UNTIL, _AGAINST, _MARGIN,
_METRIC, _SAMPLE, _COMPLETE (RUN,…) and so on, as the flags `--noise_…` of these names. The table is printed when
the process ends.
"""

from __future__ import annotations

import atexit

from . import cli, hook, sessions
from .options import Options

session = hook.Session(Options.from_environment())
"""The session of the hook. `session.analysis` has the noise after a run."""

_installed = sessions.installed(session)
_installed.__enter__()
atexit.register(_installed.__exit__, None, None, None)  # while Python can still import
atexit.register(cli.report, session)


def uninstall() -> None:
    """Remove our hook from lm-eval, which importing this module installs."""
    atexit.unregister(cli.report)
    atexit.unregister(_installed.__exit__)
    _installed.__exit__(None, None, None)

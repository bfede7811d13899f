"""`python -m support.lm_eval_child ARGUMENT…`: `harness-noise lm-eval` on the toy tasks, as a process of its own."""

from __future__ import annotations

import sys
from typing import Any

from lm_eval.tasks import TaskManager

from harness_noise.cli import main
from support import lm_eval_models  # noqa: F401 - its models, and no hub

original = TaskManager.__init__


def init(self: Any, *args: Any, **kwargs: Any) -> None:
    """Without lm-eval's index of 13,000 tasks."""
    original(self, *args, **kwargs | {"include_defaults": False})


if __name__ == "__main__":
    TaskManager.__init__ = init  # type: ignore[method-assign]
    sys.exit(main(["lm-eval", *sys.argv[1:]]))

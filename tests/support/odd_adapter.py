"""An adapter for tests, in a package of its own: files that are read only here, or that kill whoever reads them.

A `.odd` file is a JSON object: `scores`, one list for each question; and what happens on the way.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from harness_noise.data.questions import Questions
from harness_noise.data.scores import ReadOptions, Run, Scores

WORKER = "ODD_WORKER"
"""Environment variable: the name of this worker; not set in the process that the user called."""


class OddAdapter:
    name = "odd"

    def sniff(self, path: Path) -> bool:
        return path.suffix == ".odd"

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        told: dict[str, Any] = json.loads(path.read_text())
        worker = os.environ.get(WORKER)
        if "wait" in told:  # until somebody has left a mark
            while not Path(told["wait"]).exists():
                time.sleep(0.01)
        if "mark" in told:
            Path(told["mark"]).touch()
        if "deaths" in told:
            mark = path.with_suffix(".deaths")
            died = len(mark.read_bytes()) if mark.exists() else 0
            if died < told["deaths"]:
                mark.write_bytes(b"x" * (died + 1))
                os.kill(os.getpid(), signal.SIGKILL)
        if "not_on" in told:  # each worker leaves a mark, and the other one waits for it
            if worker == told["not_on"]:
                Path(told["tried"]).touch()
                raise PermissionError(13, "Permission denied", str(path))
            while worker is not None and not Path(told["tried"]).exists():
                time.sleep(0.01)
        values = np.array(told["scores"], dtype=np.float64)
        questions = Questions(tuple(f"q{i}" for i in range(len(values))))
        scores = Scores("t", "acc", "none", questions, values, higher_is_better=True)
        return [Run(path.stem, str(path), "odd", str(path), (scores,))]

    def write(self, *_: object) -> list[Path]:
        raise NotImplementedError


adapter = OddAdapter()

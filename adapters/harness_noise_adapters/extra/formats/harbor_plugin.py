"""Plugin `harbor run … --plugin noise`: it adds `noise.json` to a job's folder and a line of error bars.

It changes nothing of Harbor. Its own errors are logged and never stop a job.
"""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

from harness_noise import Settings, analyze
from harness_noise.io.atomic import write_text
from harness_noise.report.sentences import sentence

NAME = "noise.json"
logger = logging.getLogger(__name__)


class NoisePlugin:
    """A plugin of a Harbor job. Its arguments are keywords of `harness_noise.analyze` (`--plugin-kwarg level=0.9`).

    Raises:
        InputError: before the job begins, of a value that `analyze` would refuse.
    """

    def __init__(self, *, cluster: str | None = None, level: float = 0.95, missing: str = "drop") -> None:
        self.cluster, self.settings = cluster, Settings(level=level, missing=missing)
        self.folder: Path | None = None

    async def on_job_start(self, job: Any) -> None:
        """Remember the folder that a starting Harbor job writes to."""
        self.folder = Path(job.job_dir)

    async def on_job_end(self, job_result: Any) -> None:
        """Analyze the finished job's folder and write and print its error bars. Failures are only logged."""
        try:
            await asyncio.to_thread(self._write)
        except Exception:
            logger.warning("harness-noise: no error bars of this job", exc_info=True)

    def _write(self) -> None:
        if self.folder is None:
            raise RuntimeError("Harbor has not said where the job is: on_job_start was not called")
        result = analyze(self.folder, settings=self.settings, cluster=self.cluster, say=logger.info)
        write_text(self.folder / NAME, json.dumps(result.to_dict(), indent=2, ensure_ascii=False) + "\n")
        for row in result.estimates:
            print(f"harness-noise: {sentence(row)}")

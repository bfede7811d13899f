"""Saving of lm-eval's own result when it is complete. The final result then replaces it.

lm-eval's tracker writes everything, into a folder beside its own; a file that is whole is then renamed into its
place. So a run that is killed while further answers are asked for leaves what a run without us would have left, and
a full disk leaves no file that is cut short.
"""

from __future__ import annotations

import copy
import json
import logging
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from harness_noise.io.paths import BESIDE

from ..files.outputs import find
from ..files.results import BLOCK, UNFINISHED
from ..scoring.rescore import patched

_STAGE = "saving-"
"""The prefix of the folder that the tracker writes into."""


def root_of(output_path: str | os.PathLike[str]) -> Path:
    """Return the folder of `--output_path`, which may name a file in it."""
    path = Path(output_path)
    return path.parent if path.suffix == ".json" else path


class Saving:
    """The saving of a run's files: lm-eval's own result first, then the final result in its place.

    Args:
        say: called with what went wrong.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._tracker: Any = None
        self.root: Path | None = None
        """The folder that everything is saved into, or below, None if nothing is saved."""
        self._stage = Path()
        """The folder that the tracker writes into."""
        self._patches = ExitStack()
        self._date = ""
        """The date in the file names of lm-eval's own result, "" if they could not be written."""
        self._waiting: set[str] = set()
        """Tasks whose samples are still to be saved."""
        self._whole: dict[str, Path] = {}
        """Task → its samples file, to be moved into its place. "" stands for the results file."""
        self._taken: set[str] = set()
        """The tasks whose files were checked since the tracker began to write, "" for the results file."""
        self._ended = False
        """True if the last result was given to the tracker."""
        self.results: Path | None = None
        """The results file, where one is saved."""
        self.samples: dict[str, Path] = {}
        """Task → its samples file."""
        self.when_saved: Callable[[], None] | None = None
        """Called when the last result is saved whole."""
        self.cut: list[str] = []
        """The tasks whose files were not completely written the last time, "" for the results file."""

    @property
    def place(self) -> Path | None:
        """The saved run's folder, or its results file if the folder holds other runs. None if nothing is saved."""
        if self.root is None or self.results is None:
            return None
        return self.root if len(find(self.root)) == 1 else self.results

    @property
    def _root(self) -> Path:
        assert self.root is not None
        return self.root

    def native(self, tracker: Any, results: Mapping[str, Any], logged: bool) -> None:
        """Save lm-eval's own result if it has an output path, and patch its tracker so the final one replaces it.

        Args:
            tracker: lm-eval's, or None.
            results: what `simple_evaluate` returns without us, with samples.
            logged: whether the user wants the samples.
        """
        if tracker is None or not tracker.output_path:
            return
        self.close()
        alone = copy.copy(tracker)
        alone.general_config_tracker = copy.copy(tracker.general_config_tracker)
        alone.api, alone.push_results_to_hub, alone.push_samples_to_hub = None, False, False
        self._tracker, self.root = tracker, root_of(tracker.output_path)
        samples = {name: [dict(row) for row in found] for name, found in results["samples"].items()} if logged else {}
        rows = {key: value for key, value in results.items() if key != "samples"} | {BLOCK: {UNFINISHED: True}}
        with self._staged(alone, quiet=True):
            alone.save_results_aggregated(results=rows, samples=samples if logged else None)
            self._keep_written_file(alone, "")
            for name, found in samples.items():
                alone.save_results_samples(task_name=name, samples=found)
                self._keep_written_file(alone, name, found)
        if self.cut:
            self._say("lm-eval's own result could not be saved before the further answers (is the disk full?)")
        else:
            self._date = alone.date_id
            self._publish_or_keep()
        self._begin()
        for name, method in (("save_results_aggregated", self._results), ("save_results_samples", self._samples)):
            self._patches.enter_context(patched(tracker, name, method(getattr(tracker, name))))
        if getattr(tracker, "api", None) is not None:
            self._patches.enter_context(patched(tracker, "api", _Hub(tracker.api, self)))

    def close(self) -> None:
        """Move files that remain into place, restore lm-eval's tracker, and call `when_saved` if all is saved whole."""
        if self._tracker is None:
            return
        error = self._publish_or_keep()
        if error is not None:
            self.cut += self._whole
            self._say(f"what could not be put into its place ({error.strerror or error}) is kept in {self._stage}")
            self._stage = Path()
        elif self.when_saved is not None and self._ended and not self.cut:
            self.when_saved()
        self._patches.close()
        self._remove_stage()
        self._whole, self._tracker, self.when_saved, self._ended = {}, None, None, False

    def _publish_or_keep(self) -> OSError | None:
        """Move complete files into place. Return the OSError that stopped this, not reported, and None if none did."""
        try:
            self.publish()
        except OSError as error:
            return error
        return None

    def publish(self) -> None:
        """Move complete files from the temporary folder into place, results last. Raise OSError if one stays.

        Raises:
            OSError: one cannot be put there; it and the following ones are still to be.
        """
        for task in sorted(self._whole, reverse=True):
            file = self._whole[task]
            place = self.published(file)
            place.parent.mkdir(parents=True, exist_ok=True)
            with file.open("rb") as content:
                os.fsync(content.fileno())
            file.replace(place)
            del self._whole[task]
            if task:
                self.samples[task] = place
            else:
                self.results = place

    def published(self, staged: str | Path) -> Path:
        """Return where a file that the tracker wrote temporarily will finally lie."""
        place = self._root / Path(staged).relative_to(self._stage)
        return place.with_name(self.named(place.name)) if Path(staged) != self._stage else place

    def named(self, name: str) -> str:
        """Return a file name with the date of lm-eval's own result instead of the later one."""
        last = getattr(self._tracker, "date_id", "")
        return name.replace(last, self._date) if last and self._date else name

    def _results(self, original: Callable[..., Any]) -> Callable[..., None]:
        def save_results_aggregated(
            results: dict[str, Any], samples: Mapping[str, Sequence[Any]] | None = None, **more: Any
        ) -> None:
            self._begin()
            self._ended, self._waiting = True, set(samples or ())
            self._save("", None, lambda: original(results=results, samples=samples, **more))

        return save_results_aggregated

    def _samples(self, original: Callable[..., Any]) -> Callable[..., None]:
        def save_results_samples(task_name: str, samples: Sequence[Any], **more: Any) -> None:
            self._waiting.discard(task_name)
            self._save(task_name, samples, lambda: original(task_name=task_name, samples=samples, **more))

        return save_results_samples

    def _save(self, task: str, samples: Sequence[Any] | None, call: Callable[[], Any]) -> None:
        """Let lm-eval's tracker write one file, and move all files into place after the last."""
        with self._staged(self._tracker), patched(self, "uploading", lambda: self._now(task, samples)):
            call()
        self._keep_written_file(self._tracker, task, samples)
        if not self._waiting:
            self._publish_or_keep()

    def _now(self, task: str, samples: Sequence[Any] | None) -> None:
        self._keep_written_file(self._tracker, task, samples)
        self._publish_or_keep()

    def uploading(self) -> None:
        """Do nothing. While the tracker saves, a call that moves its file into place before an upload stands here."""

    def _begin(self) -> None:
        """Make a new temporary folder for the tracker to write into. Forget the old one and its files."""
        self._remove_stage()
        (self._root / BESIDE).mkdir(parents=True, exist_ok=True)
        self._stage = Path(
            tempfile.mkdtemp(dir=self._root / BESIDE, prefix=f"{_STAGE}{platform.node()}-{os.getpid()}-")
        )
        self._waiting, self._taken, self.cut, self._whole = set(), set(), [], {}

    def _remove_stage(self) -> None:
        if self._stage.name.startswith(_STAGE):
            shutil.rmtree(self._stage, ignore_errors=True)
            with suppress(OSError):  # a journal in it stays
                self._stage.parent.rmdir()

    def _keep_written_file(self, tracker: Any, task: str, samples: Sequence[Any] | None = None) -> None:
        """Keep the file that the tracker has just written if it is complete, else note its task."""
        if task in self._taken:
            return
        self._taken.add(task)
        date = getattr(tracker, "date_id", None)
        name = f"samples_{task}_{date}.jsonl" if task else f"*_{date}.json"
        found = next(iter(sorted(self._stage.rglob(name))), None)
        if found is not None and (_is_json(found) if samples is None else _count_lines(found) == len(samples)):
            self._whole[task] = found
        else:
            self.cut.append(task)

    @contextmanager
    def _staged(self, tracker: Any, *, quiet: bool = False) -> Iterator[None]:
        """Within the block, let the tracker write into our temporary folder (new if `quiet`), and log final paths."""
        if quiet:
            self._begin()
        output, logger = Path(tracker.output_path), logging.getLogger("lm_eval.loggers.evaluation_tracker")
        stage = self._stage / output.name if output.suffix == ".json" else self._stage
        here, there = str(self._stage), str(self._root)

        def renamed(record: logging.LogRecord) -> bool:
            record.msg = str(record.msg).replace(here, there)
            return not quiet or record.levelno > logging.INFO

        logger.addFilter(renamed)
        try:
            with patched(tracker, "output_path", str(stage)):
                yield
        finally:
            logger.removeFilter(renamed)


class _Hub:
    """The hub of a tracker, which is sent the files in their places and with their names."""

    def __init__(self, api: Any, saving: Saving) -> None:
        self._api, self._saving = api, saving

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def upload_file(self, *, path_or_fileobj: str, path_in_repo: str, **more: Any) -> Any:
        self._saving.uploading()
        place, name = self._saving.published(path_or_fileobj), self._saving.named(path_in_repo)
        return self._api.upload_file(path_or_fileobj=str(place), path_in_repo=name, **more)

    def upload_folder(self, *, folder_path: str, **more: Any) -> Any:
        self._saving.uploading()
        place = str(self._saving.published(folder_path))
        return self._api.upload_folder(folder_path=place, ignore_patterns=[f"{BESIDE}/**"], **more)


def _is_json(file: Path) -> bool:
    try:
        json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return True


def _count_lines(file: Path) -> int:
    """Count the lines of a file. −1 if the last line has no end."""
    count, last = 0, b"\n"
    with file.open("rb") as content:
        while block := content.read(1 << 20):
            count += block.count(b"\n")
            last = block[-1:]
    return count if last == b"\n" else -1

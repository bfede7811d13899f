"""Journal of the further answers: the next run reuses the answers of a run that did not finish.

`<output>/.noise/answers-<rank>.jsonl` is only ever appended to, one whole line at a time, so that several runs may
write into it at once. A run begins with a line of its own; each of its further answers is a line; and a run that
came to its end closes itself and the runs whose answers it has taken up. Neither a prompt nor an argument stands in
it, only hashes of them, and only its owner may read it.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

MOST_AGE = timedelta(days=7)
"""The age up to which an earlier run's answers are reused without a request."""
QUIET = timedelta(minutes=10)
"""The time without a new line after which a run on another machine counts as ended."""
_HOW_FAST = frozenset(
    (
        "num_concurrent",
        "max_retries",
        "timeout",
        "batch_size",
        "max_batch_size",
        "verify_certificate",
        "ca_cert_path",
        "auth_token",
        "api_key",
        "device",
        "tqdm",
    )
)
"""Arguments of a model that say how it is reached, not which model it is."""


_mine: set[str] = set()
"""The runs of this process that go on."""


class Slot(NamedTuple):
    """The place of one further answer in a run."""

    key: str
    """Hash of what is asked: its kind, the prompt, the generation arguments, the seed."""
    repeat: int
    number: int
    """Counted from 0, of the requests of a run that ask the same."""


@dataclass(slots=True)
class _Run:
    """An earlier run in the journal, with its answers."""

    began: datetime
    answers: dict[Slot, tuple[str, Any]] = field(default_factory=dict)
    """Its answers, each with who gave it."""


def hashed(*parts: Any) -> str:
    """Return a hash (32 hex digits) of any values, by their JSON or `repr`."""
    text = json.dumps(parts, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def model_key(model: object, arguments: object, commit: object = None) -> str:
    """Return a hash of a model's kind, arguments (not how it is reached), commit, and its files' sizes and dates.

    Args:
        model: the name of its kind.
        arguments: as a text or a mapping; those that only say how the model is reached do not count.
        commit: of its weights, where that is known.
    """
    if isinstance(arguments, str):
        arguments = dict(part.partition("=")[::2] for part in arguments.split(","))
    named = dict(arguments) if isinstance(arguments, Mapping) else {"": arguments}
    what = {str(name): value for name, value in named.items() if name not in _HOW_FAST}
    weights = {name: list(_weights(value)) for name, value in what.items() if isinstance(value, (str, os.PathLike))}
    return hashed(model, what, weights, commit)


def _weights(place: str | os.PathLike[str]) -> Iterator[tuple[str, int, int]]:
    """Yield (relative path, size, modification time) of the files at a path. Nothing if there are none."""
    with suppress(OSError, ValueError):
        path = Path(place)
        files = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
        for file in files:
            if file.is_file():
                state = file.stat()
                yield str(file.relative_to(path)), state.st_size, state.st_mtime_ns


class Journal:
    """The journal of one run on one rank.

    Args:
        folder: what is ours beside lm-eval's output.
        model: see `model_key`.
        mode: `auto` or `reuse`.
        rank: of this process.
        ranks: how many there are, whose questions are not the same with another number.
        say: called with what the user should know.
    """

    def __init__(self, folder: Path, model: str, mode: str, rank: int, ranks: int, say: Callable[[str], None]) -> None:
        self.path = folder / f"answers-{rank}.jsonl"
        self.mode, self.rank, self._say = mode, rank, say
        self.run = secrets.token_hex(8)
        self.began = datetime.now().astimezone()
        self.taken: Counter[str] = Counter()
        """Earlier run → how many of its answers were taken up."""
        self.asked = 0
        """Answers that were written."""
        self._header = {"run": self.run, "began": self.began.isoformat(), "model": model, "ranks": ranks}
        self._header |= {"host": platform.node(), "process": os.getpid()}
        self._handle: int | None = None
        self._broken = False
        self._runs = self._read(model, ranks)
        _mine.add(self.run)

    def take(self, slot: Slot, servers: Collection[Any]) -> str | None:
        """Return, and count, an earlier run's answer to this request and repeat by one of these servers, else None.

        Args:
            slot: its place.
            servers: who has given lm-eval's own answers in this run; what another one said is left.
        """
        for name, run in self._runs.items():
            answer, server = run.answers.get(slot, ("", ()))
            if server in servers:
                self.taken[name] += 1
                return answer
        return None

    @property
    def began_earlier(self) -> list[str]:
        """Starting times of the interrupted earlier runs whose answers were reused."""
        return sorted(self._runs[name].began.isoformat(timespec="minutes") for name in self.taken)

    def announce(self) -> None:
        """Say how many answers of earlier runs were reused, if any."""
        if (text := sentence(told([AskedFurther.of(self, whole=True)], self.mode))) is not None:
            self._say(text)

    def add(self, slot: Slot, answer: Any, server: Any) -> None:
        """Append a received answer to the journal file if it is a text. After a failure, told once, append nothing."""
        if self._broken or not isinstance(answer, str):
            return
        line = {"run": self.run, "key": slot.key, "repeat": slot.repeat, "number": slot.number, "text": answer}
        try:
            if self._handle is None:
                self._handle = _opened(self.path)
                _write(self._handle, self._header)
            _write(self._handle, line | ({"server": server} if server is not None else {}))
        except OSError as error:
            self._broken = True
            self._say(f"{self.path}: further answers are not written down any more ({error.strerror})")
        else:
            self.asked += 1

    def stop(self) -> None:
        """Close the journal file at the run's end. Later runs of this process may now reuse its answers."""
        _mine.discard(self.run)
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _read(self, model: str, ranks: int) -> dict[str, _Run]:
        """Return {run: its answers} of earlier runs to reuse, newest first: cut short within a week (`reuse`: all)."""
        runs: dict[str, _Run] = {}
        finished: set[str] = set()
        going: dict[str, str] = {}
        damaged, quiet = 0, _quiet_for(self.path)
        for line in _lines(self.path):
            try:
                row = json.loads(line)
                if "finished" in row:
                    finished.update(row["finished"])
                elif "began" in row:
                    if (row["model"], row["ranks"]) == (model, ranks) and row["run"] not in _mine:
                        where = _still_running(str(row["host"]), row["process"], quiet)
                        runs[row["run"]] = _Run(datetime.fromisoformat(row["began"]))
                        going |= {row["run"]: where} if where is not None else {}
                elif row["run"] in runs:
                    server = row.get("server")
                    slot = Slot(row["key"], row["repeat"], row["number"])
                    runs[row["run"]].answers[slot] = row["text"], tuple(server) if server is not None else None
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                damaged += 1
        if damaged:
            lines = "1 damaged line was" if damaged == 1 else f"{damaged} damaged lines were"
            self._say(f"{self.path}: {lines} left out (the end of a run that was killed?)")
        chosen = [
            name
            for name, run in runs.items()
            if self.mode == "reuse" or (name not in finished and self.began - run.began < MOST_AGE)
        ]
        if self.mode != "reuse" and (left := [name for name in chosen if name in going]):
            self._say(
                f"{self.path}: a run may go on ({', '.join(sorted({going[name] for name in left}))}), so its answers "
                "are left alone: --noise_journal reuse takes them up"
            )
            chosen = [name for name in chosen if name not in going]
        return {name: runs[name] for name in reversed(chosen)}


class Copies(NamedTuple):
    """The counts of a task's further answers that equal lm-eval's own, so that no others were asked for."""

    asked: int
    """Questions that were asked once more."""
    saved: int
    """Requests that were not sent."""


@dataclass(frozen=True, slots=True)
class AskedFurther:
    """The summary of the further answers of one rank."""

    whole: bool = True
    """True if no further answer is missing."""
    path: Path | None = None
    """The journal, None if none is kept."""
    runs: tuple[str, ...] = ()
    """The run of this rank, and those whose answers it has taken up."""
    taken_up: int = 0
    asked: int = 0
    began: tuple[str, ...] = ()
    """The starting times of the runs whose answers were reused."""
    copied: Mapping[str, Copies] = field(default_factory=dict)
    """Task → its further answers that are copies."""

    @classmethod
    def of(cls, journal: Journal | None, *, whole: bool, copied: Mapping[str, Copies] | None = None) -> AskedFurther:
        copied = dict(copied or {})
        if journal is None:
            return cls(whole, copied=copied)
        runs = (journal.run, *journal.taken) if journal.asked or journal.taken else ()
        return cls(
            whole, journal.path, runs, journal.taken.total(), journal.asked, tuple(journal.began_earlier), copied
        )


def told(summaries: Iterable[AskedFurther], mode: str) -> dict[str, Any] | None:
    """Return the journals' mode, counts and dates, summed over ranks, for the results file. None if there is none."""
    kept = [summary for summary in summaries if summary.path is not None]
    if not kept:
        return None
    return {
        "mode": mode,
        "taken_up": sum(summary.taken_up for summary in kept),
        "asked": sum(summary.asked for summary in kept),
        "began": sorted({date for summary in kept for date in summary.began}),
    }


def sentence(block: Mapping[str, Any] | None) -> str | None:
    """Return a sentence on how many answers were reused, None if none were."""
    if block is None or not block["taken_up"]:
        return None
    dates = " and ".join(date[:16].replace("T", " ") for date in block["began"])
    answers = "answer" if block["taken_up"] == 1 else "answers"
    return f"taken up: {block['taken_up']:,} {answers} of {dates}"


def close(summaries: Iterable[AskedFurther]) -> None:
    """Mark the run as finished in the journals of all ranks, if all got every answer."""
    ended = list(summaries)
    if not all(summary.whole for summary in ended):
        return
    for summary in ended:
        if summary.path is not None and summary.runs:
            with suppress(OSError):
                handle = _opened(summary.path)
                try:
                    _write(handle, {"finished": list(summary.runs)})
                finally:
                    os.close(handle)


def _opened(path: Path) -> int:
    """Open a journal for appending, its last line completed if it was cut. Return the descriptor."""
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(path, flags, 0o600)
    size = os.fstat(handle).st_size
    if size:
        os.lseek(handle, size - 1, os.SEEK_SET)
        if os.read(handle, 1) != b"\n":
            os.write(handle, b"\n")
    return handle


def _write(handle: int, row: Mapping[str, Any]) -> None:
    """Write one JSON line in a single call, so that lines of two runs do not mix. Raise OSError if it is cut."""
    data = json.dumps(row).encode() + b"\n"
    if os.write(handle, data) != len(data):
        raise OSError(0, "the line was cut: is the disk full?")


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from (line for line in file if line.strip())
    except OSError:
        return


def _quiet_for(path: Path) -> timedelta:
    """Return the time since a journal file was last changed. The maximum if there is none."""
    try:
        return timedelta(seconds=max(0.0, time.time() - path.stat().st_mtime))
    except OSError:
        return timedelta.max


def _still_running(host: str, process: int, quiet: timedelta) -> str | None:
    """Return words on where another run still seems to be running, None if it has ended.

    Args:
        host: its machine.
        process: its process there. Another program may have the number by now.
        quiet: how long nothing was written.
    """
    if host != platform.node():
        return f"{host} wrote here less than {QUIET.seconds // 60} minutes ago" if quiet < QUIET else None
    if process == os.getpid():
        return None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass  # it is somebody else's
    return f"process {process} of this machine"

"""The map over files: in this process, on local processes, or on a Dask cluster.

With any reader, the answers are the same to the last bit and in the order of the files. Scores travel without loss.
What fails on a worker is read once more here, so that the outcome is this process's.
"""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ..._version import __version__
from ...data.questions import CONTENT_KEYS, Questions
from ...data.scores import CorpusScores, ReadOptions, Run, Scores
from ...errors import InputError
from ...io.joining import travelling
from ...io.paths import reason
from ...io.protocol import PartRead
from ...io.registry import ReadUnit, read_unit

if TYPE_CHECKING:
    from distributed import Client


DEATHS = 3
"""Processes that may die of one file, perhaps by chance, before it is given up."""
CONNECT = 10
"""Seconds in which a scheduler has to answer."""


Reply: TypeAlias = PartRead | InputError
Replies: TypeAlias = Generator[tuple[int, Reply | str], None, None]
"""The number of a unit and its answer, as they come, or the reason why a worker has none, whatever it raised."""
Watch: TypeAlias = Callable[[Iterable[Any], int], Iterable[Any]]


def read_units(
    units: Sequence[ReadUnit],
    options: ReadOptions,
    *,
    jobs: int | str = 1,
    watch: Watch = lambda answers, total: answers,
    say: Callable[[str], None] = lambda text: None,
) -> list[Reply]:
    """Read files here (1 job), on `jobs` processes or a Dask cluster. Return `PartRead` or InputError each, in order.

    Args:
        units: see `adapters.ReadUnit`.
        options: how they are read.
        jobs: number of processes, or the address of the scheduler of a Dask cluster.
        watch: passes the answers on, as they come, with their number.
        say: is told what a user should know.

    Returns:
        The answers in the order of the units.

    Raises:
        InputError: there is no cluster, or workers die whenever they read a certain file.
    """
    if isinstance(jobs, str):
        answers = _on_cluster(units, options, jobs, say)
    elif jobs > 1 and len(units) > 1:
        answers = _on_processes(units, options, jobs)
    else:
        answers = ((i, read_small(unit, options)) for i, unit in enumerate(units))
    by_unit: dict[int, Reply] = {}
    rescued: list[str] = []
    interner = Interner()
    with closing(answers):  # also when the watcher or Ctrl-C ends it
        for i, answer in watch(answers, len(units)):
            if isinstance(answer, str):
                why, answer = answer, read_small(units[i], options)
                if isinstance(answer, PartRead):
                    rescued.append(f"{units[i]}: {why}")
            if isinstance(answer, PartRead):
                answer = replace(answer, runs=tuple(map(interner.shared, answer.runs)))
            by_unit[i] = answer
    if rescued:
        say(
            f"{len(rescued)} of {len(units)} files failed on a worker and were read by this process instead. Do all "
            f"workers see the same files? The first: {rescued[0]}"
        )
    return [by_unit[i] for i in range(len(units))]


def read_small(unit: ReadUnit, options: ReadOptions) -> Reply:
    """Read one file without corpus metrics' data, for a small reply. An InputError is returned bare, not raised."""
    answer = read_unit(unit, options)
    if isinstance(answer, InputError):
        answer.__cause__ = answer.__context__ = None
        return answer.with_traceback(None)
    return replace(answer, runs=tuple(map(travelling, answer.runs)))


def _work(unit: ReadUnit, options: ReadOptions) -> PartRead | str:
    """Read one file in a worker process. Any exception comes back as its message, as it may not unpickle."""
    try:
        answer = read_small(unit, options)
    except Exception as error:  # noqa: BLE001 - the calling process finds out what it is
        return f"{type(error).__name__}: {reason(error)}"
    return reason(answer) if isinstance(answer, InputError) else answer


def _worker_replies(
    executor: Executor, units: Mapping[int, ReadUnit], options: ReadOptions, dead: type[Exception]
) -> Iterator[tuple[int, PartRead | str | None]]:
    """Yield (number, `PartRead` or error text) as workers finish. None: the worker died, raising exception `dead`."""
    futures: dict[Future[PartRead | str], int] = {}
    with _held_interrupts(), suppress(BrokenExecutor):
        for i, unit in units.items():
            futures[executor.submit(_work, unit, options)] = i
    for future in as_completed(list(futures)):
        i, error = futures.pop(future), future.exception()
        yield i, None if isinstance(error, dead) else future.result() if error is None else reason(error)


# local processes


def _on_processes(units: Sequence[ReadUnit], options: ReadOptions, jobs: int) -> Replies:
    """Yield (number, reply) of files read in a process pool. After a death use one process. Refuse after 3 deaths."""
    waiting, deaths = dict(enumerate(units)), Counter[int]()
    while waiting:
        with _pool(min(jobs, len(waiting))) as pool:
            for i, answer in _worker_replies(pool, dict(waiting), options, BrokenExecutor):
                if answer is not None:
                    del waiting[i]
                    yield i, answer
        jobs, reading = 1, next(iter(waiting), -1)
        deaths[reading] += 1
        if waiting and deaths[reading] >= DEATHS:
            raise InputError(
                f"{units[reading]}: every process that was to read it died, perhaps for want of memory. Leave the file "
                "out, or read it on a larger machine"
            )


@contextmanager
def _pool(size: int) -> Iterator[Executor]:
    """Yield a pool of `size` newly spawned processes, which are ended after the block, or killed on an error."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    before = set(multiprocessing.active_children())
    with _unwinding():
        pool = ProcessPoolExecutor(size, multiprocessing.get_context("spawn"))
        try:
            yield pool
        except BaseException:
            for process in set(multiprocessing.active_children()) - before:
                process.kill()
            raise
        finally:
            with _held_interrupts():
                pool.shutdown(cancel_futures=True)


@contextmanager
def _unwinding() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt within the block, in the main thread, and not if Ctrl-C is ignored."""
    if not callable(signal.getsignal(signal.SIGINT)) or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _held_interrupts() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block, and block it in processes started within. No effect on Windows."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# a Dask cluster


def _on_cluster(units: Sequence[ReadUnit], options: ReadOptions, address: str, say: Callable[[str], None]) -> Replies:
    """Read files on a Dask cluster, and yield (number, reply). Refuse a file that kills workers, and a lost link."""
    with _client(address, say) as client:
        from distributed import KilledWorker

        executor: Executor = client.get_executor(pure=False)  # type: ignore[no-untyped-call]
        try:
            for i, answer in _worker_replies(executor, dict(enumerate(units)), options, KilledWorker):
                if answer is None:
                    raise InputError(
                        f"{units[i]}: every worker that was to read it died. Give the workers more memory, or leave "
                        "out this file or those next to it"
                    )
                yield i, answer
        except CancelledError:
            raise InputError(f"`jobs` {address}: the connection to the scheduler was lost") from None
        finally:
            executor.shutdown(wait=False)


@contextmanager
def _client(address: str, say: Callable[[str], None]) -> Iterator[Client]:
    """Yield a connection to a Dask cluster. Refuse without Dask, without a scheduler, and other versions on workers.

    Raises:
        InputError: dask is not installed, no scheduler answers, or a worker has another version.
    """
    import logging

    try:
        from distributed import Client
        from distributed.comm.addressing import get_address_host_port
    except ImportError as error:
        raise InputError(f"`jobs` {address} needs Dask ({error}): pip install 'harness-noise[dask]'") from None
    level, lost = logging.root.manager.disable, False
    logging.disable()  # Dask logs what it recovers from; what matters is said here, in one line
    try:
        try:
            get_address_host_port(address)  # a client for nonsense does not go quietly
            client: Any = Client(address, timeout=CONNECT, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise InputError(
                f"`jobs` {address}: no scheduler answers there ({reason(error)}). Give the address that "
                "`dask scheduler` prints, such as tcp://10.0.0.1:8786"
            ) from None
        with client:
            workers = client.get_versions(packages=["harness_noise"])["workers"]
            for worker, versions in workers.items():
                theirs = versions["packages"].get("harness_noise")
                if theirs != __version__:
                    have = "no harness-noise" if theirs is None else f"harness-noise {theirs}"
                    raise InputError(
                        f"`jobs` {address}: worker {worker} has {have}, and here is {__version__}: install the same "
                        "version, with the extras that the files need, on all workers"
                    )
            if not workers:
                say(f"`jobs` {address}: the cluster has no workers yet: waiting for one")
            try:
                yield client
            finally:
                lost = client.status != "running"
    finally:
        if not lost:  # else its threads complain until the process ends
            logging.disable(level)


# what travels


class Interner:
    """Equal sequences of several runs are one object: ten thousand logs do not hold ten thousand copies."""

    def __init__(self) -> None:
        self.sequences: dict[tuple[int, str, str], Sequence[str]] = {}
        """The first of each length, first and last item."""
        self.questions: dict[tuple[object, ...], Questions] = {}

    def shared(self, run: Run) -> Run:
        """Return the run with strings and questions that equal earlier ones replaced by these, and without logs."""
        measured: list[Scores | CorpusScores] = [*run.scores, *run.parts, *run.corpus]
        unique = {id(part.questions): part.questions for part in measured}
        questions = {key: self._questions(own) for key, own in unique.items()}

        def in_common(parts: Iterable[Any]) -> tuple[Any, ...]:
            return tuple(
                replace(part, questions=questions[id(part.questions)], clusters=self._earlier_equal(part.clusters))
                for part in map(self._with_texts, parts)
            )

        return replace(run, scores=in_common(run.scores), parts=in_common(run.parts), corpus=in_common(run.corpus))

    def _with_texts(self, part: Any) -> Any:
        """Return the scores with equal lists of ids in their answer texts shared with earlier runs."""
        if not isinstance(part, Scores) or part.answers is None:
            return part
        return replace(part, answers=part.answers.shared(self._earlier_equal))

    def _questions(self, own: Questions) -> Questions:
        """Return the questions without their log. Those equal to an earlier run's become the same object."""
        unread = () if own.documents is None else ("inputs", "texts")
        names = ("keys", "inputs", "targets", "prompts", "texts")
        same: dict[str, Any] = {
            name: None if name in unread else self._earlier_equal(getattr(own, name)) for name in names
        }
        kept = replace(own, log=None, **same)
        if unread and own.kind not in CONTENT_KEYS:
            return kept
        # of questions with equal hashes one file will do to read the texts; a field can tell of the run
        return self.questions.setdefault((own.kind, *map(id, (*same.values(), own.fields))), kept)

    def _earlier_equal(self, value: Sequence[str] | None) -> Any:
        """Return the first sequence seen with this length and ends if it equals this one, else this one."""
        if not value:
            return value
        first = self.sequences.setdefault((len(value), value[0], value[-1]), value)
        return first if first == value else value

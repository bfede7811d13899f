"""Sessions of lm-eval runs, kept apart in threads, tasks and child processes.

`lm_eval.evaluator` has one wrapper of ours while a session is open. The wrapper asks the context of
its caller (a thread's, an asyncio task's) for the session, so that two of them never share settings.
"""

from __future__ import annotations

import inspect
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from typing import Any

from harness_noise.errors import InputError, error_message

from .hook import OuterCall, Session, asked_part, check_before, outer_call, wrap
from .options import Options

log = logging.getLogger("harness_noise")
_entered: ContextVar[tuple[Session, ...]] = ContextVar("harness_noise_sessions", default=())
"""The sessions that this context has entered, the innermost last."""
_running: ContextVar[bool] = ContextVar("harness_noise_running", default=False)
"""True inside `evaluate`. Another program's wrapper between two of ours then does not count as a second run."""
_open: list[Session] = []
_lock = threading.Lock()


@contextmanager
def noise(**options: Any) -> Iterator[Session]:
    """Within the block, add error bars to results of `lm_eval.simple_evaluate` in this context. Refuse wrong options.

    A thread of a pool takes the session of its process, if only one is open. A child process has none. A function
    that was imported before (`from lm_eval import evaluate`) is not seen; call `lm_eval.evaluate`.

    Args:
        **options: `repeats` (K ≥ 1, or "auto"), `cluster` (a SPEC, a list, or task → SPEC), `groups` (name → glob of
            tasks), `rows`, `reseed`, `journal` ("auto", "reuse" or "off"); `until` ("decided" or "se=0.01"), `against`
            (a RUN), `metric`, `sample` (a share or a number), `complete` (a RUN or a list), and all that lm-eval's help
            lists as `--noise_…`; and of the settings `level`, `se`, `interval`, `seed`.

    Yields:
        The Session: `analysis` after a run.

    Raises:
        InputError: an option that cannot be used; or, before a run starts, a cluster field that the
            documents do not have.
    """
    with installed(Session(Options.of(options))) as session:
        yield session
    if not session.runs and session.process == os.getpid():
        session.say(
            "no run passed by, so nothing was added. Inside noise() and in this process, call lm_eval.simple_evaluate "
            "or lm_eval.evaluate by these names (a name imported before noise() and a child process are not seen)"
        )


@contextmanager
def installed(session: Session) -> Iterator[Session]:
    """Within the block, wrap lm-eval's functions so that runs in this context get error bars by `session`. Yield it."""
    with _lock:
        if not _open:
            _wrap_names()
        _open.append(session)
    _entered.set((*_entered.get(), session))
    try:
        yield session
    finally:
        _entered.set(tuple(other for other in _entered.get() if other is not session))
        with _lock:
            _open.remove(session)
            if not _open:
                _unwrap_names()


def current() -> Session | None:
    """Return the session for a run in this context, None without. Refuse if several could be meant.

    Raises:
        InputError: this context has entered none, and several are open.
    """
    mine = [session for session in _open if session.process == os.getpid()]
    for session in reversed(_entered.get()):
        if session in mine:
            return session
    if len(mine) > 1:
        raise InputError(
            f"{len(mine)} sessions of noise() are open in this process, and this thread has entered none of them, so "
            "its run cannot be told which options to take. Open noise() in the thread that runs lm-eval, or start the "
            "thread with the context of the one that did: contextvars.copy_context().run"
        )
    return mine[0] if mine else None


def _evaluate(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return lm-eval's `evaluate` wrapped to add error bars if a session is open when it is called."""

    @wraps(original)
    def evaluate(*args: Any, **kwargs: Any) -> Any:
        function = original
        try:
            asked_part.set(None)
            session = None if _running.get() else current()
            function = original if session is None else wrap(original, session)
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours must not stop the run
            _without_noise(error)
        if function is original:
            return original(*args, **kwargs)
        outermost = _running.set(True)
        try:
            return function(*args, **kwargs)
        finally:
            _running.reset(outermost)

    return evaluate


def _simple_evaluate(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @wraps(original)
    def simple_evaluate(*args: Any, **kwargs: Any) -> Any:
        call = None
        try:
            session = None if _running.get() else current()
            if session is not None:
                call = OuterCall(signature.bind(*args, **kwargs).arguments)
                check_before(session, call.arguments)
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 - wrong arguments, too: lm-eval says what is wrong with them
            _without_noise(error)
        before = outer_call.set(call)
        try:
            results = original(*args, **kwargs)
            if call is None or call.run is None:
                return results
            try:
                return call.run.complete(results)
            except BaseException as error:  # noqa: BLE001 - the model has run
                return call.run.without_noise(results, error)
        finally:
            outer_call.reset(before)

    return simple_evaluate


def _without_noise(error: Exception) -> None:
    with suppress(Exception):
        why = error_message(error)
        log.warning("harness-noise: this run may lack its noise (%s). lm-eval's own result is untouched", why)


def _add_env_info(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return lm-eval's `add_env_info` wrapped to also record which samples were asked."""

    @wraps(original)
    def add_env_info(storage: Any, *args: Any, **kwargs: Any) -> Any:
        part = asked_part.get()
        asked_part.set(None)
        if part is not None and isinstance(storage, dict) and isinstance(storage.get("config"), dict):
            storage["config"]["samples"] = part
        return original(storage, *args, **kwargs)

    return add_env_info


_WRAPPERS = {"evaluate": _evaluate, "simple_evaluate": _simple_evaluate, "add_env_info": _add_env_info}
_wrapped: dict[str, tuple[Any, Any]] = {}
"""Name → lm-eval's function and ours, while a session is open."""


def _wrap_names() -> None:
    from lm_eval import evaluator

    for name, make in _WRAPPERS.items():
        original = getattr(evaluator, name, None)
        if original is not None:
            _wrapped[name] = original, make(original)
            setattr(evaluator, name, _wrapped[name][1])


def _unwrap_names() -> None:
    from lm_eval import evaluator

    for name, (original, ours) in _wrapped.items():
        if getattr(evaluator, name) is ours:  # else another program's wrapper calls ours, which then does nothing
            setattr(evaluator, name, original)
    _wrapped.clear()

"""Raise an exception at any call of a function of ours while a harness runs.

A first run lists the calls; then each can be made to fail, at its entry or at its return, by the
interpreter's own profiling hook, so that nothing has to be patched and nothing of ours is left out.
"""

from __future__ import annotations

import dis
import errno
import inspect
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

import harness_noise
import harness_noise_adapters

T = TypeVar("T")
OURS = tuple(path + os.sep for package in (harness_noise, harness_noise_adapters) for path in package.__path__)
SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
WHOLE = bool(os.environ.get("HARNESS_NOISE_WHOLE_WALK"))
"""Whether every first and last call fails, or only a pinned share of them."""


class Point(NamedTuple):
    """One call of a function of ours."""

    file: str
    name: str
    line: int
    event: str
    """`call`: before its first line (of a generator also where it goes on); `return`: after its last."""
    n: int
    """How many such calls came before."""

    def __str__(self) -> str:
        return f"{self.file}:{self.name}:{self.line} {self.event} {self.n}"


@cache
def _place(code: CodeType) -> tuple[str, str, int] | None:
    for folder in OURS:
        if code.co_filename.startswith(folder):
            return code.co_filename[len(folder) :], code.co_qualname, code.co_firstlineno
    return None


def _is_point(code: CodeType, event: str) -> bool:
    """A generator that is left in the middle has not returned."""
    return event == "call" or (event == "return" and not code.co_flags & SUSPENDS)


@cache
def _first_yield(code: CodeType) -> int:
    return next(item.offset for item in dis.get_instructions(code) if item.opname == "YIELD_VALUE")


def _goes_on(frame: FrameType) -> bool:
    """Whether a generator has yielded before: it goes on, or it was dropped, by an earlier fault too, and is closed."""
    code = frame.f_code
    return bool(code.co_flags & inspect.CO_GENERATOR) and frame.f_lasti >= _first_yield(code)


def _profiled(callback: Callable[[FrameType, str, Any], None], function: Callable[[], T]) -> T:
    threading.setprofile(callback)
    sys.setprofile(callback)
    try:
        return function()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def points(function: Callable[[], Any]) -> list[Point]:
    """The first and the last of the calls of each function of ours during `function`, at entry and at return."""
    seen: Counter[tuple[str, str, int, str]] = Counter()
    resumed = set()

    def note(frame: FrameType, event: str, _arg: Any) -> None:
        place = _place(frame.f_code)
        if place is not None and _is_point(frame.f_code, event):
            seen[*place, event] += 1
            if event == "call" and frame.f_code.co_flags & inspect.CO_GENERATOR:
                resumed.add((*place, event))

    _profiled(note, function)
    assert seen, "no function of ours was called: no exception can be raised anywhere"
    # a generator that is dropped early is entered once more, where nobody can see it fail
    last = {key: 0 if key in resumed else count - 1 for key, count in seen.items()}
    return [Point(*key, n) for key in seen for n in dict.fromkeys((0, last[key]))]


def raising(point: Point, error: BaseException, function: Callable[[], T]) -> tuple[T, bool]:
    """What `function` gives where `error` is raised at one point, and whether it came to that."""
    seen = 0
    fired = False
    name = point.name.rsplit(".", 1)[-1]

    def strike(frame: FrameType, event: str, _arg: Any) -> None:
        nonlocal seen, fired
        if event != point.event or frame.f_code.co_name != name or fired:
            return
        if _place(frame.f_code) == point[:3] and _is_point(frame.f_code, event):
            if point.n == 0 and event == "call" and _goes_on(frame):
                return
            if seen == point.n:
                fired = True
                raise error
            seen += 1

    return _profiled(strike, function), fired


def share(everything: Iterable[Point]) -> list[Point]:
    """Every function of the adapters once, by turns at its entry and its return, and some of the kernel's, which are
    all called from under one roof; all points where the whole walk is asked for."""
    if WHOLE:
        return list(everything)
    by_function: dict[tuple[str, str, int], list[Point]] = {}
    for point in sorted(everything):
        by_function.setdefault(point[:3], []).append(point)
    chosen = [points[i % len(points)] for i, points in enumerate(by_function.values())]
    kernel = [point for point in chosen if not point.file.startswith(("lm_eval_harness/", "inspect_logs/"))]
    return [point for point in chosen if point not in kernel] + kernel[::6]


class WordlessError(Exception):
    """An exception that cannot be printed."""

    def __str__(self) -> str:
        raise ValueError("no words")


OTHERS: tuple[Callable[[], Exception], ...] = (
    MemoryError, RecursionError, lambda: AssertionError("injected fault"), lambda: KeyError("injected fault"),
    lambda: OSError(errno.ENOSPC, "No space left on device"),
    lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "injected fault"), lambda: StopIteration("injected fault"),
    WordlessError,
)  # fmt: skip

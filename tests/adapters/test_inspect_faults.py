"""An exception at every call of ours in a live Inspect run: the eval ends as without us, every time."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support import fault_walk as walk
from support.inspect_evals import NAMES, unwrap_all
from support.slow import rest_slow

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")


FAULT = "injected fault"
ON = {"noise": True, "noise_cluster": "passage"}


class World:
    """Two small evals, with Inspect's own function for the results or a stranger in its place."""

    def __init__(self, canned: SimpleNamespace, folder: Path) -> None:
        self.canned = canned
        self.folder = folder
        self.runs = 0

    def task(self, **options: Any) -> Any:
        from inspect_ai.scorer import match

        return self.canned.task(self.canned.samples(4, 2), scorer=[match(), both()], **options)

    def eval(self, metadata: dict[str, Any] | None = None, **options: Any) -> Any:
        """One eval: what it left, as plain data, and our warnings.

        Without the running scores on the screen: how often these are computed depends on the machine.
        """
        self.runs += 1
        options = {"score_display": False, **options}
        with listening() as said:
            (log,) = self.canned.eval(self.task(), self.folder / str(self.runs), epochs=2, metadata=metadata, **options)
        return SimpleNamespace(log=log, said=said, **known(log))


def known(log: Any) -> dict[str, Any]:
    """The native part of a log, the same from its file, and what is ours in both."""
    from inspect_ai.log import read_eval_log

    from harness_noise_adapters.inspect_logs import hook

    there = read_eval_log(log.location)
    assert hook.current.get() is None
    assert not list(Path(log.location).parent.glob(".*"))
    return {"native": native(log), "ours": ours(log), "native_there": native(there), "ours_there": ours(there)}


def native(log: Any) -> Any:
    scores = []
    for es in log.results.scores:
        data = es.model_dump(mode="json")
        data["metrics"] = {name: value for name, value in data["metrics"].items() if name not in NAMES}
        scores.append(data)
    samples = [(item.id, item.epoch, {k: v.value for k, v in item.scores.items()}) for item in log.samples]
    reductions = [item.model_dump(mode="json") for item in log.reductions]
    rest = log.results.model_dump(mode="json", exclude={"scores"})
    return json.loads(json.dumps([log.status, scores, samples, reductions, rest], allow_nan=False))


def ours(log: Any) -> list[dict[str, Any]]:
    out = []
    for es in log.results.scores:
        found = {name: metric.model_dump() for name, metric in es.metrics.items() if name in NAMES}
        assert all(math.isfinite(metric["value"]) for metric in found.values())
        assert list(es.metrics)[len(es.metrics) - len(found) :] == list(found)
        out.append(found)
    return out


@contextmanager
def listening() -> Iterator[list[str]]:
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    loggers = [logging.getLogger(name) for name in ("harness_noise", "inspect_ai.hooks._hooks")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield said
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


def both() -> Any:
    from inspect_ai.scorer import Score, mean, scorer, stderr

    @scorer(metrics={"*": [mean(), stderr()]}, name="both")
    def build() -> Any:
        async def score(state: Any, target: Any) -> Any:
            right = float(state.output.completion == "yes")
            return Score(value={"x": right, "y": 1 - right / 2})

        return score

    return build()


@pytest.fixture(scope="module")
def world(canned: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(canned, tmp_path_factory.mktemp("faults"))


@pytest.fixture(params=["wrapped", "public way"])
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Through our wrapper, or, where Inspect's function is another one, by its public functions."""
    from inspect_ai._eval.task import run

    unwrap_all()
    original = run.eval_results
    if request.param == "public way":
        monkeypatch.setattr(run, "eval_results", lambda **everything: original(**everything))
    yield request.param
    unwrap_all()


@pytest.fixture(scope="module")
def plain(world: World) -> Any:
    out = world.eval()
    assert not any(out.ours)
    return out


def unlike(found: Any, plain: Any, whole: Any) -> list[str]:
    """In what an eval is not the one without us, but for additions that are whole."""
    out = []
    for name in ("native", "native_there"):
        if getattr(found, name) != plain.native:
            out.append(name)
    for name in ("ours", "ours_there"):
        if getattr(found, name) not in (whole.ours, plain.ours):
            out.append(f"{name}: {[list(item) for item in getattr(found, name)]}")
    return out


def problems(found: Any, plain: Any, whole: Any, fired: bool) -> list[str]:
    out = unlike(found, plain, whole) + ([] if fired else ["no such call"])
    # Inspect asks for results while a task goes on, too; what went wrong then has gone with them
    told = sum(FAULT in text for text in found.said) == 1 or (not found.said and found.ours == whole.ours)
    return out if told else [*out, f"said: {found.said}"]


def inner(calls: list[walk.Point]) -> list[walk.Point]:
    """Without the entry and the return of what Inspect itself calls in place of its own function: no statement of
    ours has run, or none is left, and an exception there could come from the interpreter only (a signal)."""
    return [point for point in sorted(calls) if point.name != "_with_noise.<locals>.eval_results"]


@pytest.mark.parametrize("points", rest_slow([3, 12]))
def test_an_exception_anywhere(world: World, plain: Any, route: str, points: int) -> None:
    """Whole evals at a share of the points; at all of them where that is asked for."""
    world.eval(ON)
    whole = world.eval(ON)
    assert unlike(whole, plain, whole) == []
    assert all(list(item) == NAMES for item in whole.ours)
    calls = inner(walk.points(lambda: world.eval(ON)))
    bad = []
    for point in calls if walk.WHOLE else calls[:: len(calls) // points]:
        found, fired = walk.raising(point, RuntimeError(FAULT), lambda: world.eval(ON))
        bad += [f"{point}: {problem}" for problem in problems(found, plain, whole, fired)]
    assert bad == []


class Replay:
    """The calls that Inspect makes of us in one eval, with the arguments of a real one, and without the rest."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        from inspect_ai._eval.task import run

        from harness_noise import inspect_ext

        self.run = run
        self.given: dict[str, Any] = {}
        hooks = inspect_ext.NoiseHooks
        with monkeypatch.context() as patch:
            for name in ("on_task_start", "on_task_end", "on_run_end"):
                patch.setattr(hooks, name, self._kept(name))
            native = run.eval_results
            patch.setattr(run, "eval_results", lambda **given: native(**self._last(given)))
            world.eval(ON)
        self.hooks = hooks()

    def _last(self, given: dict[str, Any]) -> dict[str, Any]:
        self.given["results"] = given
        return given

    def _kept(self, name: str) -> Any:
        async def keep(_hooks: Any, data: Any) -> None:
            self.given[name] = data

        return keep

    def __call__(self) -> SimpleNamespace:
        async def calls() -> Any:
            await self._emit("on_task_start", said)
            out = self.run.eval_results(**self.given["results"])[0]
            end = self.given["on_task_end"]
            end.log.results = out
            await self._emit("on_task_end", said)
            await self._emit("on_run_end", said)
            return out

        with listening() as said:
            results = asyncio.run(calls())
        scores = [es.model_dump(mode="json") for es in results.scores]
        mine = ours(SimpleNamespace(results=results))
        for item in scores:
            item["metrics"] = {name: value for name, value in item["metrics"].items() if name not in NAMES}
        return SimpleNamespace(native=scores, native_there=scores, ours=mine, ours_there=mine, said=said)

    async def _emit(self, name: str, said: list[str]) -> None:
        """Call a hook the way Inspect does: what it raises is a warning."""
        try:
            await getattr(self.hooks, name)(self.given[name])
        except Exception as error:
            said.append(f"Exception calling hook: {type(error).__name__} {error.args}")  # some have no words


@pytest.fixture
def replay(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Replay, Any, Any]]:
    """The calls, what they give with the flag off, and what with it on."""

    unwrap_all()
    out = Replay(world, monkeypatch)
    plain = Replay.__new__(Replay)
    plain.__dict__ |= out.__dict__
    plain.given = out.given | {"on_task_start": SimpleNamespace(spec=SimpleNamespace(metadata=None))}
    off = plain()
    assert not any(off.ours)
    out()
    on = out()
    assert all(list(item) == NAMES for item in on.ours)
    assert on.native == off.native
    assert on.said == []
    yield out, off, on
    unwrap_all()


@pytest.mark.parametrize("every", rest_slow([4, 1]))
def test_an_exception_at_every_call(replay: tuple[Replay, Any, Any], every: int) -> None:
    calls, off, on = replay
    bad = []
    for point in inner(walk.points(calls))[::every]:
        found, fired = walk.raising(point, RuntimeError(FAULT), calls)
        bad += [f"{point}: {problem}" for problem in problems(found, off, on, fired)]
    assert bad == []


@pytest.mark.parametrize("kind", rest_slow(range(len(walk.OTHERS)), quick=2))
def test_other_exceptions(replay: tuple[Replay, Any, Any], kind: int) -> None:
    calls, off, on = replay
    bad = []
    for point in inner(walk.points(calls))[kind :: len(walk.OTHERS)]:
        found, _fired = walk.raising(point, walk.OTHERS[kind](), calls)
        bad += [f"{point}: {problem}" for problem in unlike(found, off, on)]
    assert bad == []


def test_a_panic(replay: tuple[Replay, Any, Any]) -> None:
    class Panic(BaseException):
        """What an extension module in Rust raises."""

    calls, off, on = replay
    (point,) = [point for point in walk.points(calls) if point.name == "gather" and point.event == "call"]
    found, fired = walk.raising(point, Panic(FAULT), calls)
    assert problems(found, off, on, fired) == []
    assert not any(found.ours)


@pytest.mark.parametrize("every", rest_slow([20, 7]))
def test_an_interrupt_is_not_swallowed(replay: tuple[Replay, Any, Any], every: int) -> None:
    calls, off, on = replay
    for point in inner(walk.points(calls))[::every]:
        with pytest.raises(KeyboardInterrupt):
            walk.raising(point, KeyboardInterrupt(), calls)
        # The task that was interrupted is logged when it is collected, for which Inspect sets a context variable; where
        # that happens while one is being set, as when numpy's errstate needs memory, Python 3.11 crashes.
        gc.collect()
        assert unlike(calls(), off, on) == []


def test_a_fault_in_one_of_several_tasks_and_models(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The others keep their error bars, whether they run beside it or after it."""
    from harness_noise_adapters.inspect_logs import hook

    add = hook.add
    asked: list[str] = []

    def breaks(live: Any, *args: Any) -> Any:
        asked.append(f"{live.spec.task} {live.spec.model}")
        if asked[-1] == "one mockllm/beta":
            raise RuntimeError(FAULT)
        return add(live, *args)

    monkeypatch.setattr(hook, "add", breaks)
    for max_tasks in (1, 4):
        with listening() as said:
            logs = world.canned.eval(
                [world.task(name="one"), world.task(name="two")], tmp_path / str(max_tasks),
                model=["mockllm/alpha", "mockllm/beta"], epochs=2, max_tasks=max_tasks, metadata=ON,
            )  # fmt: skip
        assert len(logs) == 4
        for log in logs:
            broken = f"{log.eval.task} {log.eval.model}" == "one mockllm/beta"
            assert log.status == "success"
            assert [bool(item) for item in ours(log)] == [not broken] * 3
        assert len(said) == 1
        assert FAULT in said[0]


def test_a_task_whose_start_fails_does_not_take_the_settings_of_the_one_before(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from harness_noise_adapters.inspect_logs import hook

    start, off = hook.task_start, hook.task_off

    def breaks(data: Any, flag: Any) -> None:
        if data.spec.task == "two":
            raise RuntimeError(FAULT)
        start(data, flag)

    def breaks_too() -> None:
        raise RuntimeError("and again")

    monkeypatch.setattr(hook, "task_start", breaks)
    monkeypatch.setattr(hook, "task_off", breaks_too)
    logs = world.canned.eval(
        [world.task(name=name) for name in ("one", "two", "three")], tmp_path, epochs=2, max_tasks=1, metadata=ON
    )
    monkeypatch.undo()
    off()
    assert {log.eval.task: all(ours(log)) for log in logs} == {"one": True, "two": False, "three": True}


def test_a_full_disk_on_the_public_way(world: World, plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the log is written when there is no more room: the log is what it was."""
    import inspect_ai.log
    from inspect_ai._eval.task import run

    unwrap_all()
    original, write = run.eval_results, inspect_ai.log.write_eval_log
    monkeypatch.setattr(run, "eval_results", lambda **everything: original(**everything))

    def full(log: Any, location: str, *args: Any, **kwargs: Any) -> None:
        data = Path(location).read_bytes()
        Path(location).write_bytes(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device", location)

    monkeypatch.setattr(inspect_ai.log, "write_eval_log", full)
    found = world.eval(ON, log_format="eval")  # a .json log is written as an export writes it, by our own writer
    assert unlike(found, plain, plain) == []
    assert len(found.said) == 1
    assert "No space left on device" in found.said[0]
    monkeypatch.setattr(inspect_ai.log, "write_eval_log", write)
    found = world.eval(ON)
    assert all(found.ours)
    assert found.ours == found.ours_there

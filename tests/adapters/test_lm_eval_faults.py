"""An exception at every call of ours in a live lm-eval run: the run ends as without us, every time."""

from __future__ import annotations

import copy
import functools
import inspect
import json
import logging
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from support.notes import noted

pytest.importorskip("lm_eval")
import lm_eval
from lm_eval import evaluator, utils
from lm_eval.tasks import TaskManager

from harness_noise_adapters.lm_eval_harness import noise
from support import fault_walk as walk
from support import lm_eval_models as toys
from support.lm_eval_world import NATIVE, Ended, Watched, World, leaves, told, unlike
from support.processes import environment
from support.slow import rest_slow

FAULT = "injected fault"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Without lm-eval's 13,000 tasks, and without the log handler that it sets up."""
    import rich.style  # noqa: F401 - draws a random number when it is loaded, for our table after the run

    folder = tmp_path_factory.mktemp("faults")
    (folder / "tmp").mkdir()
    out = World(folder)
    loader = "load" if hasattr(TaskManager, "load") else "load_task_or_group"  # before 0.4.12
    init, load = TaskManager.__init__, getattr(TaskManager, loader)

    def quick(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs | {"include_defaults": False})

    def remembered(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = load(self, *args, **kwargs)
        out.tasks = found["tasks"] if loader == "load" else dict(leaves(found))
        return found

    loggers = [logging.getLogger(), logging.getLogger("lm_eval")]
    before = [(item, list(item.handlers), item.propagate, item.level) for item in loggers]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TaskManager, "__init__", quick)
        patch.setattr(TaskManager, loader, remembered)
        patch.setattr(utils, "_LOGGING_CONFIGURED", True, raising=False)
        out.manager = TaskManager(include_path=str(folder))
        patch.setattr(tempfile, "tempdir", str(folder / "tmp"))
        yield out
    for item, handlers, propagate, level in before:
        item.handlers[:], item.propagate = handlers, propagate
        item.setLevel(level)


OPTIONS = {"repeats": 2, "cluster": "gen=template", "groups": {"all": "g*"}}


@pytest.fixture(scope="module")
def plain(world: World) -> Ended:
    return world.evaluate()


@pytest.fixture(scope="module")
def calls(world: World, plain: Ended) -> list[walk.Point]:
    """What there is to fail in a run that has everything."""
    world.evaluate(**OPTIONS)  # what is imported on the way may draw a random number
    out = world.evaluate(**OPTIONS)
    assert unlike(out, plain) == []
    assert {item["task"] for item in out.results["noise"]["estimates"]} == {"gen", "choice", "both", "all"}
    return walk.points(lambda: world.evaluate(**OPTIONS))


BEFORE = ("options.py", "asking.py", "clusters.py:ClusterSpec.parse", "clusters.py:_check_ways",
          "clusters.py:ways_of", "clusters.py:combine_specs", "settings.py:Settings.__post_init__",
          "settings.py:Settings._check", "settings.py:counts_as_zero", "choices.py:Register.check", "errors.py:check_",
          "sessions.py:noise", "sessions.py:installed",
          "sessions.py:_wrap_names", "sessions.py:_unwrap_names", "sessions.py:_evaluate:",
          "sessions.py:_simple_evaluate:", "sessions.py:_add_env_info:")  # fmt: skip
"""Calls that the user makes before lm-eval is called: what is wrong there is raised there. A `with` block of ours
is left by one assignment, so there is nothing in it that could fail."""

DOORS = ("hook.py:wrap.<locals>.evaluate", "sessions.py:_evaluate.<locals>.evaluate",
         "sessions.py:_simple_evaluate.<locals>.simple_evaluate", "sessions.py:_add_env_info.<locals>.add_env_info",
         "repeats.py:Asking._answering.<locals>.answers")  # fmt: skip
"""What lm-eval itself calls: no statement of ours has run at its entry, and none is left at its return. An exception
there could come from the interpreter only (a signal), and ends a run as it does without us."""


def exempt(point: walk.Point) -> bool:
    place = f"{point.file.rsplit('/', 1)[-1]}:{point.name}:"
    return place.startswith(BEFORE) or (place.startswith(DOORS) and "<locals>" not in place.split(".<locals>.", 1)[1])


@pytest.mark.parametrize("every", rest_slow([8, 1]))
def test_an_exception_anywhere(world: World, plain: Ended, calls: list[walk.Point], every: int) -> None:
    bad = []
    for point in walk.share(point for point in calls if not exempt(point))[::every]:
        ended, fired = walk.raising(point, RuntimeError(FAULT), lambda: world.evaluate(**OPTIONS))
        problems = unlike(ended, plain) + ([] if fired else ["no such call"])
        if not told(world, ended, FAULT):
            problems.append(f"said: {ended.said}")
        bad += [f"{point}: {problem}" for problem in problems]
    assert bad == []


def some(calls: list[walk.Point], count: int) -> list[walk.Point]:
    """A share of the points that is the same every time, from the whole length of a run."""
    kept = [point for point in calls if not exempt(point)]
    return kept[:: max(1, len(kept) // (len(kept) if walk.WHOLE else count))]


@pytest.mark.parametrize("kind", rest_slow(range(len(walk.OTHERS))))
def test_other_exceptions(world: World, plain: Ended, calls: list[walk.Point], kind: int) -> None:
    bad = []
    for point in some(calls, 12)[kind % 3 :: 2]:
        ended, fired = walk.raising(point, walk.OTHERS[kind](), lambda: world.evaluate(**OPTIONS))
        bad += [f"{point}: {problem}" for problem in unlike(ended, plain) + ([] if fired else ["no such call"])]
        if world.session.analysis is None and not any("own result is untouched" in text for text in ended.said):
            bad.append(f"{point}: nothing is said")
    assert bad == []


@pytest.mark.parametrize("kind", rest_slow([KeyboardInterrupt, SystemExit]))
def test_what_ends_a_process_is_not_swallowed(world: World, plain: Ended, calls: list[walk.Point], kind: type) -> None:
    """But for an interrupt once lm-eval has all answers of its own: its run is saved."""
    bad, ended = [], []
    for point in some(calls, 12):
        try:
            walk.raising(point, kind(), lambda: ended.append(world.evaluate(**OPTIONS)))
        except kind:
            bad += [f"{point}: {what}" for what in world.left()]
        else:
            within = kind is KeyboardInterrupt and world.session.interrupted
            bad += [f"{point}: {what}" for what in unlike(ended[-1], plain)] if within else [f"{point}: swallowed"]
    assert bad == []


# ---- the model, while the further answers are asked for ----
class Panic(BaseException):
    """What an extension module in Rust raises."""


def fail(error: BaseException) -> Any:
    def fault(requests: Any) -> Any:
        random.random()
        np.random.random()
        raise error

    return staticmethod(fault)


def endless(requests: Any) -> Any:
    return endless(requests)


FURTHER = {
    "connection": (fail(ConnectionError("the server is gone")), "ConnectionError: the server is gone"),
    "timeout": (fail(TimeoutError()), "TimeoutError"),
    "memory": (fail(MemoryError()), "MemoryError"),
    "recursion": (staticmethod(endless), "RecursionError"),
    "panic": (fail(Panic("unwrap on None")), "Panic: unwrap on None"),
    "wordless": (fail(walk.WordlessError()), "WordlessError"),
    "fewer": (staticmethod(lambda requests: [" 1"] * (len(requests) - 1)), "2 answers to 3 requests"),
    "none": (staticmethod(lambda requests: None), "TypeError"),
    "interrupt": (fail(KeyboardInterrupt()), "Interrupt again to stop it"),
}


@pytest.mark.parametrize("name", FURTHER)
def test_a_model_that_fails_on_further_answers(
    world: World, plain: Ended, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    fault, words = FURTHER[name]
    monkeypatch.setattr(Watched, "fault", fault)
    ended = world.evaluate(**OPTIONS)
    assert unlike(ended, plain) == []
    assert len([text for text in ended.said if words in text]) == 1
    (found,) = [
        item for item in ended.results["noise"]["estimates"] if item["task"] == "gen" and item["scorer"] == "strict"
    ]
    assert (found["repeats_max"], found["se_prediction"]) == (1, None)
    assert all(len(row["resps"][0]) == 1 for row in ended.samples["gen"])


def test_a_panic_when_the_model_has_run(world: World, plain: Ended, calls: list[walk.Point]) -> None:
    (point,) = [point for point in calls if point.name == "collect" and point.event == "call"]
    ended, fired = walk.raising(point, Panic("unwrap on None"), lambda: world.evaluate(**OPTIONS))
    assert fired
    assert unlike(ended, plain) == []
    assert told(world, ended, "Panic: unwrap on None")


def test_an_interrupt_when_the_model_has_run(world: World, plain: Ended, calls: list[walk.Point]) -> None:
    (point,) = [point for point in calls if point.name == "collect" and point.event == "call"]
    ended, _ = walk.raising(point, KeyboardInterrupt(), lambda: world.evaluate(**OPTIONS))
    assert world.session.interrupted
    assert unlike(ended, plain) == []
    assert told(world, ended, "KeyboardInterrupt")


def test_a_model_that_leaves_the_process(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watched, "fault", fail(SystemExit(3)))
    with pytest.raises(SystemExit):
        world.evaluate(**OPTIONS)
    assert world.left() == []


def test_a_model_that_gives_fewer_answers_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """lm-eval's own check, and its own words."""
    monkeypatch.setattr(Watched, "generate_until", lambda self, requests, disable_tqdm=False: [" 1"])
    said = []
    for options in ({}, OPTIONS):
        with pytest.raises((ValueError, IndexError)) as caught:
            world.evaluate(**options)
        said.append(str(caught.value))
        assert world.left() == []
    assert said[0] == said[1]


def test_an_interrupted_command_saves_and_says_130(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = world.run()
    monkeypatch.setattr(Watched, "fault", fail(KeyboardInterrupt()))
    ended = world.run("--noise", "--noise_repeats", "2")
    assert ended.code == 130
    assert unlike(ended._replace(code=0), plain) == []
    assert [text for text in ended.said if "Interrupt again to stop it" in text]


# ---- shapes that we do not know ----
def without_samples(results: dict[str, Any]) -> None:
    del results["samples"]


def samples_none(results: dict[str, Any]) -> None:
    results["samples"] = None


def another_table(results: dict[str, Any]) -> None:
    results["results"] = {name: list(row.items()) for name, row in results["results"].items()}


def words_for_numbers(results: dict[str, Any]) -> None:
    results["results"]["gen"]["exact_match,strict"] = "N/A"


def our_names(results: dict[str, Any]) -> None:
    results["results"]["gen"] |= {"exact_match_avg,strict": 7.0, "exact_match_total_stderr,strict": "N/A"}


def no_arrows(results: dict[str, Any]) -> None:
    del results["higher_is_better"]


SHAPES = [without_samples, samples_none, another_table, words_for_numbers, our_names, no_arrows]


@pytest.mark.parametrize("change", SHAPES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("log_samples", [True, False])
def test_results_of_another_shape(
    world: World, monkeypatch: pytest.MonkeyPatch, change: Any, log_samples: bool
) -> None:
    kept: list[dict[str, Any]] = []

    @functools.wraps(NATIVE)
    def stranger(*args: Any, **kwargs: Any) -> Any:
        out: Any = NATIVE(*args, **kwargs)
        change(out)
        kept.append(copy.deepcopy(out))
        return out

    monkeypatch.setattr(evaluator, "evaluate", stranger)
    with world.listening() as said, noise(**OPTIONS):
        found = lm_eval.simple_evaluate(
            model=Watched(), tasks=["both"], task_manager=world.manager, bootstrap_iters=0, log_samples=log_samples
        )
    (before,) = kept
    for name, row in before["results"].items():
        now = found["results"][name]
        assert now == row if isinstance(row, list) else row.items() <= now.items()
    if "samples" in before and before["samples"] is not None:
        assert ("samples" in found) is log_samples
    if "noise" not in found:
        assert [text for text in said if "could not be computed" in text]
        assert found["results"] == before["results"]
    else:
        json.dumps(found["noise"], allow_nan=False)


def test_something_else_than_results(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "evaluate", lambda **_: "something else")
    with noise(**OPTIONS), pytest.raises(TypeError):  # lm-eval's own, which adds to it
        lm_eval.simple_evaluate(model=Watched(), tasks=["both"], task_manager=world.manager)


def test_a_task_without_filters(world: World, plain: Ended, monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_eval.api.task import ConfigurableTask

    original = ConfigurableTask.apply_filters

    def then_without(self: Any) -> Any:
        out = original(self)
        self._filters = []
        return out

    monkeypatch.setattr(ConfigurableTask, "apply_filters", then_without)
    assert unlike(world.evaluate(**OPTIONS), plain) == []


def test_a_group_that_cannot_be_made_costs_its_row_only(world: World, plain: Ended) -> None:
    ended = world.evaluate(**OPTIONS | {"groups": {"odd": "*", "all": "g*"}})
    assert unlike(ended, plain) == []
    assert {item["task"] for item in ended.results["noise"]["estimates"]} == {"gen", "choice", "both", "all"}
    assert any("no metric in common" in note for note in noted(world.session.analysis))


def test_code_that_writes_into_its_document(world: World, tmp_path: Path) -> None:
    """Scoring answer by answer calls it again, and lm-eval's log holds the document."""
    text = "def process(doc, results):\n    doc['calls'] = doc.get('calls', 0) + 1\n    return {'right': 1.0}\n"
    (tmp_path / "writing.py").write_text(text)
    toys.write_task(tmp_path, "writes", toys.docs(3, 2))
    config = yaml.safe_load((tmp_path / "writes.yaml").read_text())
    config |= {"metric_list": [{"metric": "right", "aggregation": "mean", "higher_is_better": True}]}
    text = yaml.safe_dump(config) + "process_results: !function writing.process\n"
    (tmp_path / "writes.yaml").write_text(text)
    rows = []
    for options in ({}, {"repeats": 3}):
        with noise(**options) if options else nullcontext():
            found = toys.simple_evaluate(tmp_path, ["writes"])
        rows.append([row["doc"] for row in found["samples"]["writes"]])
    assert rows[0] == rows[1]


def test_little_room_on_the_stack(world: World, plain: Ended) -> None:
    """A limit at which lm-eval itself just fits."""
    before = sys.getrecursionlimit()

    def ends(limit: int, **options: Any) -> Ended | None:
        sys.setrecursionlimit(limit)
        try:
            return world.evaluate(**options)
        except RecursionError:
            return None
        finally:
            sys.setrecursionlimit(before)

    low, high = len(inspect.stack()) + 10, before
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if ends(middle) else (middle, high)
    for more in (8, 16, 32):
        ended = ends(high + more, **OPTIONS)
        assert ended is not None
        assert unlike(ended, plain) == []


# ---- the command line ----
def test_no_room_for_a_copy_of_the_configuration(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before the run; an error of lm-eval's own goes its own way."""
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
        ended = world.run("--config", str(world.folder / "config" / "with.yaml"))
    assert (ended.code, ended.results) == (2, {})
    assert "No such file or directory" in ended.said[0]
    monkeypatch.setattr(Watched, "generate_until", lambda self, requests: Path("/none/there").read_text())
    assert world.run("--config", str(world.folder / "config" / "with.yaml")).code == 1


OFF = """
import sys
from support import lm_eval_models
from lm_eval import evaluator
from lm_eval.tasks import TaskManager
init, native = TaskManager.__init__, evaluator.evaluate
TaskManager.__init__ = lambda self, *args, **kwargs: init(self, *args, **kwargs | {"include_defaults": False})
from harness_noise.cli import main
code = main(["lm-eval", "run", "--model", "sim-hash", "--include_path", sys.argv[1], "--tasks", "gen"])
print("code", code, evaluator.evaluate is native)
print("ours", *(name for name in sys.modules if name.startswith("harness_noise")))
"""


@pytest.mark.slow
def test_without_the_flag_nothing_of_ours_is_loaded_or_patched(world: World) -> None:
    program = [sys.executable, "-c", OFF, str(world.folder)]
    done = subprocess.run(program, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "\ncode 0 True\n" in done.stdout
    loaded = set(done.stdout.rsplit("ours ", 1)[1].split())
    package = "harness_noise_adapters.lm_eval_harness"
    assert f"{package}.live.cli" in loaded
    assert {name for name in loaded if name.startswith(package)} == {
        package,
        f"{package}.live",
        f"{package}.live.cli",
        f"{package}.live.options",
    }
    assert not {name for name in loaded if name.startswith(("harness_noise.stats", "harness_noise.analysis.mean"))}


@pytest.mark.slow
def test_an_exception_anywhere_in_the_command(world: World) -> None:
    """Everything but the hook, which has its own walk."""
    config = world.folder / "config"
    flags = ["--config", str(config / "with.yaml"), "--noise", "--noise_cluster", "gen=template", "--noise_group",
             "all=g*"]  # fmt: skip
    plain = world.run("--config", str(config / "without.yaml"))
    world.run(*flags)
    calls = [
        point for point in walk.points(lambda: world.run(*flags))
        if point.file.startswith(("lm_eval_harness/live/cli.py", "lm_eval_harness/live/options.py", "report/"))
    ]  # fmt: skip
    bad = []
    for point in walk.share(point for point in calls if point.name not in PARSING):
        try:
            ended, fired = walk.raising(point, RuntimeError(FAULT), lambda: world.run(*flags))
        except Exception as error:
            bad.append(f"{point}: {error!r}")
            continue
        problems = unlike(ended, plain) + ([] if fired else ["no such call"])
        bad += [f"{point}: {problem}" for problem in problems]
    assert bad == []


PARSING = {
    "main", "_execute", "_execute.<locals>.NoiseCLI", "_execute.<locals>.NoiseCLI.__init__",
    "_execute.<locals>.NoiseCLI.__init__.<locals>.<genexpr>", "_execute.<locals>.NoiseCLI.__init__.<locals>.<lambda>",
    "add_arguments", "_run", "_run.<locals>.<dictcomp>", "_own_config", "_yaml", "block", "block.<locals>.<dictcomp>",
}  # fmt: skip

"""Until lm-eval has its arguments there is no run to save: it cannot read them with ours among them."""

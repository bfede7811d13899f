"""Small evals through the real Inspect, with canned answers in place of a model."""

from __future__ import annotations

import gc
import logging
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.harness_runs import made_once
from support.inspect_evals import unwrap_all


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The oldest Inspect that is supported leaves its log files open, which is not for our tests to judge."""
    try:
        old = tuple(int(part) for part in version("inspect-ai").split(".")[:3]) < (0, 3, 285)
    except PackageNotFoundError:
        return
    for item in items:
        if old and ("inspect" in item.name or item.path.name.startswith("test_inspect")):
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="module", autouse=True)
def _left_open() -> Iterator[None]:
    """Inspect leaves event loops open: else a later test, of another module, would be told of them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(autouse=True)
def _flag_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The flag of the environment these tests run in is not theirs."""
    for name in ("", "_CLUSTER", "_LEVEL", "_SE", "_INTERVAL"):
        monkeypatch.delenv(f"HARNESS_NOISE{name}", raising=False)


@pytest.fixture(scope="session")
def canned() -> SimpleNamespace:
    """Builders of offline evals: `samples`, `task`, `eval`; and `truth`, the 0/1 that an answer gets.

    `eval` writes nothing for a viewer beside the log, which takes a third of the time of such short answers.
    """
    inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import match
    from inspect_ai.solver import solver

    with suppress(ImportError):  # the oldest Inspect that is supported has no such module
        from inspect_ai._util import zipfile

        zipfile._ZSTD_THREADS = 0  # or each entry of a log, three lines long, starts twelve threads

    def truth(key: object, epoch: int, ease: float | None = None, model: str = "model") -> int:
        """Whether the canned model is right: a coin of the question's own ease."""
        ease = random.Random(f"ease {key}").random() if ease is None else ease
        return int(random.Random(f"{model} {key} {epoch}").random() < ease)

    @solver
    def coins(before: Callable[[Any], None] | None = None, answer: Callable[[Any], str] | None = None):
        async def solve(state: Any, generate: Any) -> Any:
            if before is not None:
                before(state)
            if answer is not None:
                text = answer(state)
            else:
                key = state.metadata.get("name", state.sample_id)
                text = "yes" if truth(key, state.epoch, state.metadata.get("ease"), state.model.name) else "no"
            state.output = ModelOutput.from_content("mockllm/model", text)
            return state

        return solve

    def samples(n: int = 12, per_cluster: int = 3, **metadata: Any) -> list[Any]:
        return [
            Sample(
                id=f"q{i}",
                input=f"Question {i}?\nSay yes or no.",
                target="yes",
                metadata={"name": f"q{i}", "passage": f"p{i // per_cluster}", **metadata},
            )
            for i in range(n)
        ]

    def task(dataset: list[Any] | None = None, **options: Any) -> Any:
        before, answer = options.pop("before", None), options.pop("answer", None)
        options.setdefault("scorer", match())
        return inspect_ai.Task(
            dataset=MemoryDataset(samples() if dataset is None else dataset),
            solver=coins(before, answer),
            **{"name": "coins"} | options,
        )

    def quietly(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Inspect leaves streams open, which is not for our tests to judge."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            try:
                return function(*args, **options)
            finally:
                gc.collect()

    def run(tasks: Any, log_dir: Path, model: Any = "mockllm/model", **options: Any) -> list[Any]:
        options = {"display": "none", "log_realtime": False, "log_dir": str(log_dir)} | options
        return quietly(inspect_ai.eval, tasks, model=model, **options)

    return SimpleNamespace(truth=truth, samples=samples, task=task, eval=run, quietly=quietly, Sample=Sample)


@pytest.fixture(scope="session")
def inspect_logs(canned: SimpleNamespace, every_worker: Path) -> SimpleNamespace:
    """Logs that several tests read: 12 questions in 4 passages, 3 repeats, two models, flag off.

    `a` and `b` are of two models; `shuffled` is of `b`'s with automatic ids given after a shuffle,
    `automatic` of `a`'s with automatic ids in the order of the data.
    """
    folder, logs = made_once(
        every_worker, "inspect_logs", "inspect-ai", [__file__], lambda folder: _write_logs(canned, folder)
    )
    return SimpleNamespace(folder=folder, **{name: Path(log) for name, log in logs.items()})


def _write_logs(canned: SimpleNamespace, folder: Path) -> dict[str, str]:
    from inspect_ai.dataset import MemoryDataset

    a, b = canned.eval(canned.task(), folder / "ab", model=["mockllm/alpha", "mockllm/beta"], epochs=3)

    def without_ids(seed: int | None) -> Any:
        dataset = MemoryDataset(
            [canned.Sample(input=item.input, target=item.target, metadata=item.metadata) for item in canned.samples()]
        )
        if seed is not None:
            dataset.shuffle(seed)
        task = canned.task()
        task.dataset = dataset
        return task

    automatic = canned.eval(without_ids(None), folder / "automatic", model="mockllm/alpha", epochs=3)[0]
    shuffled = canned.eval(without_ids(7), folder / "shuffled", model="mockllm/beta", epochs=3)[0]
    logs = {"a": a, "b": b, "automatic": automatic, "shuffled": shuffled}
    assert all(log.status == "success" for log in logs.values())
    return {name: log.location for name, log in logs.items()}


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Our warnings, as texts."""
    caplog.set_level(logging.WARNING)
    return lambda: [item.getMessage() for item in caplog.records if item.name.startswith("harness_noise")]


@pytest.fixture
def original() -> Iterator[Callable[..., Any]]:
    """Inspect's own function, given back before and after the test."""
    from inspect_ai._eval.task import run

    unwrap_all()
    yield run.eval_results
    unwrap_all()


@pytest.fixture
def run_a(lm_eval_runs: Path, tmp_path: Path) -> Path:
    """A copy of run a that a test may damage."""
    return Path(shutil.copytree(lm_eval_runs / "a", tmp_path / "a"))


@pytest.fixture
def quick_lm_eval(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """lm-eval's command line without an index of its 13,000 tasks, and its log handler taken out again."""
    from lm_eval import utils
    from lm_eval.tasks import TaskManager

    original = TaskManager.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs | {"include_defaults": False})

    monkeypatch.setattr(TaskManager, "__init__", init)
    monkeypatch.setattr(utils, "_LOGGING_CONFIGURED", False, raising=False)
    loggers = [logging.getLogger(), logging.getLogger("lm_eval")]
    before = [(item, list(item.handlers), item.propagate, item.level) for item in loggers]
    yield
    for item, handlers, propagate, level in before:
        item.handlers[:], item.propagate = handlers, propagate
        item.setLevel(level)

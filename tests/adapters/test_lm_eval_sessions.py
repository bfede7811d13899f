"""Which `noise()` a run belongs to: threads, pools, asyncio, child processes, names imported before."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lm_eval")
from lm_eval import evaluator
from lm_eval.evaluator import simple_evaluate as early_simple_evaluate

import harness_noise as hn
from harness_noise_adapters.lm_eval_harness import noise
from support import lm_eval_models as toys
from support.lm_eval_live import estimate, write_nested_tasks

early_evaluate = evaluator.evaluate
"""As `from lm_eval import evaluate` before `noise()` binds it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_nested_tasks(tmp_path_factory.mktemp("tasks"))


def answers(results: dict[str, Any]) -> set[int]:
    """How many answers each question of a result has."""
    return {len(row["resps"][0]) for row in results["samples"]["gen"]}


class Staggered(toys.HashModel):
    """Waits in its first call until both threads are inside their runs."""

    def __init__(self, barrier: threading.Barrier) -> None:
        super().__init__()
        self.barrier = barrier

    def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
        if not self.calls:
            self.barrier.wait(timeout=120)
        return super().generate_until(requests, disable_tqdm)


def test_two_threads_keep_their_own_settings(folder: Path) -> None:
    barrier = threading.Barrier(2)

    def work(K: int) -> tuple[set[int], int, int]:
        model = Staggered(barrier)
        with noise(repeats=K) as session:
            results = toys.simple_evaluate(folder, ["gen"], model)
        return answers(results), estimate(session, "gen").repeats_max, sum(model.calls)

    with ThreadPoolExecutor(2) as pool:
        two, five = pool.map(work, (2, 5))
    assert two == ({2}, 2, 2 * 12)
    assert five == ({5}, 5, 5 * 12)
    assert evaluator.evaluate is early_evaluate


def test_sessions_end_in_any_order(folder: Path) -> None:
    a, b = noise(repeats=2), noise(repeats=3)
    a.__enter__()
    b.__enter__()
    toys.simple_evaluate(folder, ["gen"])
    a.__exit__(None, None, None)
    assert answers(toys.simple_evaluate(folder, ["gen"])) == {3}
    b.__exit__(None, None, None)
    plain = toys.simple_evaluate(folder, ["gen"])
    assert "noise" not in plain
    assert answers(plain) == {1}
    assert evaluator.evaluate is early_evaluate


def test_a_pool_takes_the_only_session(folder: Path) -> None:
    with noise(repeats=3), ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda _: toys.simple_evaluate(folder, ["gen"]), range(2)))
    assert [answers(run) for run in runs] == [{3}, {3}]


def test_a_thread_between_two_sessions_is_refused(folder: Path) -> None:
    model = toys.HashModel()
    with noise(repeats=2) as outer, noise(repeats=3), ThreadPoolExecutor(1) as pool:
        outer.runs += 1  # this test wants no word on it
        job = pool.submit(toys.simple_evaluate, folder, ["gen"], model)
        with pytest.raises(hn.InputError, match="Open noise\\(\\) in the thread that runs lm-eval"):
            job.result()
    assert model.calls == []


def test_asyncio_tasks_keep_their_own_settings(folder: Path) -> None:
    async def one(K: int, first: asyncio.Event, second: asyncio.Event) -> set[int]:
        with noise(repeats=K):
            first.set()
            await second.wait()  # both are open
            return answers(await asyncio.to_thread(toys.simple_evaluate, folder, ["gen"]))

    async def both() -> list[set[int]]:
        a, b = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(one(2, a, b), one(4, b, a))

    assert asyncio.run(both()) == [{2}, {4}]


def _in_a_child(folder: str) -> bool:
    return "noise" in toys.simple_evaluate(Path(folder), ["gen"])


def test_a_child_process_has_none_and_the_parent_says_so(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with noise(repeats=2), multiprocessing.get_context("fork").Pool(1) as pool:
        assert not pool.apply(_in_a_child, (str(folder),))
    assert [record.getMessage()[:30] for record in caplog.records if record.levelno == logging.WARNING] == [
        "harness-noise: no run passed b"
    ]


def test_an_early_name_is_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path=str(folder), include_defaults=False)
    load = getattr(manager, "load", None) or manager.load_task_or_group
    with noise(repeats=2) as session:
        results = early_evaluate(lm=toys.HashModel(), task_dict=load(["gen"]), bootstrap_iters=0)
    assert "noise" not in results
    assert session.runs == 0
    assert "a name imported before noise()" in caplog.text


def test_an_error_of_the_user_is_not_followed_by_a_word(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ZeroDivisionError), noise(repeats=2):
        raise ZeroDivisionError
    assert caplog.text == ""


def test_an_early_simple_evaluate_records_its_samples(folder: Path) -> None:
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path=str(folder), include_defaults=False)
    with noise(sample="6") as session:
        results = early_simple_evaluate(
            model=toys.HashModel(), tasks=["gen"], task_manager=manager, bootstrap_iters=0, log_samples=True
        )
    assert session.problems == []
    assert len(results["config"]["samples"]["gen"]) == 6


def test_a_wrapper_between_ours_makes_no_second_run(folder: Path) -> None:
    model = toys.HashModel()
    try:
        with noise(repeats=2):
            ours = evaluator.evaluate
            evaluator.evaluate = wraps(ours)(lambda *args, **kwargs: ours(*args, **kwargs))
        with noise(repeats=3):
            results = toys.simple_evaluate(folder, ["gen"], model)
    finally:
        evaluator.evaluate = early_evaluate
    assert answers(results) == {3}
    assert sum(model.calls) == 3 * 12

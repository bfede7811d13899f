"""Two ranks: lm-eval's own `evaluate` in two threads that gather like two processes.

torch is not needed for anything else here, so the three functions of it that lm-eval's gathering
calls are stood in for; order of the ranks and padding of the shorter one are lm-eval's own.
"""

from __future__ import annotations

import sys
import threading
import types
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("lm_eval")

from lm_eval import evaluator
from lm_eval.tasks import TaskManager

import harness_noise as hn
from harness_noise_adapters.lm_eval_harness import noise
from harness_noise_adapters.lm_eval_harness.live import hook, repeats
from harness_noise_adapters.lm_eval_harness.live.options import Options
from harness_noise_adapters.lm_eval_harness.live.repeats import Asking
from support import lm_eval_models as toys

WORLD = 2
here = threading.local()


class Tensor:
    def __init__(self, value: Any) -> None:
        self.value = value

    def cpu(self) -> Tensor:
        return self

    detach = cpu

    def numpy(self) -> Any:
        return np.asarray(self.value)


class Ranks:
    """What threads hand to each other."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(WORLD, timeout=30)
        self.slots: list[Any] = [None] * WORLD

    def gather(self, value: Any) -> list[Any]:
        self.slots[here.rank] = value
        self.barrier.wait()
        out = list(self.slots)
        self.barrier.wait()
        return out


class Ranked(toys.HashModel):
    """The simulated model as one of several ranks."""

    device = "cpu"

    def __init__(self, rank: int, ranks: Ranks, **model: Any) -> None:
        super().__init__(**model)
        self._rank, self._world_size, self.ranks = rank, WORLD, ranks
        self.accelerator = types.SimpleNamespace(gather=self.all_gather, wait_for_everyone=self.barrier)

    def all_gather(self, value: Tensor) -> Tensor:
        return Tensor([item.value for item in self.ranks.gather(value)])

    def barrier(self) -> None:
        self.ranks.barrier.wait()

    def gather_object(self, value: Any, dst: int = 0) -> list[Any] | None:
        found = self.ranks.gather(value)
        return found if here.rank == dst else None


def torch() -> types.ModuleType:
    """The part of torch that lm-eval's gathering, and whoever looks for it in `sys.modules`, needs."""
    module = types.ModuleType("torch")

    def gather_object(obj: Any, object_gather_list: list[Any] | None, dst: int) -> None:
        found = here.lm.ranks.gather(obj)
        if object_gather_list is not None:
            object_gather_list[:] = found

    module.Tensor, module.Generator = Tensor, type("Generator", (), {})
    module.nn = types.SimpleNamespace(Module=type("Module", (), {}))
    module.tensor = lambda value, device: Tensor(value)
    module.get_rng_state, module.set_rng_state = (lambda: None), (lambda state: None)
    module.cuda = types.SimpleNamespace(is_initialized=lambda: False)
    module.distributed = types.SimpleNamespace(gather_object=gather_object)
    return module


def ranked(
    folder: Path, tasks: list[str], same: Sequence[bool] = (False, False), fail_after: int | None = None, **options: Any
) -> tuple[list[Any], list[hook.Session], list[Ranked]]:
    """`evaluate` on every rank at once; results, sessions and models by rank.

    Args:
        folder: of the tasks.
        tasks: their names.
        same: rank → whether its model gives every answer again.
        fail_after: calls until the model of the last rank fails.
        options: of the noise.
    """
    ranks = Ranks()
    models = [Ranked(rank, ranks, same=same[rank]) for rank in range(WORLD)]
    models[-1].fail_after = fail_after
    sessions = [hook.Session(Options.of(options)) for _ in range(WORLD)]
    results: list[Any] = [None] * WORLD
    faults: list[BaseException] = []
    original = evaluator.evaluate

    def work(rank: int, loaded: Any) -> None:
        here.rank, here.lm = rank, models[rank]
        try:
            function = hook.wrap(original, sessions[rank]) if options else original
            results[rank] = function(lm=models[rank], task_dict=loaded, bootstrap_iters=0)
        except BaseException as error:  # the other rank must not wait for ever
            faults.append(error)
            ranks.barrier.abort()

    threads = []
    for rank in range(WORLD):
        manager = TaskManager(include_path=str(folder), include_defaults=False)
        loaded = manager.load(tasks) if hasattr(manager, "load") else manager.load_task_or_group(tasks)
        threads.append(threading.Thread(target=work, args=(rank, loaded)))
    with patch.dict(sys.modules, {"torch": torch()}):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if faults:
        raise faults[0]
    return results, sessions, models


def test_two_ranks_give_what_one_gives(tmp_path: Path) -> None:
    K, n = 3, 11
    toys.write_task(tmp_path, "gen", toys.docs(n))
    toys.write_task(tmp_path, "choice", toys.docs(n), toys.CHOICE)
    (plain, _), _, _ = ranked(tmp_path, ["gen", "choice"])
    (results, other), (session, second), models = ranked(tmp_path, ["gen", "choice"], repeats=K, cluster="template")
    assert other is None
    assert second.analysis is None
    assert session.problems == second.problems == []
    # every rank sends as many requests as the other: the shorter one is padded
    assert models[0].calls == models[1].calls == [6] * K
    assert [row["doc_id"] for row in results["samples"]["gen"]][:6] == [0, 2, 4, 6, 8, 10]
    assert {len(row["resps"][0]) for row in results["samples"]["gen"]} == {K}
    for task in ("gen", "choice"):
        assert plain["results"][task].items() <= results["results"][task].items()

    alone = toys.HashModel()
    with noise(repeats=K, cluster="template") as single:
        toys.simple_evaluate(tmp_path, ["gen", "choice"], alone)
    for ours, theirs in zip(session.collected.run.scores, single.collected.run.scores, strict=True):
        # question 9 pads its rank: it is asked more often, and this model's further answers depend on that
        same = np.ones_like(ours.values, dtype=bool)
        same[9, 1:] = False
        np.testing.assert_array_equal(ours.values[same], theirs.values[same])
        assert ours.questions.keys == theirs.questions.keys
        assert ours.clusters == theirs.clusters
        found = [
            (item.mean, item.se, item.n_clusters)
            for item in session.analysis.estimates
            if (item.task, item.metric, item.scorer) == (ours.task, ours.metric, ours.scorer)
        ]
        again = hn.estimate(ours.values, clusters=ours.clusters)
        assert found == [(again.mean, again.se, 4)]
    for row in results["samples"]["gen"]:
        assert row["cluster"] == row["doc"]["template"]


def test_the_padding_of_native_repeats_is_cut_off(tmp_path: Path) -> None:
    """Without our flag's K the harness itself leaves 2 K answers at the last question of a rank."""
    toys.write_task(tmp_path, "gen", toys.docs(5), repeats=4)
    (results, _), (session, _), _ = ranked(tmp_path, ["gen"], repeats=2)
    assert sorted(len(row["resps"][0]) for row in results["samples"]["gen"])[-1] == 8
    assert {len(row["scores_per_repeat"]["exact_match"]) for row in results["samples"]["gen"]} == {4}
    assert session.analysis.estimates[0].repeats_max == 4


def greedily(*_: object) -> bool:
    return True


@pytest.mark.parametrize("differs", [False, True])
def test_ranks_judge_copies_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, differs: bool) -> None:
    """The first thirty questions of all ranks are asked once more; one that differs has all of them asked."""
    K, n = 3, 80
    monkeypatch.setattr(repeats, "decodes_greedily", greedily)
    toys.write_task(tmp_path, "gen", toys.docs(n))
    (results, _), (session, second), models = ranked(tmp_path, ["gen"], (True, not differs), repeats=K)
    assert session.problems == second.problems == []
    found, *_ = session.analysis.estimates
    if differs:
        # 25 others of the second further answer's round, then all of the third
        assert [model.calls for model in models] == [[40, 15, 25, 40]] * 2
        assert {len(row["resps"][0]) for row in results["samples"]["gen"]} == {K}
        assert (found.repeats_min, found.repeats_max) == (K, K)
        assert session.saved_requests == []
    else:
        assert [model.calls for model in models] == [[40, 15]] * 2
        said = f"gen: temperature 0: 30 of 30 second answers were copies, {n * (K - 1) - 30} requests saved"
        assert session.saved_requests == [said]
        assert "copied_repeats" in found.diagnostics
        assert (found.repeats_max, found.se_prediction) == (1, None)


def test_a_rank_that_fails_leaves_no_other_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "decodes_greedily", greedily)
    toys.write_task(tmp_path, "gen", toys.docs(80))
    (results, _), (session, second), models = ranked(tmp_path, ["gen"], (True, True), fail_after=1, repeats=3)
    assert "0 of 15 further answers are there" in str(second.warnings)
    assert [model.calls for model in models] == [[40, 15]] * 2
    assert session.analysis.estimates[0].repeats_max == 1
    assert {len(row["resps"][0]) for row in results["samples"]["gen"]} == {1}
    assert second.problems == []


@given(
    tasks=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=3),
    K=st.integers(1, 6),
    padding=st.integers(0, 3),
    batched=st.booleans(),
)
def test_the_harness_gets_its_own_call(tasks: list[tuple[int, int]], K: int, padding: int, batched: bool) -> None:
    """Whatever the tasks and the padding, the first call is the one lm-eval would have made without us."""
    blocks, made = [], {}
    for i, (n, own) in enumerate(tasks):
        requests = [
            types.SimpleNamespace(repeats=own, request_type="generate_until", args=(f"{i} {number}", {}))
            for number in range(n)
        ]
        config = types.SimpleNamespace(repeats=own)
        made[str(i)] = types.SimpleNamespace(
            OUTPUT_TYPE="generate_until", config=config, instances=requests, _filters=[], apply_filters=print
        )
        blocks += requests
    blocks += [blocks[-1]] * padding
    cloned = [request for request in blocks for _ in range(request.repeats)]
    calls: list[list[types.SimpleNamespace]] = []

    def original(requests: list[types.SimpleNamespace]) -> list[str]:
        calls.append(requests)
        return [""] * len(requests)

    lm = types.SimpleNamespace(generate_until=original)
    if batched:
        lm._create_payload, lm._batch_size = print, 4
    asking = Asking(print, {"lm": lm}, made, Options.of({"repeats": K}), print)
    with asking.installed():
        lm.generate_until(cloned)
    assert len(calls) == 1
    assert asking.ask() == bool(asking.raised)
    assert calls[0] is cloned
    rounds = calls[1:]
    expected = Counter(id(request) for request in blocks for _ in range(request.repeats, K))
    assert Counter(id(request) for part in rounds for request in part) == expected
    for part in rounds:  # no prompt twice in one round, but for the request that pads
        often = Counter(map(id, part))
        assert all(count == 1 for key, count in often.items() if key != id(blocks[-1]))

"""A task of Inspect whose looks have a fault, whose samples fail, or that somebody ends: without a run."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import anyio
import numpy as np
import pytest

from harness_noise.data.questions import Questions
from harness_noise.data.scores import Scores
from harness_noise.extra.stopping.rules import StoppingRule
from harness_noise.settings import Settings

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from harness_noise_adapters.extra.stopping.of_inspect import ordering
from harness_noise_adapters.extra.stopping.of_inspect.stopper import DecidingScore, Stopper, StoppingSettings
from harness_noise_adapters.inspect_logs.live import current

N = 50


def made(part=None, until=True, repeats=False, epochs=1, looks=5):
    """A task of 50 questions, of which `part` may be asked, that is compared with a log where it has a rule."""
    rule = StoppingRule(looks=looks, futility=False) if until else None
    keys = Questions(tuple(f"q{i}" for i in range(N)))
    rows = np.arange(N) if part is None else np.array(part)
    other = Scores(task="t", metric="mean", scorer="s", questions=keys, values=np.arange(N)[:, None] % 3 / 3)
    asking = StoppingSettings(rule=rule, against="x" if until else None, sample=None if part is None else len(rows),
                    repeats=repeats)  # fmt: skip
    return Stopper(
        task="t",
        to_say=[],
        asking=asking,
        settings=Settings(),
        questions=keys,
        clusters=None,
        epochs=epochs,
        part=rows,
        decides=DecidingScore("s", None, "mean", "s"),
        other=other if until else None,
        order=None if rule is None else rule.order(len(rows), repeats=epochs, shuffled=True),
        part_seed=0 if part is not None else None,
    )


def answer(stopper, i, epoch=1, value=None):
    """One sample, as Inspect runs it; False if it is not to be asked."""
    if stopper.reason(f"q{i}", epoch) is not None:
        return False
    stopper.answered(f"q{i}", epoch, {"s": SimpleNamespace(value=i % 3 / 3 if value is None else value)})
    stopper.look()
    return True


def test_a_fault_in_a_look_leaves_the_random_part_as_it_is():
    stopper = made(part=range(10, 40))
    asked = [i for i in range(N) if answer(stopper, i, value="sorry" if i == 17 else None)]
    assert stopper.off
    assert asked == list(range(10, 40))
    (drawn,) = stopper.record()["drawn"]
    assert (drawn["n_asked"], drawn["n_total"], drawn["stopped_early"]) == (30, N, False)
    assert stopper.summary() == ["t: a random subset, 30 of 50 questions"]


def test_after_a_fault_nothing_is_said_to_be_decided_or_under_way():
    stopper = made()
    asked = [i for i in range(N) if answer(stopper, i, value="sorry" if i == 27 else None)]
    assert len(asked) == N
    assert stopper.outcome.n_asked == 20
    assert stopper.summary() == []
    assert "drawn" not in stopper.record()


def test_what_was_under_way_is_told_only_where_something_was():
    stopper = made()
    for i in range(N):
        answer(stopper, i, value=5.0 + i % 3)
    assert stopper.outcome.decision == "A better" or stopper.outcome.decision == "B better"
    n = stopper.outcome.n_asked
    assert stopper.summary() == []
    stopper = made()
    assert stopper.reason(f"q{N - 1}", 1) is None  # it is under way from the start
    for i in range(N - 1):
        answer(stopper, i, value=5.0 + i % 3)
    (text,) = stopper.summary()
    assert "1 answer was under way" in text
    (drawn,) = stopper.record()["drawn"]
    assert (drawn["n_asked"], drawn["stopped_early"]) == (n + 1, True)


@pytest.mark.parametrize("until", [True, False])
def test_a_run_that_somebody_ended_has_no_random_part(until):
    """Its answers are the fast ones; those that never began came to an end without having been asked."""
    stopper = made(part=range(30), until=until)
    for i in range(8):
        assert answer(stopper, i)
    for i in range(8, 30):
        if until:  # where the plan passes by
            stopper.ended(i, 1)
    assert stopper.cut
    assert not until or stopper.outcome.look == 1  # the fast answers of the second block decide nothing
    assert "drawn" not in stopper.record()
    assert (
        stopper.summary()[-1] == "t: it was ended before everything was asked, so what was asked is not a random subset"
    )


def test_answers_without_a_score_are_of_the_part_and_missing():
    stopper = made(part=range(30), until=False)
    for i in range(30):
        assert stopper.reason(f"q{i}", 1) is None
        if i >= 8:
            stopper.answered(f"q{i}", 1, {})
    (drawn,) = stopper.record()["drawn"]
    assert drawn["n_asked"] == 30


def test_epochs_that_no_longer_pay_are_not_missing():
    stopper = made(part=range(30), until=False, repeats=True, epochs=4)
    asked = [(i, epoch) for epoch in range(1, 5) for i in range(30) if answer(stopper, i, epoch)]
    assert len(asked) == 60  # the answers never differ
    for i in range(30):
        stopper.ended(i, 3)
    assert not stopper.cut
    assert stopper.record()["drawn"][0]["n_asked"] == 30


async def _scheduler(self, plan, run_sample):
    """Start samples the way Inspect does: all at once, each waits for a slot by itself; the first error ends all."""
    out = {}

    async def one(key):
        out[key] = await run_sample(*key)

    async with anyio.create_task_group() as group:
        for key in plan:
            group.start_soon(one, key)
    return out


async def _collect(funcs):
    out = [None] * len(funcs)

    async def one(at):
        out[at] = await funcs[at]()

    async with anyio.create_task_group() as group:
        for at in range(len(funcs)):
            group.start_soon(one, at)
    return out


@pytest.mark.parametrize("looks", [5, 2])
@pytest.mark.parametrize("max_samples", [1, 2, 1000])
@pytest.mark.parametrize("way", ["scheduler", "collect"])
@pytest.mark.parametrize("kind", ["none", "fails", "cancelled", "look"])
def test_no_sample_waits_for_ever(monkeypatch, looks, max_samples, way, kind):
    """Some samples fail, or are cancelled before they begin, or a look has a fault; all are run all the same."""
    stopper = made(looks=looks, epochs=2)
    if kind == "look":
        monkeypatch.setattr(StoppingRule, "look", lambda *_: 1 / 0)
    odd = {(i, epoch) for i in (0, 9, 10, 11, 25, 49) for epoch in (1, 2)}
    plan = [(i, epoch) for epoch in (1, 2) for i in range(N)]
    ran = []

    async def run():
        token = current.set(SimpleNamespace(stopper=stopper))
        slots = anyio.Semaphore(max_samples)

        async def sample(i, epoch):
            async with slots:
                ran.append((i, epoch))
                if kind == "cancelled" and (i, epoch) in odd:  # it was cancelled in the queue
                    return None
                if stopper.reason(f"q{i}", epoch) is not None:
                    return None
                await anyio.sleep(0)
                if kind == "fails" and (i, epoch) in odd:  # an error that the run goes on after
                    return None
            stopper.answered(f"q{i}", epoch, {"s": SimpleNamespace(value=i % 3 / 3)})
            stopper.look()
            return i

        try:
            with anyio.fail_after(20):
                if way == "scheduler":
                    await ordering._scheduling(_scheduler)(None, plan, sample)
                else:
                    await ordering._collecting(_collect)([functools.partial(sample, *key) for key in plan])
        finally:
            current.reset(token)

    anyio.run(run)
    assert sorted(ran) == sorted(plan)
    assert stopper.off == (kind in ("cancelled", "look"))
    if not stopper.off:
        assert stopper.outcome.n_asked == N


def test_an_error_that_ends_the_run_ends_those_that_wait():
    stopper = made()

    async def run():
        token = current.set(SimpleNamespace(stopper=stopper))

        async def sample(i, epoch):
            raise RuntimeError("the server is gone")

        try:
            with anyio.fail_after(20):
                await ordering._scheduling(_scheduler)(None, [(i, 1) for i in range(N)], sample)
        finally:
            current.reset(token)

    with pytest.raises(ExceptionGroup):
        anyio.run(run)

"""What one running task of Inspect knows of its stopping, without a run."""

from __future__ import annotations

from types import SimpleNamespace

import anyio
import numpy as np
import pytest

from harness_noise.analysis.sequential import StoppingRule
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Scores
from harness_noise.settings import Settings

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from harness_noise_adapters.inspect_logs.asking import DecidingScore, StoppingSettings
from harness_noise_adapters.inspect_logs.stopper import Stopper

N, K = 50, 2


@pytest.fixture
def stopper():
    rule = StoppingRule(looks=5)
    keys = Questions(tuple(f"q{i}" for i in range(N)))
    other = Scores(task="t", metric="mean", scorer="s", questions=keys, values=np.arange(N)[:, None] % 3 / 3)
    return Stopper(
        task="t", to_say=[], asking=StoppingSettings(rule=rule, against="x"), settings=Settings(),
        questions=keys, clusters=None, epochs=K, part=np.arange(N), decides=DecidingScore("s", None, "mean", "s"),
        other=other, order=rule.order(N, shuffled=True),
    )  # fmt: skip


def answer(stopper, i, epoch, value=0.5):
    assert stopper.reason(f"q{i}", epoch) is None
    stopper.answered(f"q{i}", epoch, {"s": SimpleNamespace(value=value)})
    stopper.look()


def test_fast_answers_do_not_decide(stopper, monkeypatch):
    """The second block is there, and all but one slow answer of the first: no look. Then both blocks are looked at."""
    for i in range(1, 20):
        for epoch in (1, 2):
            answer(stopper, i, epoch, 1.0 if i >= 10 else i % 3 / 3)
    answer(stopper, 0, 1, 0.0)
    assert stopper.taken is None
    seen = []
    monkeypatch.setattr(Stopper, "_say", lambda self, text: seen.append(self.sequential))
    answer(stopper, 0, 2, 0.0)
    assert [item.n_asked for item in seen] == [10, 20]
    assert seen[0].estimate_unadjusted == pytest.approx(0.0)  # as the other model; the second block is not in it


def test_an_answer_is_counted_once_however_often_it_ends(stopper):
    answer(stopper, 0, 1)
    left = list(stopper.left)
    answer(stopper, 0, 1)
    stopper.ended(0, 1)
    assert stopper.left == left


def test_samples_wait_for_the_look_before_the_block_before_theirs(stopper):
    async def run():
        began = []

        async def ask(i):
            await stopper.turn(i)
            began.append(i)

        async with anyio.create_task_group() as group:
            for i in (0, 10, 20, 40):
                group.start_soon(ask, i)
            await anyio.sleep(0.01)
            assert began == [0, 10]
            for i in range(10):
                for epoch in (1, 2):
                    answer(stopper, i, epoch, i % 3 / 3)
            await anyio.sleep(0.01)
            assert sorted(began) == [0, 10, 20]
            stopper.fault(RuntimeError("enough"))
        assert sorted(began) == [0, 10, 20, 40]

    anyio.run(run)
    assert stopper.to_say == ["t: it goes on to its end (RuntimeError: enough)"]


def test_all_epochs_of_a_block_come_before_the_next(stopper):
    plan = [(i, epoch) for epoch in (1, 2) for i in range(N)]
    order = [plan[at] for at in stopper.planned(plan)]
    assert sorted(order) == sorted(plan)
    assert order[:20] == [(i, epoch) for epoch in (1, 2) for i in range(10)]
    assert [i // 10 for i, _ in order] == sorted(i // 10 for i, _ in order)

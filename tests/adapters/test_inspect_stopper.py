"""What one running task of Inspect knows of its stopping, without a run."""

from __future__ import annotations

from types import SimpleNamespace

import anyio
import numpy as np
import pytest

from harness_noise.data.questions import Questions
from harness_noise.data.scores import Scores
from harness_noise.extra.stopping.rules import StoppingRule
from harness_noise.settings import Settings

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from harness_noise_adapters.extra.stopping.of_inspect.stopper import DecidingScore, Stopper, StoppingSettings

N, K = 50, 2


@pytest.fixture
def stopper():
    return made()


def made(asking="breadth", futility=True, part=None):
    """A task of 50 questions with two epochs, in blocks of 14, 13, 13, 23 and 37 answers where breadth comes first."""
    rule = StoppingRule(looks=5, asking=asking, futility=futility)
    keys = Questions(tuple(f"q{i}" for i in range(N)))
    part = np.arange(N) if part is None else part
    other = Scores(task="t", metric="mean", scorer="s", questions=keys, values=np.arange(N)[:, None] % 3 / 3)
    return Stopper(
        task="t", to_say=[], asking=StoppingSettings(rule=rule, against="x"), settings=Settings(),
        questions=keys, clusters=None, epochs=K, part=part, decides=DecidingScore("s", None, "mean", "s"),
        other=other, order=rule.order(len(part), repeats=K, shuffled=True),
    )  # fmt: skip


def answer(stopper, i, epoch, value=0.5):
    assert stopper.reason(f"q{i}", epoch) is None
    stopper.answered(f"q{i}", epoch, {"s": SimpleNamespace(value=value)})
    stopper.look()


def test_fast_answers_do_not_decide(stopper, monkeypatch):
    """The second block is there, and all but one slow answer of the first: no look. Then both blocks are looked at."""
    for i in range(1, 27):
        answer(stopper, i, 1, 1.0 if i >= 14 else i % 3 / 3)
    assert stopper.taken is None
    seen = []
    monkeypatch.setattr(Stopper, "_say", lambda self, text: seen.append(self.outcome))
    answer(stopper, 0, 1, 0.0)
    assert [item.n_asked for item in seen] == [14, 27]
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
            await stopper.turn(i, 1)
            began.append(i)

        async with anyio.create_task_group() as group:
            for i in (0, 14, 27, 49):
                group.start_soon(ask, i)
            await anyio.sleep(0.01)
            assert began == [0]  # an old answer of a retry may come yet, and is looked at first
            assert stopper.reason("q0", 1) is None
            await anyio.sleep(0.01)
            assert began == [0, 14]
            for i in range(14):
                answer(stopper, i, 1, i % 3 / 3)
            await anyio.sleep(0.01)
            assert sorted(began) == [0, 14, 27]
            stopper.fault(RuntimeError("enough"))
        assert sorted(began) == [0, 14, 27, 49]

    anyio.run(run)
    assert stopper.to_say == ["t: it goes on to its end (RuntimeError: enough)"]


@pytest.mark.parametrize("asking", ["breadth", "depth"])
def test_the_plan_is_put_into_the_order_of_the_rule(asking):
    plan = [(i, epoch) for i in range(N) for epoch in (1, 2)]
    order = [plan[at] for at in made(asking).planned(plan)]
    assert order == (plan if asking == "depth" else [(i, epoch) for epoch in (1, 2) for i in range(N)])


def test_what_is_outside_the_part_comes_last():
    stopper = made(part=np.delete(np.arange(N), 3))
    plan = [(i, epoch) for epoch in (1, 2) for i in range(N)]
    assert [plan[at] for at in stopper.planned(plan)][-2:] == [(3, 1), (3, 2)]


def test_a_look_takes_the_answers_of_its_blocks_and_no_other():
    """The first round is complete and so is a part of the second: K differs between the questions."""
    stopper = made(futility=False)
    for i in range(N):
        answer(stopper, i, 1, i % 3 / 3)
    for i in range(49, 12, -1):
        answer(stopper, i, 2, i % 3 / 3)
    assert (stopper.looked, stopper.outcome.n_asked) == (3, 40)
    for i in range(13):
        answer(stopper, i, 2, i % 3 / 3)
    assert stopper.looked == 5
    part = stopper.scores(4)
    assert np.isfinite(part.values).sum(axis=1).tolist() == [2] * 13 + [1] * 37
    assert stopper.outcome.n_answers == 100


def test_answers_that_came_too_late_are_told_by_question_and_epoch():
    stopper = made()
    for i in range(N):
        answer(stopper, i, 1, 5.0 + i % 3)
        if stopper.stopped:
            break
    done = stopper.outcome.n_asked
    assert stopper.stopped
    assert done < N
    stopper.answered("q49", 1, {"s": SimpleNamespace(value=1.0)})
    (row,) = stopper.record()["sequential"]
    assert row["late"] == [["q49", 1]]
    assert "1 answer was under way" in stopper.summary()[0]

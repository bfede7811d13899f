"""How much of one task is asked: until it is decided, a random part of it, epochs until they no longer pay.

A look takes complete blocks only: all epochs of all their questions, whichever answers came first. What was under way
when a look stops the run is finished and counts in Inspect's values, not in the decision.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from harness_noise._version import __version__
from harness_noise.analysis.observed import observe_difference, observe_mean, repeats_enough
from harness_noise.analysis.sequential import NOT_DECIDED, Look, Order, StoppingRule
from harness_noise.arrays import IntArray
from harness_noise.data.native_values import fitting
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores
from harness_noise.errors import InputError, error_message
from harness_noise.results.sequential import Drawn, Sequential
from harness_noise.settings import Settings

from .asking import DecidingScore, StoppingSettings
from .grid import numbers
from .identity import fingerprint
from .inject import difference

if TYPE_CHECKING:
    from anyio import Event
    from inspect_ai.log import EvalResults


logger = logging.getLogger("harness_noise")
AHEAD = 0.2
"""Share of the questions that may be asked beyond the last look, however many answers may be under way at once."""
AT_ONCE = 0.5
"""Seconds in which a retry's old answers are expected to come one after the other."""


@dataclass(slots=True, eq=False, kw_only=True)
class Stopper:
    """One task that may be stopped."""

    task: str
    to_say: list[str]
    """Sentences for the end of the task; this class appends to it."""
    asking: StoppingSettings
    settings: Settings
    questions: Questions
    clusters: tuple[str, ...] | None
    epochs: int
    part: IntArray
    """The questions that are to be asked at most, ascending."""
    decides: DecidingScore | None = None
    other: Scores | None = None
    """What is compared with."""
    against: str = ""
    """The model that it is of."""
    references: tuple[Run, ...] = ()
    """Runs that have answered the whole benchmark."""
    order: Order | None = None
    """Order of the positions in `part`."""
    order_seed: int | None = None
    part_seed: int | None = None
    taken_clusters: tuple[tuple[str, ...], str] | None = None
    """Clusters that are those of the run compared with, and their SPEC in words."""
    max_samples: int | None = None
    """Answers that Inspect lets be under way at once, where the user has said it: so many run ahead of an open look."""
    peak: int = 0
    """The most that have been under way at once."""
    taken: Look | None = None
    enough: str | None = None
    """Why no further epochs are asked for."""
    most: int = 0
    """Epochs that are asked for; 0: all."""
    off: bool = False
    """Whether there are no more looks, after a fault; which questions are asked stays as it is."""
    index: dict[str, int] = field(init=False)
    block: list[int] = field(init=False)
    """Block of each question; −1 outside the part."""
    raw: dict[tuple[int, int], Any] = field(default_factory=dict)
    """Question and epoch → the value that decides, of every answer that has ended."""
    started: set[tuple[int, int]] = field(default_factory=set)
    left: list[int] = field(init=False)
    """Answers that each block, or each epoch, still waits for."""
    begun: list[int] = field(init=False)
    """Answers of each block whose turn has come."""
    unseen: list[int] = field(init=False)
    """Answers of each block of which nothing has been seen yet."""
    weighed: int = 1
    """Epochs that were looked at."""
    moved: Event | None = None
    """Event of the next look, for those who wait for their turn."""
    last: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.index = {key: i for i, key in enumerate(self.questions.keys)}
        self.block = [-1] * len(self.questions)
        if self.order is not None:
            for number, block in enumerate(self.order.blocks):
                for i in self.part[block]:
                    self.block[i] = number
            self.left = [len(block) * self.epochs for block in self.order.blocks]
        else:
            for i in self.part:
                self.block[i] = 0
            self.left = [len(self.part)] * self.epochs
        self.unseen, self.begun = list(self.left), [0] * len(self.left)

    def planned(self, plan: Sequence[tuple[int, int]]) -> list[int]:
        """In which order the plan is started: all epochs of a block before the next block; the rest at the end."""
        if self.order is None:
            return list(range(len(plan)))
        blocks = [self.block[i] if self.block[i] >= 0 else len(self.left) for i, _ in plan]
        return sorted(range(len(plan)), key=lambda at: (blocks[at], plan[at][1], plan[at][0]))

    async def turn(self, i: int) -> None:
        """Wait until a question may be asked: few are to be under way when a look stops the run."""
        from anyio import Event

        while self.order is not None and not self._may_begin(i, self.order):
            self.moved = self.moved or Event()
            await self.moved.wait()
        if self.order is not None and self.block[i] >= 0:
            self.begun[self.block[i]] += 1

    def _may_begin(self, i: int, order: Order) -> bool:
        """Whether a question is of the block that the open look waits for, or of the few that may run ahead of it."""
        looked = 0 if self.taken is None else self.taken.sequential.look
        if self.off or self.stopped or self.block[i] <= looked:
            return True
        counts = [0, *order.counts()]
        ahead = counts[self.block[i]] - counts[looked]
        return ahead <= AHEAD * counts[-1] and sum(self.begun[looked + 1 :]) < max(1, self.max_samples or self.peak)

    def ended(self, i: int, epoch: int) -> None:
        """A sample has come to its end, however: one without scores counts as without an answer."""
        if (i, epoch) in self.raw or self.stopped or self._known(self.questions.keys[i], epoch) is None:
            return
        if (i, epoch) not in self.started and not (self.most and epoch > self.most):
            # somebody ends the run: of what is left only the fast answers would be looked at
            self._give_up("a sample was cancelled before it began")
        self._count(i, epoch, None)
        self.look()

    def _move(self) -> None:
        """Let those go on who wait for their turn."""
        if self.moved is not None:
            self.moved.set()
            self.moved = None

    def _slot(self, i: int, epoch: int) -> int:
        """The block of an answer, or its epoch where those are what is waited for."""
        return self.block[i] if self.order is not None else epoch - 1

    def _known(self, key: str, epoch: int) -> int | None:
        i = self.index.get(key)
        return i if i is not None and self.block[i] >= 0 and 1 <= epoch <= self.epochs else None

    async def wait(self, key: str, epoch: int) -> None:
        """For the old answers of a retry, which come without having been scheduled: their looks come first."""
        from anyio import sleep

        i = self._known(key, epoch)
        before = 0 if i is None else self._slot(i, epoch)
        while not self.off and any(self.unseen[:before]) and time.monotonic() - self.last < AT_ONCE:
            await sleep(0.01)

    def reason(self, key: str, epoch: int) -> str | None:
        """Why an answer is not to be asked for; None if it is."""
        i = self._known(key, epoch)
        if i is None:
            outside = key in self.index and self.asking.sample is not None
            return f"not in the random part of {len(self.part):,} questions" if outside else None
        if (i, epoch) in self.started:  # it is tried again
            return None
        self.look()
        if self.taken is not None and self.stopped:
            return self.taken.message
        if self.most and epoch > self.most:
            return self.enough
        self._seen(i, epoch)
        return None

    def _seen(self, i: int, epoch: int) -> None:
        if (i, epoch) not in self.started:
            self.started.add((i, epoch))
            self.peak = max(self.peak, len(self.started) - len(self.raw))
            self.unseen[self._slot(i, epoch)] -= 1

    def answered(self, key: str, epoch: int, scores: Mapping[str, Any]) -> None:
        """An answer has ended, with scores or without any."""
        i = self._known(key, epoch)
        if i is None:
            return
        if (i, epoch) not in self.started:
            self.last = time.monotonic()
        self._seen(i, epoch)
        self._count(i, epoch, None if self.decides is None else self.decides.value(scores))

    def _count(self, i: int, epoch: int, value: Any) -> None:
        if (i, epoch) not in self.raw:
            self.left[self._slot(i, epoch)] -= 1
        self.raw[i, epoch] = value

    def look(self) -> None:
        """All looks for which the answers are there; a fault in one is the end of them."""
        try:
            if not self.off:
                self._look()
        except Exception as error:  # noqa: BLE001  a guest never takes the host down
            self.fault(error)

    def _look(self) -> None:
        if self.order is not None and self.asking.rule is not None:
            while (number := 0 if self.taken is None else self.taken.sequential.look) < len(self.left):
                if self.left[number] or self.stopped:
                    return
                self._take(self.asking.rule, self.order, number + 1)
        elif self.asking.repeats and not self.most:
            complete = next((k for k, left in enumerate(self.left) if left), self.epochs)
            if complete >= 2 and complete > self.weighed:
                self._weigh(complete)

    def _take(self, rule: StoppingRule, order: Order, number: int) -> None:
        mine = [self.scores(self.part[np.sort(order.asked(number))], self.epochs)]
        if self.other is None:
            observed = observe_mean(mine, self.settings)
        else:
            observed = observe_difference(mine, [self.other], self.settings)
        found = rule.look(order, self.taken, observed)
        seed = order.seed if order.seed is not None else self.order_seed
        self.taken = replace(found, sequential=replace(found.sequential, order_seed=seed))
        self._move()
        self._say(found.message)

    def _weigh(self, epochs: int) -> None:
        found = repeats_enough([self.scores(self.part, epochs)], self.settings)
        self.weighed = epochs
        if found.enough and epochs < self.epochs:
            self.most, self.enough = epochs, found.message
        self._say(found.message)

    def _say(self, text: str) -> None:
        logger.warning("noise: %s: %s", self.task, text)

    def scores(self, rows: IntArray, epochs: int) -> Scores:
        """The scores that decide, of some questions and their first epochs.

        Raises:
            InputError: one that is no number.
        """
        assert self.decides is not None
        read = numbers([self.raw.get((i, epoch)) for i in rows.tolist() for epoch in range(1, epochs + 1)])
        if read.words:
            raise InputError(f"{self.decides.label} has scores that are no numbers, such as {read.example!r}")
        values = read.values.reshape(len(rows), epochs)
        keys, at = self.questions, rows.tolist()
        other, accuracy = self.other, self.decides.metric == "accuracy"
        return Scores(
            task=self.task,
            metric=self.decides.metric,
            scorer=self.decides.label,
            questions=Questions(
                tuple(keys.keys[i] for i in at),
                keys.kind,
                inputs=picked(keys.inputs, at),
                targets=picked(keys.targets, at),
            ),
            values=values,
            clusters=picked(self.clusters, at),
            higher_is_better=(True if accuracy else None) if other is None else other.higher_is_better,
            bounds=(fitting((0.0, 1.0), values) if accuracy else None) if other is None else other.bounds,
        )

    def fault(self, error: Exception) -> None:
        """Look no more."""
        self._give_up(error_message(error))

    def _give_up(self, why: str) -> None:
        if not self.off:
            self.off = True
            self._move()
            self.to_say.append(f"{self.task}: it goes on to its end ({why})")

    @property
    def sequential(self) -> Sequential | None:
        """What may be reported after the last look."""
        return None if self.taken is None else self.taken.sequential

    @property
    def stopped(self) -> bool:
        """Whether a look has ended the run."""
        return self.taken is not None and self.taken.stop

    @property
    def cut(self) -> bool:
        """Whether answers were never asked for though no look had stopped the run: somebody ended it before."""
        return not self.stopped and any(self.unseen[: self.most or None])

    def asked(self) -> int:
        """Questions that were asked: where no look has stopped it all that were to be, with an answer or without."""
        return len({i for i, _ in (*self.raw, *self.started)}) if self.stopped else len(self.part)

    def summary(self) -> list[str]:
        """What to say at the end."""
        out, asked, total = [], self.asked(), len(self.part)
        found = self.sequential
        if found is not None and found.decision == NOT_DECIDED:
            out.append(f"{self.task}: not decided at the last look ({found.n_asked:,} of {total:,} questions)")
        elif found is not None and found.n_asked < total:
            text = f"{self.task}: decided after {found.n_asked:,} of {total:,} questions ({found.decision})"
            if (more := asked - found.n_asked) > 0:
                text += (
                    f"; {more:,} more were under way, have no part in the decision and count in Inspect's own values "
                    "(fewer are with a lower --max-samples)"
                )
            out.append(text)
        if self.cut:
            out.append(f"{self.task}: it was ended before everything was asked, so what was asked is no random part")
        elif total < len(self.questions):
            out.append(f"{self.task}: a random part, {total:,} of {len(self.questions):,} questions")
        return out

    def inject(self, results: EvalResults) -> None:
        """The difference that was looked at, beside the score that it is of."""
        found, of = self.sequential, self.decides
        if found is None or of is None or self.other is None:
            return
        rows = [es for es in results.scores if of.scorer in (None, es.scorer) and es.reducer in (None, "mean")]
        keyed = [es for es in rows if es.name == of.key]
        if keyed or rows:
            difference((keyed or rows)[0], found.to_dict(), self.against)

    def _basis(self) -> dict[str, Any]:
        """On which scores it was decided, to be known again where they are changed; and what had no part in it."""
        if self.order is None or self.sequential is None:
            return {}
        rows = self.part[np.sort(self.order.asked(self.sequential.look))]
        part = self.scores(rows, self.epochs)
        late = sorted({i for i, _ in (*self.raw, *self.started)} - set(rows.tolist()))
        return {
            "fingerprint": fingerprint(part.questions.keys, part.values),
            "late": [self.questions.keys[i] for i in late],
        }

    def record(self) -> dict[str, Any]:
        """What the log is to know."""
        out: dict[str, Any] = {"version": __version__}
        if self.sequential is not None:
            out |= {"sequential": [self.sequential.to_dict() | self._basis()], "against": self.against}
        if (asked := self.asked()) < len(self.questions) and not self.cut:
            found = self.sequential
            seed = self.part_seed if self.asking.sample is not None or found is None else found.order_seed
            drawn = Drawn(
                task=self.task,
                n_asked=asked,
                n_total=len(self.questions),
                order_seed=seed,
                stopped_early=asked < len(self.part),
            )
            out["drawn"] = [drawn.to_dict()]
        if self.taken_clusters is not None:
            labels, words = self.taken_clusters
            out["clusters"] = {"spec": words, "labels": dict(zip(self.questions.keys, labels, strict=True))}
        if self.asking.repeats:
            out["repeats"] = {"asked": self.most or self.epochs, "most": self.epochs, "message": self.enough}
        return out


def picked(items: Sequence[str] | None, rows: Sequence[int]) -> tuple[str, ...] | None:
    return None if items is None else tuple(items[i] for i in rows)

"""Control of how much of one task is asked: until it is decided, a random subset, or epochs until they no longer pay.

A look takes complete blocks of answers only, whichever answers came first. What was under way when a look stops the
run is finished and counts in Inspect's values, not in the decision.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from harness_noise._version import __version__
from harness_noise.arrays import IntArray, picked
from harness_noise.data.native_values import fitting_bounds
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores
from harness_noise.errors import InputError, counted, error_message
from harness_noise.extra.stopping.growing import observe
from harness_noise.extra.stopping.observed import observe_mean, repeats_enough
from harness_noise.extra.stopping.rules import Look, Order
from harness_noise.results.parts import Drawn, Sequential
from harness_noise.settings import Settings

from ....asking import StoppingOptions, whole_number
from ....inspect_logs.flags import Flag
from ....inspect_logs.gather import grid, numbers
from ....inspect_logs.identity import fingerprint
from ....inspect_logs.inject import append_record
from ....inspect_logs.live import current
from ..options import checked

if TYPE_CHECKING:
    from anyio import Event
    from inspect_ai.log import EvalResults


logger = logging.getLogger("harness_noise")
AHEAD = 0.2
"""Share of the answers that may be asked beyond the last look, however many may be under way at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingSettings(StoppingOptions):
    """Settings for how much of a task is asked."""

    repeats: bool = False
    """True if epochs stop when they no longer pay."""
    seed: int | None = None

    @classmethod
    def of(cls, flag: Flag) -> StoppingSettings:
        """Return the stopping settings that a flag holds. Refuse those that are wrong or conflict.

        Raises:
            InputError: one that is not understood, or two that exclude each other.
        """
        options = flag.asking
        repeats, seed = options.get("repeats"), options.get("seed")
        seed = None if seed is None else whole_number(seed, "noise_seed")
        fields = checked(options, written, level=flag.settings.level, seed=seed or 0, idle=("metric", "seed"))
        if repeats not in (None, "auto"):
            raise InputError(f"noise_repeats {repeats!r}: write auto, or give a fixed number of answers by --epochs")
        if repeats and fields["rule"] is not None:
            raise InputError(
                "noise_repeats=auto and noise_until: both decide how many epochs are asked, so only one of the two can "
                "stop the run. Leave one out"
            )
        return cls(repeats=bool(repeats), seed=seed, **fields)


def written(option: str, value: object = "") -> str:
    """Return a setting as a user writes it in the metadata: `noise_OPTION` or `noise_OPTION=VALUE`."""
    return f"noise_{option}" + (f"={value}" if value != "" else "")


@dataclass(frozen=True, slots=True)
class DecidingScore:
    """The score of a task by which a run is stopped."""

    scorer: str | None
    """Name in the samples, None for the only scorer."""
    key: str | None
    """Key of its dictionaries."""
    metric: str
    called: str
    """The scorer's name in the rows of a log."""

    def value(self, scores: Mapping[str, Any]) -> Any:
        """Return, from all scores of one answer, the value that the stopping rule uses, None if missing."""
        score = scores.get(self.scorer) if self.scorer is not None else next(iter(scores.values()), None)
        value = getattr(getattr(score, "score", score), "value", None)
        return value.get(self.key) if isinstance(value, Mapping) else value


Answer = tuple[str, int]
"""Question and epoch."""


@dataclass(slots=True, eq=False, kw_only=True)
class Stopper:
    """One task that may be stopped."""

    task: str
    to_say: list[str]
    """Sentences for the end of the task, to which this class appends."""
    asking: StoppingSettings
    settings: Settings
    questions: Questions
    clusters: tuple[str, ...] | None
    epochs: int
    part: IntArray
    """The questions that are to be asked at most, ascending."""
    chances: Mapping[str, float] | None = None
    """Key of every question that was drawn → its probability, where these differ."""
    decides: DecidingScore | None = None
    other: Scores | None = None
    """The scores of the run to compare with."""
    against: str = ""
    """The model that it is of."""
    references: tuple[Run, ...] = ()
    """Runs that have answered the whole benchmark."""
    predictors: tuple[Run, ...] = ()
    """The runs among them that the looks learn from, besides the run compared with."""
    order: Order | None = None
    """Order of the positions in `part`. None without looks: then the epochs are the blocks."""
    order_seed: int | None = None
    part_seed: int | None = None
    taken_clusters: tuple[tuple[str, ...], str] | None = None
    """Clusters that are those of the run compared with, and their SPEC in words."""
    max_samples: int | None = None
    """Answers that Inspect lets be under way at once, where the user has said it: so many run ahead of an open look."""
    peak: int = 0
    """The most that have been under way at once."""
    fresh: bool = False
    """True once an answer was asked again. Before that only a retry's old answers come, and none may pass its look."""
    taken: Look | None = None
    enough: str | None = None
    """The reason why no further epochs are asked for."""
    most: int = 0
    """The number of epochs that are asked for, 0 for all."""
    off: bool = False
    """True if a fault has ended the looks. It does not change which questions are asked."""
    index: dict[str, int] = field(init=False)
    block: dict[Answer, int] = field(init=False)
    """The block of every answer of the part, counted from 0, in the order in which the answers are started."""
    sizes: list[int] = field(init=False)
    """Answers of each block."""
    left: list[int] = field(init=False)
    """Answers that each block still waits for."""
    begun: list[int] = field(init=False)
    """Answers of each block whose turn has come."""
    values: dict[Answer, Any] = field(default_factory=dict)
    """The value that decides, of every answer that has ended."""
    started: set[Answer] = field(default_factory=set)
    weighed: int = 1
    """Epochs that were looked at."""
    moved: Event | None = None
    """Event of the next look, for those who wait for their turn."""

    def __post_init__(self) -> None:
        keys, order = self.questions.keys, self.order
        self.index = {key: i for i, key in enumerate(keys)}
        if order is None:
            blocks = [(np.arange(len(self.part)), np.full(len(self.part), k + 1)) for k in range(self.epochs)]
        else:
            blocks = [order.pairs(number + 1) for number in range(len(order.ends))]
        self.block = {
            (keys[i], epoch): number
            for number, (places, epochs) in enumerate(blocks)
            for i, epoch in zip(self.part[places].tolist(), epochs.tolist(), strict=True)
        }
        self.sizes = [len(places) for places, _ in blocks]
        self.left, self.begun = list(self.sizes), [0] * len(blocks)

    def planned(self, plan: Sequence[tuple[int, int]]) -> list[int]:
        """Return the indices of Inspect's planned answers in the order to start them, unneeded ones last."""
        place = {answer: at for at, answer in enumerate(self.block)}
        return sorted(range(len(plan)), key=lambda at: place.get(self._answer(*plan[at]), len(place)))

    def _answer(self, i: int, epoch: int) -> Answer:
        return self.questions.keys[i], epoch

    async def turn(self, i: int, epoch: int) -> None:
        """Wait until this answer may start, so that few answers are running when the rule stops the run."""
        from anyio import Event

        block = self.block.get(self._answer(i, epoch))
        if block is None:
            return
        while not self._may_begin(block):
            self.moved = self.moved or Event()
            await self.moved.wait()
        self.begun[block] += 1

    def _may_begin(self, block: int) -> bool:
        """Return True if an answer of this block may start: a check needs it, or few run ahead of the next check."""
        if self.order is None or self.off or self.stopped or block <= self.looked:
            return True
        ahead, running = sum(self.sizes[self.looked : block]), sum(self.begun[self.looked + 1 :])
        return self.fresh and ahead <= AHEAD * len(self.block) and running < max(1, self.max_samples or self.peak)

    def _wake_waiting(self) -> None:
        """Wake all answers that wait for their turn, so that each checks again."""
        if self.moved is not None:
            self.moved.set()
            self.moved = None

    def reason(self, key: str, epoch: int) -> str | None:
        """Check the rule. Return why to skip an answer (stopped, undrawn, enough epochs), else None, noting a start."""
        answer = key, epoch
        if answer not in self.block:
            return None if self.asking.sample is None else f"not in the random subset of {len(self.part):,} questions"
        if answer in self.started:  # it is tried again
            return None
        self.look()
        if self.taken is not None and self.stopped:
            return self.taken.message
        if self.most and epoch > self.most:
            return self.enough
        self._seen(answer)
        if not self.fresh:
            self.fresh = True
            self._wake_waiting()
        return None

    def _seen(self, answer: Answer) -> None:
        self.started.add(answer)
        self.peak = max(self.peak, len(self.started) - len(self.values))

    def answered(self, key: str, epoch: int, scores: Mapping[str, Any]) -> None:
        """Record an answer that has ended, with its scores if any, and check the stopping rule."""
        answer = key, epoch
        if answer in self.block:
            self._seen(answer)
            self._count(answer, None if self.decides is None else self.decides.value(scores))

    def ended(self, i: int, epoch: int) -> None:
        """Record a sample that has ended in any way. One without scores counts as missing."""
        self._end(self._answer(i, epoch))

    def _end(self, answer: Answer) -> None:
        if answer in self.values or self.stopped or answer not in self.block:
            return
        if answer not in self.started and not (self.most and answer[1] > self.most):
            # the run is ended from outside: only the fast answers of the rest would be seen
            self._give_up("a sample was cancelled before it began")
        self._count(answer, None)

    def _count(self, answer: Answer, value: Any) -> None:
        if answer not in self.values:
            self.left[self.block[answer]] -= 1
        self.values[answer] = value
        self.look()

    def look(self) -> None:
        """Check the stopping rule for each block (or the epochs) now complete. After an error never check again."""
        try:
            if self.off:
                return
            if self.asking.repeats:
                self._decide_on_epochs()
            while self.order is not None and self._next_block_is_complete():
                self._take(self.order)
        except Exception as error:  # noqa: BLE001  a guest never takes the host down
            self.fault(error)

    def _next_block_is_complete(self) -> bool:
        """Return True if all answers needed for the next check of the stopping rule have come."""
        return not self.stopped and self.looked < len(self.left) and not self.left[self.looked]

    def _take(self, order: Order) -> None:
        assert self.asking.rule is not None
        mine = [self.scores(self.looked + 1)]
        if self.other is None:
            observed = observe_mean(mine, self.settings)
        else:
            observed = observe(mine, [self.other], self.settings, references=self.predictors)
        seed = order.seed if order.seed is not None else self.order_seed
        self.taken = self.asking.rule.look(replace(order, seed=seed), self.taken, observed)
        self._wake_waiting()
        self._say(self.taken.message if self.taken.decision else f"{self.taken.message} (no problem)")

    def _decide_on_epochs(self) -> None:
        """Ask no further epochs (see `most`) if the complete ones show that more would not pay. Say what was found."""
        epochs = next((k for k, left in enumerate(self.left) if left), self.epochs)
        if self.most or epochs <= self.weighed:
            return
        verdict = repeats_enough(self.scores(epochs), self.settings)
        self.weighed = epochs
        if verdict.enough and epochs < self.epochs:
            self.most, self.enough = epochs, verdict.message
        self._say(verdict.message)

    def _say(self, text: str) -> None:
        logger.warning("noise: %s: %s", self.task, text)

    def scores(self, blocks: int) -> Scores:
        """Return the deciding scores of the first blocks of answers, NaN for missing. Raise an error for words.

        Raises:
            InputError: one that is no number.
        """
        assert self.decides is not None
        answers = list(islice(self.block, sum(self.sizes[:blocks])))
        read = numbers([self.values.get(answer) for answer in answers])
        if read.words:
            raise InputError(f"{self.decides.called} has scores that are no numbers, such as {read.example!r}")
        places = grid([key for key, _ in answers], [epoch for _, epoch in answers], order=self.questions.keys)
        rows, values = [self.index[key] for key in places.keys], places.fill(read.values)
        other, accuracy = self.other, self.decides.metric == "accuracy"
        return Scores(
            task=self.task,
            metric=self.decides.metric,
            scorer=self.decides.called,
            questions=self.questions.at(rows),
            values=values,
            clusters=picked(self.clusters, rows),
            chances=self.chances,
            higher_is_better=(True if accuracy else None) if other is None else other.higher_is_better,
            bounds=(fitting_bounds((0.0, 1.0), values) if accuracy else None) if other is None else other.bounds,
        )

    def fault(self, error: Exception) -> None:
        """Stop checking the rule after an error, so that the run goes on to its end."""
        self._give_up(error_message(error))

    def _give_up(self, why: str) -> None:
        if not self.off:
            self.off = True
            self._wake_waiting()
            self.to_say.append(f"{self.task}: it goes on to its end ({why})")

    @property
    def looked(self) -> int:
        """Number of times that the stopping rule has been checked."""
        return 0 if self.taken is None else self.taken.sequential.look

    @property
    def outcome(self) -> Sequential | None:
        """Results of the last check of the stopping rule for the report, None before the first."""
        return None if self.taken is None else self.taken.sequential

    @property
    def stopped(self) -> bool:
        """True if the stopping rule has ended the run."""
        return self.taken is not None and self.taken.stop

    @property
    def cut(self) -> bool:
        """True if the run was interrupted from outside before all answers were asked for, not by the rule."""
        wanted = set(islice(self.block, sum(self.sizes[: self.most or None])))
        return not (self.stopped or wanted <= self.started)

    def answers(self) -> set[Answer]:
        """Return all answers (question key, epoch) that were started or have ended."""
        return {*self.values, *self.started}

    def _late(self) -> list[Answer]:
        """Return the answers that came too late to be part of the last check of the stopping rule."""
        late = [answer for answer in self.answers() if self.block[answer] >= self.looked]
        return sorted(late, key=lambda answer: (self.index[answer[0]], answer[1]))

    def summary(self) -> list[str]:
        """Return sentences for the task's end: late answers, and whether what was asked is a random subset."""
        out = []
        if self.stopped and (more := len(self._late())):
            out.append(
                f"{self.task}: {counted(more, 'answer was', 'answers were')} under way when the run was stopped: "
                "no part of the decision, but of Inspect's own values (a lower --max-samples makes them fewer)"
            )
        if self.cut:
            out.append(
                f"{self.task}: it was ended before everything was asked, so what was asked is not a random subset"
            )
        elif len(self.part) < len(self.questions):
            out.append(f"{self.task}: a random subset, {len(self.part):,} of {len(self.questions):,} questions")
        return out

    def inject(self, results: EvalResults) -> None:
        """Add the last look's difference from the compared run, if any, to the deciding score in Inspect's results."""
        sequential, of = self.outcome, self.decides
        if sequential is None or of is None or self.other is None:
            return
        rows = [es for es in results.scores if of.scorer in (None, es.scorer) and es.reducer in (None, "mean")]
        if first := [es for es in rows if es.name == of.key] or rows:
            append_record(first[0], "sequential", sequential.to_dict(), against=self.against)

    def close(self) -> dict[str, Any]:
        """Count unfinished answers as missing at the task's end, add closing sentences. Return the log's record."""
        for answer in self.started:
            self._end(answer)
        self.to_say += self.summary()
        return self.record()

    def record(self) -> dict[str, Any]:
        """Return a dict for the log on what was asked and decided, with a hash of the scores to detect changes."""
        out: dict[str, Any] = {"version": __version__}
        last, answers = self.outcome, self.answers()
        if last is not None:
            part = self.scores(self.looked)
            mark, late = fingerprint(part.questions.keys, part.values), [list(answer) for answer in self._late()]
            out["sequential"] = [last.to_dict() | {"fingerprint": mark, "late": late}]
            out["against"] = self.against
        early = self.stopped and len(answers) < len(self.block)
        n_asked = len({key for key, _ in answers}) if self.stopped else len(self.part)
        if (n_asked < len(self.questions) or early) and not self.cut:
            drawn = Drawn(
                task=self.task,
                n_asked=n_asked,
                n_total=len(self.questions),
                order_seed=self.part_seed if self.asking.sample is not None or last is None else last.order_seed,
                stopped_early=early,
                chances=self.chances,
            )
            out["drawn"] = [drawn.to_dict()]
        if self.taken_clusters is not None:
            clusters, words = self.taken_clusters
            out["clusters"] = {"spec": words, "cluster_of": dict(zip(self.questions.keys, clusters, strict=True))}
        if self.asking.repeats:
            out["repeats"] = {"asked": self.most or self.epochs, "most": self.epochs, "message": self.enough}
        return out


def current_stopper() -> Stopper | None:
    """Return the object that may stop the task now running, None if there is none."""
    live = current.get()
    found: Stopper | None = None if live is None else live.stopper
    return found

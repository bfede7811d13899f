"""Check that two runs score equal answers alike. Otherwise their scores differ by the scoring and not by the models.

Texts are read again for this, and only as far as they can matter: first the answers to at most `PROBED` questions that
the two runs score differently. If none of these answers is the same in both runs, the scoring explains (with 95%
confidence) at most 1.5% of what the runs differ by, and no more is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray, HashArray, IntArray
from ..data.notes import Note
from ..data.scores import Scores
from ..errors import InputError, some_of
from ..results.rows import EqualAnswers, JudgeFlips
from ..stats.tolerances import SLACK
from .sample import scored_pairs

OTHER_VERSION = "other_version"
FEWEST, SHARE = 5, 0.05
"""Limits from which the scoring differs: number and share of equal answers that are scored differently."""
PROBED = 200
"""Questions that are checked first, among those whose scores differ."""
_FIRST = 10
"""Questions whose answers are looked at to see whether a run has texts at all (not log-likelihoods, not agents)."""


def scored_differently(found: EqualAnswers | None) -> bool:
    """Return True if so many equal answers got different scores that the verdict is withheld."""
    return found is not None and found.n_differ >= max(FEWEST, SHARE * found.n_equal)


@dataclass(frozen=True, slots=True)
class Checked:
    """All that the equal answers of two runs say."""

    equal: EqualAnswers | None = None
    """The counts, None if no answer is known to be scored differently."""
    judge: JudgeFlips | None = None
    """The flips of a judge, if one gave the scores, None if none is known."""


def join_checks(each: Iterable[Checked]) -> Checked:
    """Add up tasks' equal answers (if some are scored differently, theirs only). Judge's flips: of a sole task."""
    found = list(each)
    equal = [one.equal for one in found if one.equal is not None]
    equal = [one for one in equal if scored_differently(one)] or equal
    judges = [one.judge for one in found if one.judge is not None]
    return Checked(
        EqualAnswers(n_equal=sum(x.n_equal for x in equal), n_differ=sum(x.n_differ for x in equal)) if equal else None,
        judges[0] if len(found) == 1 and judges else None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """Two of several runs' scores, and the questions that both have, as row numbers of equal length."""

    a: int
    b: int
    rows_a: IntArray
    rows_b: IntArray


def has_texts(part: Scores) -> bool:
    """Return True if these are scores of single answers whose texts are stored or can be read."""
    plain = part.unit is None and part.per is None and part.corrected is None
    return plain and (part.answers is not None or part.texts is not None)


def scoring_of(a: Scores, b: Scores) -> Checked:
    """Count two runs' equal answers and those scored differently. Empty if a probe finds none or texts lack."""
    if not (has_texts(a) and has_texts(b)):
        return Checked()
    pairing = scored_pairs(a, b)
    rows_a, rows_b = (np.array(at, dtype=np.intp) for at in (pairing.rows_a, pairing.rows_b))
    return check_scoring([a, b], [Shared(0, 1, rows_a, rows_b)])[0]


def check_scoring(parts: Sequence[Scores], pairs: Sequence[Shared]) -> list[Checked]:
    """Return `Checked` for each pair of runs: equal answers, those scored differently. Empty if a probe finds none.

    Args:
        parts: one task, metric and scorer of each run.
        pairs: which of them are compared, on which of their questions.

    An answer is one repeat where both runs have equally many; else the texts of a question are compared as sets.
    """
    texts = [_Texts(part) for part in parts]
    asked = [pair for pair in pairs if texts[pair.a].usable and texts[pair.b].usable and len(pair.rows_a)]
    differ = {id(pair): _scores_differ(parts[pair.a], parts[pair.b], pair) for pair in asked}
    asked = [pair for pair in asked if differ[id(pair)].any()]
    _read_answer_texts(texts, ((pair, _spread_places(len(pair.rows_a), _FIRST)) for pair in asked))
    asked = [pair for pair in asked if texts[pair.a].any and texts[pair.b].any]
    probes = {id(pair): _probed(differ[id(pair)]) for pair in asked}
    _read_answer_texts(texts, ((pair, probes[id(pair)]) for pair in asked))
    asked = [pair for pair in asked if _count_equal(texts, pair, probes[id(pair)])[1]]
    _read_answer_texts(texts, ((pair, np.arange(len(pair.rows_a))) for pair in asked))
    found = {id(pair): _check_of_pair(texts, pair) for pair in asked}
    return [found.get(id(pair), Checked()) for pair in pairs]


def _scores_differ(a: Scores, b: Scores, pair: Shared) -> BoolArray:
    """Return (m,) True for shared questions whose scores differ, repeat by repeat (other K: lowest or highest)."""
    x, y = a.values[pair.rows_a], b.values[pair.rows_b]
    if x.shape == y.shape:
        return np.asarray(_differ_beyond_rounding(x, y).any(axis=1))
    lowest, highest = (
        _differ_beyond_rounding(end.reduce(x, axis=1), end.reduce(y, axis=1)) for end in (np.fmin, np.fmax)
    )
    return lowest | highest


def _differ_beyond_rounding(x: FloatArray, y: FloatArray) -> BoolArray:
    """Return True for each pair of scores that differ by more than rounding error. False if one is missing."""
    return np.asarray(np.abs(x - y) > SLACK * np.maximum(1.0, np.abs(x)))


def _spread_places(n: int, most: int) -> IntArray:
    """Return at most `most` of the indexes 0 … n − 1, evenly spaced, both ends included."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


def _probed(differ: BoolArray) -> IntArray:
    places = np.flatnonzero(differ)
    return np.asarray(places[_spread_places(len(places), PROBED)])


FEWEST_ALIKE, OTHERS = 20, 0.5
"""Questions, and share of their answers with other words, from which equal scores are told of."""


def alike_note(a: Scores, b: Scores) -> Note | None:
    """Return a note if two runs have equal scores everywhere although their answer texts differ. None if not.

    The scores may then be a property of the questions, as a column of difficulties or of points to be had is. None:
    they are not, or not known to be.
    """
    if a.answers is None or b.answers is None or not (has_texts(a) and has_texts(b)):
        return None
    pairing = scored_pairs(a, b)
    rows_a, rows_b = list(pairing.rows_a), list(pairing.rows_b)
    x, y = a.values[rows_a], b.values[rows_b]
    if (
        len(x) < FEWEST_ALIKE
        or x.shape != y.shape
        or not np.array_equal(x, y, equal_nan=True)
        or np.ptp(x[x == x]) == 0
    ):
        return None
    try:
        words_a, words_b = a.answers.hashes(rows_a), b.answers.hashes(rows_b)
    except InputError:
        return None
    known = (words_a != 0) & (words_b != 0)
    if not known.any() or np.mean(words_a[known] != words_b[known]) < OTHERS:
        return None
    said = (
        f"{len(x)} questions have the same score in both runs though most answers differ: the column may be a property "
        "of the question, and no score of the answers"
    )
    return Note("alike_scores", said).of(a.task, a.metric)


class _Texts:
    """The hashes of one run's answers, as far as they have been read."""

    def __init__(self, part: Scores) -> None:
        self.part, source = part, part.answers
        self.usable = has_texts(part)
        self.hashes = np.zeros(part.values.shape, dtype=np.uint64)
        self.known = np.zeros(len(self.hashes), dtype=np.bool_)
        if source is None and part.texts is not None:
            self.hashes, self.known = part.texts, np.ones_like(self.known)

    @property
    def any(self) -> bool:
        """True if at least one of the answers read has a text."""
        return bool(self.hashes[self.known].any())

    def read(self, rows: IntArray) -> None:
        """Store the answers' text hashes for the questions in these rows. An unreadable log marks them unusable."""
        wanted = np.unique(rows[~self.known[rows]])
        if not len(wanted) or self.part.answers is None:
            return
        try:
            self.hashes[wanted] = self.part.answers.hashes(wanted.tolist())
        except InputError:
            self.usable = False
        self.known[wanted] = True


def _read_answer_texts(texts: Sequence[_Texts], wanted: Iterable[tuple[Shared, IntArray]]) -> None:
    """Store in `texts` the answers that several pairs of runs need on these questions. Read each run's log once."""
    rows: dict[int, list[IntArray]] = {}
    for pair, places in wanted:
        rows.setdefault(pair.a, []).append(pair.rows_a[places])
        rows.setdefault(pair.b, []).append(pair.rows_b[places])
    for run, each in rows.items():
        texts[run].read(np.concatenate(each))


def _hashes_and_scores(texts: Sequence[_Texts], pair: Shared, places: IntArray) -> list[tuple[HashArray, FloatArray]]:
    """Return (text hashes, scores), both (m, K), of A and of B on these questions. Hash 0 if unscored."""
    out = []
    for run, rows in ((pair.a, pair.rows_a[places]), (pair.b, pair.rows_b[places])):
        values = texts[run].part.values[rows]
        out.append((np.where(np.isnan(values), np.uint64(0), texts[run].hashes[rows]), values))
    return out


def _count_equal(texts: Sequence[_Texts], pair: Shared, places: IntArray) -> tuple[int, int, float]:
    """Count answers of equal text (same repeat, other K: any), those scored differently, and their Σ (a − b)²/2."""
    (text_a, a), (text_b, b) = _hashes_and_scores(texts, pair, places)
    if a.shape == b.shape:
        equal = (text_a == text_b) & (text_a != 0)
        apart = equal & _differ_beyond_rounding(a, b)
        return int(equal.sum()), int(apart.sum()), float((np.where(apart, a - b, 0.0) ** 2).sum() / 2)
    n_equal, n_differ, squares = 0, 0, 0.0
    for row_a, row_b, x, y in zip(text_a, text_b, a, b, strict=True):
        for text in set(row_a.tolist()) & set(row_b.tolist()) - {0}:
            mean_a, mean_b = x[row_a == text].mean(), y[row_b == text].mean()
            n_equal, n_differ = n_equal + 1, n_differ + bool(_differ_beyond_rounding(mean_a, mean_b))
            squares += float(mean_a - mean_b) ** 2 / 2
    return n_equal, n_differ, squares


def _check_of_pair(texts: Sequence[_Texts], pair: Shared) -> Checked:
    """Count the equal answers that two runs score differently: as a scoring fault, or as judge noise."""
    every = np.arange(len(pair.rows_a))
    n_equal, n_differ, squares = _count_equal(texts, pair, every)
    judged = any(texts[run].part.judged for run in (pair.a, pair.b))
    if not (judged or any(_scored_in_two_ways(*side) for side in _hashes_and_scores(texts, pair, every))):
        return Checked(EqualAnswers(n_equal=n_equal, n_differ=n_differ))
    return Checked(
        judge=JudgeFlips(
            of="runs",
            n_same_text=n_equal,
            n_flips=n_differ,
            rate=n_differ / n_equal,
            variance=squares / n_equal,
            share=None,
        )
    )


def _scored_in_two_ways(texts: HashArray, values: FloatArray) -> bool:
    """Return True if one run scored the same text on the same question in two different ways."""
    order = np.argsort(texts, axis=1, kind="stable")
    texts, values = np.take_along_axis(texts, order, axis=1), np.take_along_axis(values, order, axis=1)
    same = (texts[:, 1:] == texts[:, :-1]) & (texts[:, 1:] != 0)
    return bool((same & _differ_beyond_rounding(values[:, 1:], values[:, :-1])).any())


def said_of(found: EqualAnswers) -> str:
    """Return the sentence "60 of 60 equal answers are scored differently", with these counts."""
    be = "is" if found.n_differ == 1 else "are"
    return f"{found.n_differ:,} of {found.n_equal:,} equal answers {be} scored differently"


def differently_note(about: str, found: EqualAnswers) -> Note:
    """Return the note that a verdict is withheld because equal answers are scored differently."""
    return Note("scored_differently", f"{about}: {said_of(found)}: the scoring differs, not the models")


def equal_note(about: str, found: EqualAnswers) -> Note:
    """Return the note that some equal answers are scored differently, too few to withhold the verdict."""
    said = f"{about}: {said_of(found)} by the two runs, so a small part of A − B is the scoring"
    return Note("some_scored_differently", said)


def judge_note(about: str, found: JudgeFlips) -> Note:
    """Return the note that gives these counts of equal answers that the judge scored differently in two runs."""
    said = (
        f"{about}: the judge scores {found.n_flips:,} of {found.n_same_text:,} equal answers differently in the two "
        "runs, which is its own noise"
    )
    return Note("judge_flips", said)


_LONGEST = 60


def other_versions(a: Scores, b: Scores) -> list[str]:
    """Return texts on how two runs' scoring differs: task version, packages, options. [] if equal or unknown."""
    pairs = [("task version", a.version, b.version)]
    pairs += [(what, value, b.scored_with[what]) for what, value in a.scored_with.items() if what in b.scored_with]
    differ = [(what, *both) for what, *both in pairs if all(both) and both[0] != both[1]]
    return [f"{what} {_short(mine)} and {_short(theirs)}" for what, mine, theirs in differ]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def version_note(task: str, differ: Sequence[str]) -> Note:
    """Return the note that two runs were scored with other versions or options."""
    said = f"the two runs were scored with other versions or options: {some_of(list(differ), 4, '; ')}"
    return Note(OTHER_VERSION, said).of(task)

"""Scores that cannot be are refused where they are made, and named after the adapter that makes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness_noise as hn
from harness_noise.analysis.comparison import compare_runs
from harness_noise.data.questions import Hashes, Questions, content_hash, distinct_strings, occurrences
from harness_noise.data.scores import CorpusScores, ReadOptions, Run, Scores
from harness_noise.errors import FaultyScoresError, InputError
from harness_noise.extra.arena.build import arena
from harness_noise.io import registry as adapters
from harness_noise.settings import Settings
from harness_noise.stats.tolerances import FEWEST_REPEATED
from support.notes import noted


def scores(keys: tuple[str, ...], values: list[float], **fields: object) -> Scores:
    array = np.array(values, dtype=np.float64)[:, None]
    return Scores("t", "acc", "none", Questions(keys), array, **fields)  # type: ignore[arg-type]


def test_clusters_are_given_by_name():
    """By position they could be taken for the next field."""
    with pytest.raises(TypeError, match="positional"):
        Scores("t", "acc", "none", Questions(("a", "b")), np.ones((2, 1)), ("x", "y"))  # type: ignore[misc]


def test_a_key_that_occurs_twice_is_noticed():
    for keys in (("a", "a", "b", "c", "d"), ("b", "a", "a", "d", "c")):
        with pytest.raises(FaultyScoresError, match="two questions have the key 'a'"):
            scores(keys, [1, 0, 1, 1, 0])


@given(st.lists(st.lists(st.sampled_from(["ab" * 4, "cd" * 4, "AB" * 4, "ab", "", " " * 8, "a", "é" * 8]), max_size=5)))
def test_hashes_are_packed_at_once_as_one_by_one(parts):
    one_by_one, at_once = Hashes(), Hashes()
    for part in parts:
        at_once.extend(part)
        for text in part:
            one_by_one.append(text)
    assert at_once == one_by_one
    assert list(at_once) == [text for part in parts for text in part]
    assert list(at_once.odd()) == list(one_by_one.odd())


def test_a_packed_key_that_occurs_twice_is_noticed():
    hashes = [content_hash(str(i)) for i in range(3000)]
    packed = Hashes()
    packed.extend(hashes)
    assert Questions(packed).keys is packed
    packed.append(hashes[17])
    with pytest.raises(FaultyScoresError, match=hashes[17]):
        Questions(packed)
    packed.replace(3000, f"{hashes[17]}#2")
    assert len(Questions(packed)) == 3001


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"values": np.zeros((2, 1))}, r"scores of the shape \(2, 1\) for 3 questions"),
        ({"values": np.zeros(3)}, r"scores of the shape \(3,\)"),
        ({"values": np.ma.zeros((3, 1))}, "masked. Give NaN where there is none"),
        ({"values": np.zeros((3, 1)), "clusters": ("a", "b")}, "2 cluster names for 3 questions"),
        ({"values": np.zeros((3, 2)), "factors": {"p": (("x",),) * 3}}, "levels of p"),
    ],
)
def test_lengths_that_differ_are_noticed(fields, message):
    with pytest.raises(FaultyScoresError, match=message):
        Scores("t", "acc", "none", Questions(("a", "b", "c")), **fields)


def test_so_are_those_of_questions_and_records():
    with pytest.raises(FaultyScoresError, match="2 questions and 1 inputs"):
        Questions(("a", "b"), inputs=("x",))
    with pytest.raises(FaultyScoresError, match="records of 1 questions for 2"):
        CorpusScores("t", "f1", "none", Questions(("a", "b")), records=((1,),), aggregate=sum)
    assert CorpusScores("t", "f1", "none", Questions(("a", "b"))).records == ()  # only its name is known


def test_an_adapters_mistake_is_an_error_with_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    class Wrong:
        name = "wrong"

        def sniff(self, path: Path) -> bool:
            return path.suffix == ".csv"

        def read(self, path: Path, options: ReadOptions) -> list[Run]:
            return [Run("m", str(path), "wrong", scores=(scores(("a", "a"), [0, 1]),))]

    wrong = Wrong()
    real = adapters.load
    monkeypatch.setattr(adapters, "names", lambda: ["wrong", "table"])
    monkeypatch.setattr(adapters, "load", lambda name: wrong if name == "wrong" else real(name))
    path = tmp_path / "x.csv"
    path.write_text("question,score\na,1\nb,0\n")
    with pytest.raises(InputError, match=r"x\.csv: the adapter 'wrong' returned impossible scores .*'a'"):
        adapters.read(path)
    runs, errors = adapters.read_what_can_be([path])
    assert not runs
    assert "'wrong'" in str(errors[0])


def test_distinct_counts_what_is_packed_and_what_is_not():
    items = [content_hash(str(i % 50)) for i in range(200)] + ["odd", "odd", "odder", ""]
    packed = Hashes()
    packed.extend(items)
    assert distinct_strings(packed) == distinct_strings(tuple(items)) == 53
    assert distinct_strings(Hashes()) == 0


# what a split may rest on


@pytest.mark.parametrize("repeated", [1, FEWEST_REPEATED - 1, FEWEST_REPEATED, 60])
def test_a_handful_of_repeated_questions_gives_no_split(repeated):
    rng = np.random.default_rng(0)
    values = np.full((60, 2), np.nan)
    values[:, 0] = rng.random(60) < 0.5
    values[:repeated, 1] = 1 - values[:repeated, 0]
    e = hn.estimate(values)
    if repeated < FEWEST_REPEATED:
        assert (e.se_prediction, e.var_data) == (None, None)
        assert "single_repeat" in e.diagnostics
        assert "partly_single_repeat" not in e.diagnostics
    else:
        assert e.var_prediction == pytest.approx(0.5 / 60)
        assert ("partly_single_repeat" in e.diagnostics) == (repeated < 60)


@pytest.mark.parametrize("repeated", [4, 30])
def test_the_arena_splits_where_compare_does(repeated):
    rng = np.random.default_rng(1)
    runs = []
    for name in "ab":
        values = np.full((50, 2), np.nan)
        values[:, 0] = rng.random(50) < 0.5
        values[:repeated, 1] = rng.random(repeated) < 0.5
        part = Scores("t", "acc", "none", Questions(tuple(map(str, range(50)))), values)
        runs.append(Run(name, name, "array", scores=(part,)))
    row = compare_runs([(runs[0], runs[1])], Settings()).comparisons[0]
    (board,) = arena(runs, Settings()).boards
    pair = board.pairs[0]
    assert (pair.se_prediction is None) == (row.se_prediction is None) == (repeated == 4)
    assert pair.var_prediction == (None if repeated == 4 else pytest.approx(row.var_prediction))


# one benchmark under two names


def named(model: str, harness: str, task: str, metric: str, values: list[float], keys: str = "q") -> Run:
    questions = Questions(tuple(f"{keys}{i}" for i in range(len(values))))
    part = Scores(task, metric, "none", questions, np.array(values)[:, None], higher_is_better=True)
    return Run(model, model, harness, scores=(part,))


def test_the_arena_joins_what_two_harnesses_measured_as_compare_does():
    a = named("a", "inspect", "gpqa", "accuracy", [1, 0, 1, 1, 0, 1])
    b = named("b", "table", "table", "score", [1, 0, 0, 1, 0, 1])
    c = named("c", "table", "table", "score", [0, 0, 0, 1, 0, 1])
    result = arena([a, b, c], Settings())
    (board,) = result.boards
    assert [model.model for model in board.models] == ["a", "b", "c"]
    assert [note for note in noted(result) if note == "compared gpqa / accuracy of a with table / score of b"]
    row = compare_runs([(a, b)], Settings()).comparisons[0]
    assert (board.pairs[0].diff, board.pairs[0].se) == pytest.approx((row.diff, row.se))


def test_it_joins_neither_other_questions_nor_other_metrics_of_one_harness():
    a = named("a", "inspect", "gpqa", "accuracy", [1, 0, 1])
    for other in (
        named("b", "table", "table", "score", [1, 0, 0], keys="other"),
        named("b", "inspect", "gpqa", "f1", [1, 0, 0]),
    ):
        with pytest.raises(InputError, match="no two runs measured the same"):
            arena([a, other], Settings())


def test_numbered_occurrences_are_unique():
    assert len(Questions(occurrences(("a", "a", "a#2", "a")))) == 4

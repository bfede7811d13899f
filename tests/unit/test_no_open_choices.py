"""A choice that nobody has implemented is refused, and never computed as another one under the new name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import settings as choices
from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_run
from harness_noise.choices import ESTIMATORS, Register
from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores, Group, Run, Scores
from harness_noise.errors import of_choice
from harness_noise.extra.arena.build import arena
from harness_noise.extra.boundaries import error_spent
from harness_noise.report.canvas import Picture, svg
from harness_noise.settings import Settings
from harness_noise.stats.contrast import design
from harness_noise.stats.resampling import bootstrap

NEW = "tomorrow's"


def run(name: str, seed: int, weighting: str = "size") -> Run:
    rng = np.random.default_rng(seed)
    q = Questions(tuple(f"q{i}" for i in range(40)), "id")
    tasks = ("t", "u")
    scores = tuple(
        Scores(task, "acc", "none", q, (rng.random((40, 2)) < 0.6) * 1.0, bounds=(0.0, 1.0)) for task in tasks
    )
    group = Group("both", "acc", "none", tasks, weighting=weighting)  # type: ignore[arg-type]
    sums = rng.random((40, 1, 1))
    whole = CorpusScores("t", "f1", "none", q, stats=sums, value=lambda x: x[..., 0] / 40, bounds=(0.0, 1.0))
    return Run(name, name, "array", scores=scores, groups=(group,), corpus=(whole,))


def with_value(field: str) -> Settings:
    """Settings of which one has a value that a later version may know."""
    out = Settings()
    object.__setattr__(out, field, NEW)
    return out


@pytest.fixture(autouse=True)
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the value had been registered: the metadata refuses nothing."""
    monkeypatch.setattr(Settings, "check", lambda *args, **more: None)
    monkeypatch.setattr(choices, "check_one_of", lambda *args: None)
    monkeypatch.setattr(Register, "check", lambda *args: None)


A, B = run("a", 1), run("b", 2)
FIELDS = ("interval", "test", "se", "adjust", "repeats_are", "questions_are")


@pytest.mark.parametrize("field", [name for name in FIELDS if name not in ("test", "adjust")])
def test_the_mean_of_one_run(field: str) -> None:
    with pytest.raises(NotImplementedError, match=NEW):
        analyze_run(A, with_value(field))


def test_a_metric_over_all_questions_at_once() -> None:
    alone = Run("a", "a", "array", corpus=A.corpus)
    with pytest.raises(NotImplementedError, match=NEW):
        analyze_run(alone, with_value("interval"))
    with pytest.raises(NotImplementedError, match=NEW):
        compare_runs([(alone, Run("b", "b", "array", corpus=B.corpus))], with_value("test"))


@pytest.mark.parametrize("field", [name for name in FIELDS if name != "interval"])  # of one run, or the test's
def test_the_difference_of_two_runs(field: str) -> None:
    with pytest.raises(NotImplementedError, match=NEW):
        compare_runs([(A, B)], with_value(field))


@pytest.mark.parametrize("field", FIELDS)
def test_all_pairs_of_an_arena(field: str) -> None:
    with pytest.raises(NotImplementedError, match=NEW):
        arena([A, B, run("c", 3)], with_value(field))


def test_what_is_no_setting() -> None:
    with pytest.raises(NotImplementedError, match=NEW):
        analyze_run(run("a", 1, weighting=NEW), Settings())
    with pytest.raises(NotImplementedError, match=NEW):
        error_spent(0.5, 0.05, NEW)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match=NEW):
        svg(Picture("name", "title", "alt", "", 10), NEW)  # type: ignore[arg-type]
    drawn = bootstrap(np.arange(30.0), design(30, None), 99, np.random.default_rng(1))
    assert drawn is not None
    for read in (lambda: drawn.interval(0.95, NEW), lambda: drawn.p_value(0.0, NEW)):  # type: ignore[arg-type]
        with pytest.raises(NotImplementedError, match=NEW):
            read()
    with pytest.raises(NotImplementedError, match="knows a, b"):
        of_choice("letter", "c", {"a": 1, "b": 2})


def test_every_value_that_there_is_is_computed() -> None:
    """The other side: no value of today is refused as unknown."""
    assert ESTIMATORS.named() == ("cr0", "cr1", "cr2", "cr3")
    for name in ESTIMATORS.named():
        assert hn.estimate(np.arange(12.0) % 2, se=name).se is not None
    for name in ("t", "sign", "permutation", "bootstrap", "wild"):
        assert hn.estimate_difference(np.arange(12.0) % 2, np.arange(12.0) % 3 > 0, test=name).p_value is not None


def chains(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Ladders over the values of one name that end in an `else` which takes all others for one of them."""

    def subject(test: ast.expr) -> str | None:
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            (value,) = test.comparators
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                return ast.unparse(test.left)
        return None

    for node in ast.walk(tree):
        if not isinstance(node, ast.If) or (name := subject(node.test)) is None:
            continue
        last, length = node, 1
        while len(last.orelse) == 1 and isinstance(last.orelse[0], ast.If) and subject(last.orelse[0].test) == name:
            last, length = last.orelse[0], length + 1
        if length > 1 and last.orelse and not isinstance(last.orelse[0], ast.Raise):
            yield node.lineno, name


def test_no_ladder_over_choices_has_an_open_end() -> None:
    root = Path(hn.__file__).parent
    found = [
        (path.name, line, name) for path in root.rglob("*.py") for line, name in chains(ast.parse(path.read_text()))
    ]
    assert found == []

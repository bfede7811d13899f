"""Estimators, intervals and tests are registered objects, which packages outside add to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import choices
from harness_noise.choices import (
    ESTIMATORS,
    INTERVALS,
    REGISTERS,
    TESTS,
    DifferenceTest,
    Estimator,
    IntervalMethod,
    T,
    check_partners,
    register,
)
from harness_noise.cli import main
from harness_noise.cli.commands import COMMANDS
from harness_noise.report.choices import page
from harness_noise.report.text import render
from harness_noise.stats.decision import Test as Decided
from harness_noise.stats.intervals import Limits

SCORES = (np.arange(40)[:, None] * 7 % 10 < np.array([6, 6])).astype(float)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """The registers as they were, after each test."""
    kept = {name: dict(each._items) for name, each in REGISTERS.items()}
    yield
    for name, items in kept.items():
        REGISTERS[name]._items = items


def add_one_of_each() -> None:
    """All that a package outside writes."""
    register(Estimator(name="double", title="Double", words="Twice CR0.", leverage=np.ones_like,
                       small_sample=lambda G: np.full_like(G, 2.0)))  # fmt: skip
    register(IntervalMethod(name="two-se", title="Two SE", words="The mean ± 2 SE.", beside="estimate analyze",
                      domain=lambda of: "" if of.df >= 5 else "needs 5 degrees of freedom",
                      of_mean=lambda of: Limits(of.mean - 2 * of.se, of.mean + 2 * of.se)))  # fmt: skip
    register(DifferenceTest(name="coin", title="a coin", words="A coin that fell already.", beside="compare",
                            of_difference=lambda drawn: Decided(np.array([0.25]), by_p=True)))  # fmt: skip


@pytest.fixture
def tables(tmp_path: Path) -> list[str]:
    paths = []
    for model, scores in (("a", SCORES), ("b", SCORES[::-1])):
        lines = [f"{i},{k},{int(scores[i, k])}" for i in range(len(scores)) for k in range(2)]
        (tmp_path / f"{model}.csv").write_text("\n".join(["question,repeat,score", *lines]) + "\n")
        paths.append(str(tmp_path / f"{model}.csv"))
    return paths


def test_a_registered_choice_is_computed_printed_and_documented(tables: list[str]) -> None:
    add_one_of_each()
    one = hn.analyze(tables[0], interval="two-se", se="double")
    (row,) = one.estimates
    assert row.se == pytest.approx(np.sqrt(2) * hn.analyze(tables[0], se="cr0").estimates[0].se)
    assert (row.ci_low, row.ci_high) == pytest.approx((row.mean - 2 * row.se, row.mean + 2 * row.se))
    assert "Two SE" in render(one, "markdown", details=True)
    assert "Double" in render(one, "markdown", details=True)
    two = hn.compare(*tables, test="coin")
    assert two.comparisons[0].p_value == 0.25
    assert "a coin" in render(two, "markdown", details=True)
    for line in ("| `double` | Double | Twice CR0.", "| `two-se` | Two SE | The mean ± 2 SE.", "| `coin` | a coin |"):
        assert line in page()


def test_a_registered_choice_is_among_the_options(tables: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    add_one_of_each()
    assert main(["analyze", tables[0], "--interval", "two-se", "--se", "double"]) == 0
    assert main(["compare", *tables, "--test", "coin"]) == 0
    capsys.readouterr()
    assert main(["compare", *tables, "--interval", "two-se"]) == 2  # it stands beside the mean of one run
    assert "--interval two-se" in capsys.readouterr().err
    assert main(["analyze", "--help-all"]) == 0
    assert "two-se" in capsys.readouterr().out


def test_its_domain_and_what_it_stands_beside_refuse_it() -> None:
    add_one_of_each()
    with pytest.raises(hn.InputError, match="interval two-se needs 5 degrees of freedom"):
        hn.estimate(SCORES[:4], interval="two-se")
    with pytest.raises(hn.InputError, match="two-se"):
        hn.estimate_difference(SCORES, SCORES[::-1], interval="two-se")
    with pytest.raises(hn.InputError, match=r"interval 'three-se' is not one of auto, t, wilson, .*two-se"):
        hn.estimate(SCORES, interval="three-se")


def test_a_name_that_is_not_registered_raises_where_it_is_named() -> None:
    with pytest.raises(NotImplementedError, match="interval 'wilso' is not computed here, which knows t, wilson"):
        INTERVALS["wilso"]
    with pytest.raises(ValueError, match="is for analyse: no such thing"):
        register(replace(T, name="new", beside="analyse"))
    with pytest.raises(ValueError, match="is for compare and has no `of_difference`"):
        register(IntervalMethod(name="new", words="New.", beside="compare"))
    for name in ("t", "auto"):
        with pytest.raises(ValueError, match="is registered already"):
            register(replace(T, name=name))


def test_a_name_that_is_not_registered_raises_at_import() -> None:
    check_partners()
    with pytest.raises(ValueError, match="calculation 'labels' of an extra names interval wilso, which is not reg"):
        INTERVALS.check_names(("t", "wilso", "auto"), "calculation 'labels' of an extra")
    register(IntervalMethod(name="odd", words="Odd.", test="coin"))
    with pytest.raises(ValueError, match="interval 'odd' names test coin, which is not registered"):
        check_partners()
    INTERVALS._items.pop("odd")
    register(DifferenceTest(name="odd", words="Odd.", interval="coin"))
    with pytest.raises(ValueError, match="test 'odd' names interval coin, which is not registered"):
        check_partners()


FIELDS = {"interval", "test", "se", "small_name", "estimator"}


def _is_named(node: ast.AST) -> list[ast.expr]:
    """Return what a node of code says a field of a choice is, or is compared with."""
    if isinstance(node, ast.keyword) and node.arg in FIELDS:
        return [node.value]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id in FIELDS:
        return [node.value] if node.value else []
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr in FIELDS:
        return node.comparators
    return []


def test_code_names_choices_by_their_objects() -> None:
    """A misspelled one has no attribute or import, so it fails when the module is imported."""
    names = {name for each in REGISTERS.values() for name in each}
    for path in sorted(Path(hn.__file__).parent.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        said = [each for node in ast.walk(tree) if path.name != "choices.py" for each in _is_named(node)]
        text = [leaf.value for each in said for leaf in ast.walk(each) if isinstance(leaf, ast.Constant)]
        assert not names.intersection(text), path


@pytest.mark.parametrize("each", [ESTIMATORS, INTERVALS, TESTS], ids=list(REGISTERS))
def test_every_function_that_a_choice_names_is_there(each: choices.Register[choices.Registered]) -> None:
    for name in each:
        for field in type(each[name]).__dataclass_fields__:
            value = getattr(each[name], field)
            if isinstance(value, str) and ":" in value and " " not in value:
                assert callable(choices.resolved(value)), value


def test_the_page_is_made_from_the_registers(root: Path) -> None:
    written = (root / "docs" / "choices.md").read_text(encoding="utf-8")
    (wilson,) = (line for line in written.splitlines() if line.startswith("| `wilson`"))
    *_, by, designs, _ = wilson.split("|")
    assert {name.strip(" `") for name in by.split(",")} <= {*COMMANDS}, "labels are data, and no command"
    assert "human labels" in designs
    assert written == page(), "python -m harness_noise.report.choices > docs/choices.md"

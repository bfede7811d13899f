"""The planner of the documentation, in a real browser: its numbers are those of `plan`."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.errors import InputError
from harness_noise.stats.power import noncentrality, power_t
from support.browsing import visit

if TYPE_CHECKING:
    from selenium.webdriver.remote.webdriver import WebDriver

pytestmark = pytest.mark.browser
PAGE = Path(__file__).parents[3] / "docs" / "planner.html"

QUESTIONS: list[dict[str, Any]] = [
    {"effect": 0.03}, {"effect": 0.1, "power": 0.95}, {"n": 40}, {"n": 500, "power": 0.9}, {"n": 198, "effect": 0.05},
    {"effect": 0.03, "level": 0.99}, {"n": 1319, "level": 0.9},
]  # fmt: skip
NOISES: list[dict[str, Any]] = [
    {"accuracy": 0.7}, {"accuracy": 0.02}, {"accuracy": 0.5, "design_effect": 3.5}, {"omega2": 0.1},
    {"omega2": 1 / 9, "sigma2": 1 / 6}, {"omega2": 0.01, "sigma2": 0.2, "repeats": 4},
    {"omega2": 0.2, "sigma2": 0.05, "cluster_size": 12.5}, {"omega2": 0.05, "cluster_size": 17},
    {"accuracy": 0.7, "cluster_size": 10, "icc": 0.2}, {"omega2": 0.1, "cluster_size": 7, "design_effect": 2.5},
    {"omega2": 0.1, "sigma2": 0.2, "cost_question": 10, "cost_answer": 1},
    {"omega2": -0.01, "sigma2": 0.2, "cost_question": 3, "cost_answer": 2, "k_max": 6},
]  # fmt: skip


def in_python(asked: dict[str, Any]) -> dict[str, Any]:
    """What the form asks, as `plan` takes it."""
    costs = {name.removeprefix("cost_"): value for name, value in asked.items() if name.startswith("cost_")}
    others = {name: value for name, value in asked.items() if not name.startswith("cost_")}
    return others | ({"costs": costs} if costs else {})


@pytest.fixture(scope="module")
def planner(chromium: WebDriver) -> WebDriver:
    visit(chromium, PAGE.as_uri())
    return chromium


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_numbers_are_those_of_plan(planner: WebDriver, noise: dict[str, Any]) -> None:
    asked = [noise | question for question in QUESTIONS]
    found = planner.execute_script("return arguments[0].map(asked => planner.plan(asked))", asked)
    for question, ours in zip(asked, found, strict=True):
        theirs = hn.plan(**in_python(question)).to_dict()["plan"]
        for name in ("n_questions", "n_clusters", "repeats", "best_repeats"):
            assert ours[name] == theirs[name], (name, question)
        for name in ("effect", "power", "mde", "df", "variance", "cost"):
            assert ours[name] == (None if theirs[name] is None else pytest.approx(theirs[name], rel=1e-9)), (
                name,
                question,
            )
        assert len(ours["table"]) == len(theirs["table"])
        for a, b in zip(ours["table"], theirs["table"], strict=True):
            assert (a["n_questions"], a["repeats"]) == (b["n_questions"], b["repeats"])
            assert a["mde"] == pytest.approx(b["mde"], rel=1e-9)


@pytest.mark.parametrize("looks", [2, 5, 20, "anytime"])
@pytest.mark.parametrize("question", [{"effect": 0.05}, {"effect": 0.1, "power": 0.95}, {"n": 400, "effect": 0.04}])
def test_looks_cost_what_plan_says(planner: WebDriver, question: dict[str, Any], looks: int | str) -> None:
    for noise in ({"accuracy": 0.7}, {"omega2": 0.2, "sigma2": 0.05, "cluster_size": 12.5}):
        asked = question | noise | {"looks": looks}
        ours = planner.execute_script("return planner.plan(arguments[0]).sequential", asked)
        theirs = hn.plan(**asked).to_dict()["plan"]["sequential"]
        assert ours.pop("boundaries") == pytest.approx(theirs["boundaries"], rel=1e-9)
        assert {name: theirs[name] for name in ("looks", "n_fixed", "n_max")}.items() <= ours.items()
        for name in ("power", "n_expected_none", "n_expected_effect", "n_expected_double"):
            assert ours[name] == pytest.approx(theirs[name], rel=1e-8), (name, asked)


def test_power_and_noncentrality_are_exact_for_few_and_many_degrees_of_freedom(planner: WebDriver) -> None:
    freedom = [1, 1.5, 2, 3, 4.7, 7.99, 8, 12, 30, 99.5, 1e3, 1e5, 1e6]
    grid = [list(point) for point in product((0.0, 0.7, 2.0, 4.5), (0.001, 0.05, 0.32), freedom)]
    ours = planner.execute_script("return arguments[0].map(point => planner.power(...point))", grid)
    theirs = [float(power_t(nc, alpha, df)) for nc, alpha, df in grid]
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-13)
    grid = [list(point) for point in product((0.01, 0.05), (0.5, 0.8, 0.99), freedom)]
    ours = planner.execute_script("return arguments[0].map(point => planner.noncentrality(...point))", grid)
    np.testing.assert_allclose(ours, [float(noncentrality(*point)) for point in grid], rtol=1e-9)


@pytest.mark.parametrize(
    "asked",
    [
        {"accuracy": 0.7, "effect": 0.1, "n": 100, "power": 0.8}, {"accuracy": 0.7}, {"effect": 0.1},
        {"n": 1, "accuracy": 0.5}, {"accuracy": 1.2, "n": 100}, {"omega2": 0.1, "accuracy": 0.5, "n": 100},
        {"omega2": 0.1, "repeats": 3, "n": 100},
        {"omega2": 0.1, "cost_answer": 1, "n": 100}, {"omega2": 0.1, "cluster_size": 30, "n": 40},
        {"accuracy": 0.5, "effect": 2}, {"accuracy": 0.5, "cluster_size": 10, "n": 90},
        {"accuracy": 0.5, "icc": 0.2, "n": 90}, {"omega2": 0, "sigma2": 0, "n": 10},
        {"accuracy": 0.5, "n": 50, "power": 0.04},
    ],
    ids=str,
)  # fmt: skip
def test_what_plan_refuses_is_refused(planner: WebDriver, asked: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        hn.plan(**in_python(asked))
    script = "try { planner.plan(arguments[0]); return null } catch (error) { return error.message }"
    assert planner.execute_script(script, asked)


def test_the_form_answers_as_it_is_filled(planner: WebDriver) -> None:
    fill = """
        const input = document.querySelector(`[name=${arguments[0]}]`);
        input.value = arguments[1];
        input.dispatchEvent(new Event("input", {bubbles: true}));
        return [document.getElementById("said").textContent, document.getElementById("said").dataset.kind];
    """
    said, kind = planner.execute_script(fill, "effect", "0,05")
    n = hn.plan(accuracy=0.7, effect=0.05, power=0.8).n_questions
    assert kind == "answer"
    assert f"With {n:,} questions" in said
    points = planner.execute_script("return document.querySelector('#drawn polyline').getAttribute('points')")
    heights = [float(point.split(",")[1]) for point in points.split()]
    assert len(heights) == len(hn.plan(accuracy=0.7, effect=0.05, power=0.8).table)
    assert heights == sorted(heights)  # on a page down is less: more questions detect a smaller difference
    command = planner.execute_script("return document.getElementById('command').textContent")
    assert command == "harness-noise plan --effect 0.05 --power 0.8 --level 0.95 --accuracy 0.7"
    said, kind = planner.execute_script(fill, "effect", "much")
    assert (said, kind) == ("numbers only, please.", "error")
    planner.refresh()
    severe = [entry for entry in planner.get_log("browser") if entry["level"] == "SEVERE"]  # type: ignore[attr-defined]
    assert severe == []


def test_the_page_loads_nothing_and_every_field_has_a_label(planner: WebDriver) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "src=" not in text
    assert "fetch(" not in text
    unlabelled = "return [...document.querySelectorAll('input')].filter(input => !input.labels.length).length"
    assert planner.execute_script(unlabelled) == 0

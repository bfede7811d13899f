"""Arguments of a wrong kind are refused in a sentence, never by an error from within."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import harness_noise as hn

FRAME = pd.DataFrame({"question": list("abcdef") * 2, "model": ["x"] * 6 + ["y"] * 6, "score": [0, 1, 1, 0, 1, 0] * 2})
A, B = FRAME[FRAME.model == "x"], FRAME[FRAME.model == "y"]
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "plan(number)": (lambda: hn.plan(0.03), "0.03 is no run: give a path"),
    "plan(effect=text)": (lambda: hn.plan(effect="5", accuracy=0.7), "`effect` accepts float or None, not str"),
    "plan(omega2=list)": (lambda: hn.plan(effect=0.05, omega2=[1.0]), "`omega2` accepts float, not list"),
    "plan(sigma2=text)": (lambda: hn.plan(effect=0.05, omega2=0.2, sigma2="x"), "`sigma2` accepts float, not str"),
    "plan(costs=list)": (lambda: hn.plan(effect=0.05, accuracy=0.7, costs=[1]), "`costs` accepts Mapping or None"),
    "plan(profile=1)": (lambda: hn.plan(effect=0.05, profile=1), "`profile` accepts str or PathLike, not int"),
    "profiles(list)": (lambda: hn.profiles([A]), "`profile` accepts str or PathLike, not list"),
    "settings=dict": (lambda: hn.analyze(A, settings={"level": 0.9}), "settings accepts Settings or None, not dict"),
    "settings=array": (lambda: hn.analyze(A, settings=np.ones(2)), "settings accepts Settings or None, not ndarray"),
    "by=number": (lambda: hn.analyze(A, by=3), "3 is no name: give a text, or a list of texts"),
    "by=[number]": (lambda: hn.compare(A, B, by=[1.5]), "1.5 is no name"),
    "number of an array": (lambda: hn.analyze(np.array(3.0)), "array"),
    "nan, nan": (lambda: hn.compare(float("nan"), float("nan")), "bare numbers"),
    "render(path)": (lambda: hn.render("runs/a"), "render accepts a result, such as that of `compare`, not str"),
    "write_html(result, result)": (lambda: hn.write_html(hn.compare(A, B), hn.compare(A, B)), "`place` accepts str"),
    "write_figures(r, r)": (lambda: hn.write_figures(hn.compare(A, B), hn.compare(A, B)), "`place` accepts str"),
    "export(path, runs)": (lambda: hn.export("runs/a", ["b"]), "`output` accepts str or PathLike, not list"),
    "factors(number)": (lambda: hn.factors(A, {"prompt": 1}), "1 is no name"),
    "frontier=list": (lambda: hn.arena(A, B, frontier=["cost"]), "`frontier` accepts str or None, not list"),
    "jobs=None": (lambda: hn.arena(A, B, jobs=None), "`jobs` accepts int or str, not None"),
    "vouch=number": (lambda: hn.gate(A, B, vouch=1), "1 is no name"),
    "floor=text": (lambda: hn.gate(A, floor="high"), "`floor` accepts float or None, not str"),
    "ratio=text": (lambda: hn.gate(A, B, ratio="high"), "`ratio` accepts float or None, not str"),
}


@pytest.mark.parametrize("case", WRONG)
def test_it_is_refused_in_a_sentence(case: str) -> None:
    call, said = WRONG[case]
    with pytest.raises(hn.InputError, match=said):
        call()


def test_none_stands_for_no_names() -> None:
    assert hn.compare(A, B, by=None, models=None) == hn.compare(A, B)


def test_plan_takes_its_runs_by_place() -> None:
    other = B.assign(score=[1, 1, 0, 0, 1, 1])
    by_place, by_name = hn.plan([A, other], effect=0.3), hn.plan(runs=[A, other], effect=0.3)
    assert by_place.to_dict() == by_name.to_dict()

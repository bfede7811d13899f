"""The rules of a live run take differences in points, as the command line does, and refuse them on another scale."""

from __future__ import annotations

import numpy as np
import pytest

from harness_noise import InputError, Settings, as_scores
from harness_noise.extra.stopping.rules import check_points
from harness_noise_adapters.extra.stopping.options import checked


def named(option: str, value: object = None) -> str:
    return f"--noise_{option}" if value is None else f"--noise_{option} {value}"


def rule(**more: object):
    found = checked({"until": "decided", "against": "runs/old", **more}, named, level=0.95, seed=0)
    assert found["rule"] is not None
    return found["rule"]


@pytest.mark.parametrize("value", ["1.5%", "1.5pt", "0.015", 0.015])
def test_points_and_numbers_are_one_rule(value: object) -> None:
    assert rule(margin=value, effect=value) == rule(margin=0.015, effect=0.015)


def test_what_is_no_difference_is_refused() -> None:
    with pytest.raises(InputError, match=r"--noise_margin must be a difference, such as 0.015, 1.5% or 1.5pt, not 'x'"):
        rule(margin="x")


def test_points_are_of_a_scale_from_0_to_1() -> None:
    scores = (np.random.default_rng(1).random((40, 1)) < 0.5).astype(float)
    check_points(rule(margin="1pt", effect="2%"), as_scores(scores), Settings())
    check_points(rule(margin=0.01), as_scores(10 * scores), Settings())
    check_points(None, as_scores(10 * scores), Settings())
    for name in ("margin", "effect"):
        with pytest.raises(InputError, match=f"`{name}` 1pt is of a scale from 0 to 1"):
            check_points(rule(**{name: "1pt"}), as_scores(10 * scores), Settings())

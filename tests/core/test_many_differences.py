"""P differences at once: every field is that of the loop, whatever the scores and the settings are."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import harness_noise as hn

P, N = 6, 40


def boards(kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    if kind == "graded":
        return rng.normal(size=(P, N, 2)), rng.normal(size=(P, N, 3))
    a, b = ((rng.random((P, N, K)) < rng.random((N, 1))).astype(float) for K in (4, 2))
    if kind == "single":
        return a[..., :1], b[..., :1]
    if kind == "shares":
        return a.mean(axis=2, keepdims=True), b * 0.5
    if kind == "alike":
        return a, a[:, :, ::-1]
    if kind == "same answers":
        return np.repeat(a[..., :1], 3, axis=2), np.repeat(b[..., :1], 3, axis=2)
    if kind == "few flips":
        b = np.repeat(a[..., :1], 2, axis=2)
        b[:, :2] = 1 - b[:, :2]
    if kind == "apart":
        a[:] = 1.0
        b[:] = 0.0
    if kind == "holes":
        a[1, 3, 2:] = np.nan
        b[4, 5] = np.nan
    if kind == "one moves":
        a[2, :, 0] = 1.0
    return a, b


KINDS = ("plain", "graded", "single", "shares", "alike", "same answers", "few flips", "apart", "holes", "one moves")
ASKED = (
    {},
    {"se": "cr3", "level": 0.9},
    {"margin": 0.05, "range": (-9.0, 9.0)},
    {"questions_are": "fixed"},
    {"test": "sign"},
    {"interval": "bootstrap", "resamples": 200},
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_each_is_that_of_the_loop(kind, clustered, asked):
    (a, b), clusters = boards(kind), np.arange(N) // 3 if clustered else None
    try:
        loop = [hn.estimate_difference(x, y, clusters, **asked) for x, y in zip(a, b, strict=True)]
    except hn.InputError as error:
        with pytest.raises(hn.InputError, match=f"^{str(error)[:30]}"):
            hn.estimate_difference(a, b, clusters, **asked)
        return
    for one, other in zip(loop, hn.estimate_difference(a, b, clusters, **asked), strict=True):
        for field in fields(one):
            mine, theirs = getattr(one, field.name), getattr(other, field.name)
            if field.name == "_data_limit":
                mine, theirs = (None if limit is None else limit.upper(0.1) for limit in (mine, theirs))
            if isinstance(mine, float):
                assert theirs == pytest.approx(mine, rel=1e-12, abs=1e-12, nan_ok=True), field.name
            else:
                assert theirs == mine, field.name


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="P pairs"):
        hn.estimate_difference(np.zeros((2, 5, 1)), np.zeros((3, 5, 1)))
    with pytest.raises(ValueError, match="5 questions in a and 4"):
        hn.estimate_difference(np.zeros((2, 5, 1)), np.zeros((2, 4, 1)))
    with pytest.raises(ValueError, match="cluster names for"):
        hn.estimate_difference(np.zeros((2, 5, 1)), np.zeros((2, 5, 1)), clusters=[1, 2])


def test_no_pair_is_no_row():
    assert hn.estimate_difference(np.zeros((0, 5, 1)), np.zeros((0, 5, 1))) == ()

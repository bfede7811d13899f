"""Scores corrected for guessing: one chance maps the raw interval, and many correct each question."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from support.notes import noted


def table(path, model, right, seed, n=80, choices=(4,)):
    rng = np.random.default_rng(seed)
    lines = []
    for task in ("one", "two"):
        for i in range(n):
            row = {"task": task, "question": i, "model": model, "score": int(rng.random() < right)}
            lines.append(json.dumps(row | {"choices": list("abcdefghij"[: choices[i % len(choices)]])}))
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def runs(tmp_path):
    return [table(tmp_path / f"{m}.jsonl", m, right, seed) for m, right, seed in (("a", 0.7, 1), ("b", 0.5, 2))]


def test_one_chance_maps_mean_and_interval(runs):
    for raw, row in zip(hn.analyze(runs[0]).estimates, hn.analyze(runs[0], chance=0.25).estimates, strict=True):
        for name in ("mean", "ci_low", "ci_high"):
            assert getattr(row, name) == pytest.approx((getattr(raw, name) - 0.25) / 0.75)
        assert row.se == pytest.approx(raw.se / 0.75)
        assert (row.interval, row.range) == (raw.interval, (pytest.approx(-1 / 3), 1.0))
        assert "chance_corrected" in row.diagnostics
    for raw, row in zip(hn.compare(*runs).comparisons, hn.compare(*runs, chance=0.25).comparisons, strict=True):
        for name in ("diff", "se", "ci_low", "ci_high", "mde"):
            assert getattr(row, name) == pytest.approx(getattr(raw, name) / 0.75)
        assert (row.p_value, row.verdict) == (pytest.approx(raw.p_value), raw.verdict)
    assert hn.arena(runs, chance=0.25).models[0].mean == hn.analyze(runs[0], chance=0.25).estimates[0].mean


def test_auto_is_one_over_the_choices_of_each_question(tmp_path, runs):
    same, alike = hn.analyze(runs[0], chance="auto").estimates, hn.analyze(runs[0], chance=0.25).estimates
    assert [row.mean for row in same] == pytest.approx([row.mean for row in alike])
    path = table(tmp_path / "c.jsonl", "c", 0.9, 3, choices=(2, 4, 10))
    row = hn.analyze(path, chance="auto").estimates[0]
    c = np.array([1 / (2, 4, 10)[i % 3] for i in range(80)])
    rows = list(map(json.loads, Path(path).read_text().splitlines()))
    x = np.array([row["score"] for row in rows if row["task"] == "one"])
    values = (x - c) / (1 - c)
    assert row.mean == pytest.approx(values.mean())
    assert row.se == pytest.approx(values.std(ddof=1) / 80**0.5)
    assert (row.interval, row.range) == ("t", (-1.0, 1.0))
    assert row.ci_high <= 1
    assert {"chance_corrected", "chance_varies"} <= set(row.diagnostics)


def test_a_chance_by_task(tmp_path, runs):
    path = tmp_path / "chance.csv"
    path.write_text("task,chance\none,0.25\nt*,0\n")
    raw, found = hn.analyze(runs[0]).estimates, hn.analyze(runs[0], chance=path).estimates
    assert found[0].mean == pytest.approx((raw[0].mean - 0.25) / 0.75)
    assert found[1].mean == pytest.approx(raw[1].mean)
    assert (found[2].task, found[2].interval) == ("overall", "t")
    assert found[2].mean == pytest.approx((found[0].mean + found[1].mean) / 2)
    path.write_text("task,chance\none,0.25\n")
    with pytest.raises(hn.InputError, match="two has none"):
        hn.analyze(runs[0], chance=path)


def test_what_is_worse_than_chance_is_not_clipped(tmp_path):
    path = table(tmp_path / "low.jsonl", "low", 0.1, 4)
    found = hn.analyze(path, chance=0.25)
    assert found.estimates[0].mean < 0
    assert any("Leaderboards that clip at 0 show 0" in note for note in noted(found))


@pytest.mark.parametrize(
    ("chance", "message"),
    [(1.0, "from 0 to below 1"), (-0.1, "from 0 to below 1"), ("often", "no such file"), ({}, "from 0 to below 1")],
)
def test_chances_that_cannot_be_used(runs, chance, message):
    with pytest.raises(hn.InputError, match=message):
        hn.analyze(runs[0], chance=chance)


def test_a_scale_is_no_share(tmp_path, runs):
    with pytest.raises(hn.InputError, match="leave one of the two out"):
        hn.analyze(runs[0], chance=0.25, range=(0, 1))
    path = tmp_path / "grades.csv"
    path.write_text("question,score\n" + "".join(f"q{i},{1.5 * (i % 7)}\n" for i in range(10)))
    with pytest.raises(hn.InputError, match="nothing lies between 0 and 1"):
        hn.analyze(str(path), chance=0.25)
    path.write_text("question,score\n" + "".join(f"q{i},{i % 2}\n" for i in range(10)))
    with pytest.raises(hn.InputError, match="how many choices"):
        hn.analyze(str(path), chance="auto")


@pytest.mark.parametrize("same", [0, 1])
def test_a_task_that_is_all_wrong_or_all_right_is_corrected_as_the_other_run_and_the_other_tasks_are(tmp_path, same):
    """A table declares no range, and 0 throughout could be a percentage."""
    for name, first in (("a", [i % 2 for i in range(12)]), ("b", [same] * 12)):
        lines = [f"{task},q{i},{x}" for task, xs in (("t", first), ("u", [1, 0] * 6)) for i, x in enumerate(xs)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["task,question,score", *lines]) + "\n")
    a, b = (str(tmp_path / f"{name}.csv") for name in "ab")
    for raw, row in zip(hn.compare(a, b).comparisons, hn.compare(a, b, chance=0.25).comparisons, strict=True):
        assert row.diff == pytest.approx(raw.diff / 0.75)
        assert row.mean_b == pytest.approx((raw.mean_b - 0.25) / 0.75)
    for raw, row in zip(hn.analyze(b).estimates, hn.analyze(b, chance=0.25).estimates, strict=True):
        assert row.mean == pytest.approx((raw.mean - 0.25) / 0.75)


def test_groups_average_the_corrected_scores():
    """As lm-eval has them: the tasks of a group may have no row of their own, and its native value is of raw scores."""
    scores = [hn.as_scores(np.arange(20) < right, task=task, metric="acc") for task, right in (("x", 15), ("y", 5))]
    group = hn.Group("g", "acc", "none", ("x", "y"), native=0.5)
    one = hn.Run("m", "m", "test", scores=(scores[0],), parts=(scores[1],), groups=(group,))
    x, g = hn.analyze(one, chance=0.25).estimates
    assert (x.mean, g.mean) == (pytest.approx(2 / 3), pytest.approx((2 / 3 + 0) / 2))
    assert "mean_mismatch" not in g.diagnostics


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    path = tmp_path / "given.csv"
    path.write_bytes(b"\xef\xbb\xbftask,chance\r\nalpha,0.25\r\n")
    scores = hn.as_scores([[1.0], [0.0], [1.0], [1.0]], task="alpha", bounds=(0.0, 1.0))
    row = hn.analyze(hn.Run("a", "a", "x", scores=(scores,)), chance=str(path)).estimates[0]
    assert row.mean == pytest.approx((0.75 - 0.25) / 0.75)

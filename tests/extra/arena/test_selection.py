"""`arena --select`: how much of the winner's lead comes from its having been chosen."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.extra.arena.rank_sets import chosen_by_half
from harness_noise.stats.contrast import design
from support.notes import noted


def runs(values: np.ndarray, clusters: list[str] | None = None, **fields: Any) -> list[Run]:
    """(N, M) scores as M runs."""
    keys = Questions(tuple(f"q{i}" for i in range(len(values))))
    known: dict[str, Any] = {"higher_is_better": True, "clusters": None if clusters is None else tuple(clusters)}
    return [
        Run(f"m{m}", f"m{m}", "array", scores=(Scores("t", "acc", "none", keys, column[:, None], **(known | fields)),))
        for m, column in enumerate(values.T)
    ]


@pytest.mark.simulation
@pytest.mark.parametrize("clusters", [None, 40])
def test_of_equal_models_nothing_is_left_of_the_lead(clusters: int | None) -> None:
    """Twelve models of one accuracy, 400 data sets: the lead is selection, all of it."""
    rng = np.random.default_rng(7)
    leads, corrected, means = [], [], []
    for _ in range(400):
        if clusters is None:
            plan, p = design(200), np.full((200, 12), 0.6)
        else:
            labels = np.repeat(np.arange(clusters), 5)
            plan, p = design(200, labels), rng.beta(3, 2, (clusters, 12))[labels]
        values = (rng.random((200, 12)) < p).astype(float)
        second, best = np.sort(values.mean(0))[-2:]
        found = chosen_by_half(values, plan, rng, splits=40)
        leads.append(best - second)
        corrected.append(found.lead)
        means.append((best - 0.6, found.mean - 0.6))
    error = np.std(corrected) / 20
    assert np.mean(leads) > 0.01
    assert abs(np.mean(corrected)) < 3 * error < 0.6 * np.mean(leads)
    plain, of_half = np.mean(means, axis=0)
    assert plain > 0.03
    assert abs(of_half) < 3 * np.std(means, axis=0)[1] / 20


def test_a_lead_that_no_half_doubts_stays() -> None:
    rng = np.random.default_rng(0)
    values = (rng.random((400, 3)) < np.array([0.9, 0.5, 0.2])).astype(float)
    (row,) = hn.arena(runs(values), select=True).selection
    assert (row.best, row.second, row.n_models, row.n_questions, row.same_best) == ("m0", "m1", 3, 400, 1.0)
    assert row.lead == pytest.approx(values[:, 0].mean() - values[:, 1].mean())
    assert row.lead_corrected == pytest.approx(row.lead, abs=1e-12)  # two halves of one size, both ways
    assert row.mean_corrected == pytest.approx(row.mean, abs=1e-12)


def test_lower_is_better_and_order_of_models_and_seed() -> None:
    rng = np.random.default_rng(3)
    values = rng.random((60, 5))
    (row,) = hn.arena(runs(values, higher_is_better=False), select=True).selection
    (up,) = hn.arena(runs(1 - values), select=True).selection
    assert (row.best, row.lead) == (up.best, pytest.approx(up.lead))
    assert row.mean == pytest.approx(values.mean(0).min(), rel=1e-15 * 8)  # the order of a sum
    assert row.mean_corrected == pytest.approx(1 - up.mean_corrected)
    assert row.lead_corrected == pytest.approx(up.lead_corrected)
    assert (again := hn.arena(runs(1 - values), select=True).selection[0]) == up
    assert again != hn.arena(runs(1 - values), select=True, seed=1).selection[0]


def test_tasks_of_a_group_keep_their_weights_and_copies_have_no_lead() -> None:
    rng = np.random.default_rng(4)
    big, small = rng.random((90, 2)), rng.random((10, 2))
    out = []
    for m in range(2):
        scores = tuple(
            Scores(
                task, "acc", "none", Questions(tuple(f"q{i}" for i in range(len(x)))), x[:, [m]], higher_is_better=True
            )
            for task, x in (("big", big), ("small", small))
        )
        out.append(Run(f"m{m}", f"m{m}", "array", parts=scores, groups=(Group("g", "acc", "none", ("big", "small")),)))
    group = Group("g", "acc", "none", ("big", "small"), "equal")
    (row,) = hn.arena([replace(run, groups=(group,)) for run in out], select=True).selection
    lead = (big.mean(0) + small.mean(0)) / 2
    assert row.lead == pytest.approx(abs(lead[0] - lead[1]))
    assert row.lead_corrected is not None
    (same,) = hn.arena(runs(np.repeat(big[:, :1], 3, axis=1)), select=True).selection
    assert (same.lead, same.lead_corrected) == (0.0, pytest.approx(0.0, abs=1e-12))


def test_what_cannot_be_split_is_null_and_said() -> None:
    rng = np.random.default_rng(5)
    values = rng.random((30, 3))
    for clusters in (["a"] * 30, [f"c{i % 3}" for i in range(30)]):
        arena = hn.arena(runs(values, clusters), select=True)
        (row,) = arena.selection
        assert (row.lead_corrected, row.mean_corrected, row.same_best) == (None, None, None)
        assert any("cannot be split" in note for note in noted(arena))
    gaps = values.copy()
    gaps[:10, 0] = np.nan
    assert hn.arena(runs(gaps), select=True).selection[0].n_questions == 20
    twice = [replace(run, scores=(replace(run.scores[0], values=rng.random((30, 2))),)) for run in runs(values)]
    with pytest.raises(hn.InputError, match="`select` chooses and measures on different questions"):
        hn.arena(twice, select=True, questions_are="fixed")


def test_one_line_and_a_field(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    values = (np.random.default_rng(6).random((80, 6)) < 0.5).astype(int)
    rows = [f"{i},m{m},{values[i, m]}" for i in range(80) for m in range(6)]
    (tmp_path / "runs.csv").write_text("\n".join(["question,model,score", *rows]) + "\n")
    assert main(["arena", str(tmp_path / "runs.csv"), "--select", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["selection"]
    assert row["lead_corrected"] < row["lead"]
    assert main(["arena", str(tmp_path / "runs.csv"), "--select"]) == 0
    said = capsys.readouterr()
    assert f"{row['best']} is the best of 6" in " ".join((said.out + said.err).split())
    assert main(["arena", str(tmp_path / "runs.csv"), "--format", "json"]) == 0
    assert "selection" not in json.loads(capsys.readouterr().out)

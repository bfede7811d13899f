"""Reference profiles: made by an arena, used for bare numbers and for plans."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness_noise.cli import main
from harness_noise.data.scores import ReadOptions
from harness_noise.errors import InputError
from harness_noise.extra.arena import profiles as reference
from harness_noise.extra.arena.build import arena
from harness_noise.extra.sizes import Variances
from harness_noise.settings import Settings
from support.boards import N, board, with_values


def test_a_profile_gives_bare_numbers_the_noise_of_their_benchmark(tmp_path: Path) -> None:
    runs = board(M=6, K=4)
    found = arena(runs, Settings())
    path = tmp_path / "task.json"
    reference.write(found, path)
    profile = reference.read(path)[0]
    pair = next(iter(found.pairs))
    assert pair.mean_a is not None
    assert pair.mean_b is not None
    ours = reference.compare(profile, pair.mean_a, pair.mean_b, names=("x", "y"))
    assert ours.se == pytest.approx(pair.se_total, rel=0.1)
    assert ours.diff == pytest.approx(pair.diff)
    assert (ours.test, ours.diagnostics) == ("reference", ("reference_noise",))
    far = reference.compare(profile, 0.8, 0.5)
    assert far.verdict == "A better"
    assert reference.compare(profile, 0.5, 0.8).verdict == "B better"
    for a, b in ((0.6, 0.55), (0.9, 0.8)):  # data and prediction are scaled with the total
        row = reference.compare(profile, a, b)
        assert row.var_data is not None
        assert row.var_prediction is not None
        assert row.se_total is not None
        assert row.var_data + row.var_prediction == pytest.approx(row.se_total**2)
        assert (row.se_data, row.se_prediction) == pytest.approx((row.var_data**0.5, row.var_prediction**0.5))


def test_a_profile_of_few_clusters_keeps_their_degrees_of_freedom(tmp_path: Path) -> None:
    labels = tuple(f"c{i // 20}" for i in range(N))
    found = arena(board(M=6, K=4, clusters=labels, cluster_spec="passage"), Settings())
    path = tmp_path / "task.json"
    reference.write(found, str(path))
    profile = reference.read(str(path))[0]
    assert (profile.n_clusters, profile.df) == (6, pytest.approx(5))
    row = reference.compare(profile, 0.6, 0.5)
    assert (row.n_clusters, row.df) == (6, pytest.approx(5))
    assert profile.planning()["cluster_size"] == pytest.approx(N / 6)
    assert row.se is not None
    assert row.ci_high == pytest.approx(0.1 + 2.570582 * row.se)  # the t quantile of 5 degrees of freedom


def test_a_profile_plans_as_the_runs_do(tmp_path: Path) -> None:
    found = arena(board(M=6, K=4), Settings())
    reference.write(found, tmp_path / "p.json")
    inputs = reference.read(tmp_path / "p.json")[0].planning()
    variances = Variances(inputs["omega2"], *inputs["sigma2"])
    row = found.benchmarks[0]
    assert row.se_prediction is not None
    assert row.se_data is not None
    assert row.se_total is not None
    assert inputs["cluster_size"] is None
    share = row.se_data.median**2 / (row.se_data.median**2 + row.se_prediction.median**2)
    assert variances.omega2 == pytest.approx(N * row.se_total.median**2 * share)
    assert variances.at(1) == pytest.approx(N * row.se_total.median**2)


def test_a_profile_of_single_answers_does_not_invent_the_split(tmp_path: Path) -> None:
    found = arena(board(M=6, K=1), Settings())
    reference.write(found, tmp_path / "p.json")
    profile = reference.read(tmp_path / "p.json")[0]
    assert profile.se_data is None
    assert profile.planning()["omega2"] == pytest.approx(N * profile.se_total.median**2)
    assert profile.planning()["sigma2"] is None
    row = reference.compare(profile, 0.6, 0.5)
    assert (row.se_data, row.se_prediction, row.var_data, row.var_prediction) == (None, None, None, None)


def test_the_noise_is_the_profiles_share_of_the_rule_of_thumb_at_every_accuracy(tmp_path: Path) -> None:
    """√(p(1 − p)/n) times one ratio: it neither collapses near what all models together solve nor jumps beyond it."""
    runs = [with_values(run, np.where(np.arange(N)[:, None] % 5, run.scores[0].values, 0.0)) for run in board(M=4, K=3)]
    found = arena(runs, Settings())
    reference.write(found, tmp_path / "p.json")
    profile = reference.read(tmp_path / "p.json")[0]
    assert profile.rule_of_thumb is not None
    assert profile.rule_of_thumb == found.benchmarks[0].rule_of_thumb
    for a, b in ((0.5, 0.4), (0.81, 0.79), (0.9, 0.85)):
        p = (a + b) / 2
        row = reference.compare(profile, a, b)
        assert row.se == pytest.approx(profile.rule_of_thumb.median * np.sqrt(p * (1 - p) / N), rel=1e-12)
        assert row.ci_low is not None
        assert "few_flips" not in row.diagnostics  # there are no answers that could be counted
    perfect = reference.compare(profile, 1.0, 1.0)
    assert (perfect.se, perfect.se_total, perfect.ci_low, perfect.p_value) == (None, None, None, None)


def test_a_score_above_all_of_the_table_is_coded(tmp_path: Path) -> None:
    found = arena(board(M=6, K=4), Settings())
    reference.write(found, tmp_path / "p.json")
    profile = reference.read(tmp_path / "p.json")[0]
    best = max(model.mean for model in found.models if model.mean is not None)
    assert profile.best_mean == best
    assert "beyond_reference" not in reference.compare(profile, best, 0.4).diagnostics
    assert "beyond_reference" in reference.compare(profile, best + 0.01, 0.4).diagnostics
    lower = replace(profile, higher_is_better=False, best_mean=0.2)
    assert "beyond_reference" in reference.compare(lower, 0.3, 0.1).diagnostics
    assert "beyond_reference" not in reference.compare(lower, 0.3, 0.9).diagnostics


def test_no_limit_leaves_the_range_of_a_difference() -> None:
    profile = reference.read("aime_2025_ii")[0]
    row = reference.compare(profile, 0.95, 0.02)
    assert row.ci_high == 1.0


def test_profiles_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    with pytest.raises(InputError, match="cannot be read"):
        reference.read(path)
    for content in ("{", '{"kind": "other"}', '{"kind": "noise-profile", "benchmarks": [{"task": "t"}]}'):
        path.write_text(content)
        with pytest.raises(InputError, match="profile"):
            reference.read(path)
    path.write_text('{"kind": "noise-profile", "benchmarks": [{"task": "t", "beta_theory": null}]}')
    with pytest.raises(InputError, match=r"broken entry .*Make it again"):
        reference.read(path)
    reference.write(arena(board(), Settings()), path)
    profile = reference.read(path)[0]
    with pytest.raises(InputError, match=r"0\.71 for 71"):
        reference.compare(profile, 71, 0.6)
    with pytest.raises(InputError, match=r"Did you mean 0\.02"):
        reference.compare(profile, 0.5, 0.6, margin=2)
    assert main(["plan", "--profile", str(path), "--effect", "2"]) == 2
    with pytest.raises(InputError, match=r"no profile of that name .*task / acc / none"):
        reference.choose([profile], ReadOptions(tasks=("nothing",)))
    two = [profile, replace(profile, task="other")]
    assert reference.choose(two, ReadOptions(tasks=("o*",))).task == "other"
    with pytest.raises(InputError, match="2 profiles in the reference"):
        reference.choose(two, ReadOptions(tasks=("task", "other")))
    same = [with_values(run, np.ones((N, 1))) for run in board(M=2)]
    with pytest.raises(InputError, match="close enough"):
        reference.write(arena(same, Settings()), path)

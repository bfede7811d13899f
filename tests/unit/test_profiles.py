"""Reference profiles: made by an arena, used for bare numbers and for plans."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness_noise.cli import main
from harness_noise.errors import InputError
from harness_noise.leaderboard import profiles as reference
from harness_noise.leaderboard.build import arena
from harness_noise.settings import Settings
from harness_noise.stats.planning import Variances
from support.boards import N, board, with_values


def test_a_profile_gives_bare_numbers_the_noise_of_their_benchmark(tmp_path: Path) -> None:
    runs = board(M=6, K=4)
    found = arena(runs, Settings())
    path = tmp_path / "task.json"
    reference.write(found, path)
    profile = reference.choose(reference.read(path))
    pair = next(iter(found.pairs))
    assert pair.mean_a is not None
    assert pair.mean_b is not None
    ours = reference.compare(profile, pair.mean_a, pair.mean_b, names=("x", "y"))
    assert ours.se == pytest.approx(pair.se_total, rel=0.1)
    assert ours.diff == pytest.approx(pair.diff)
    averaged = reference.compare(profile, pair.mean_a, pair.mean_b, repeats=(4, 4))
    assert averaged.se == pytest.approx(found.to_frame("pairs").se.median(), rel=0.1)
    assert (ours.test, ours.diagnostics) == ("reference", ("reference_noise",))
    far = reference.compare(profile, 0.8, 0.5)
    assert far.verdict == "A better"
    assert reference.compare(profile, 0.5, 0.8).verdict == "B better"


def test_a_profile_of_few_clusters_keeps_their_degrees_of_freedom(tmp_path: Path) -> None:
    labels = tuple(f"c{i // 20}" for i in range(N))
    found = arena(board(M=6, K=4, clusters=labels, cluster_spec="passage"), Settings())
    path = tmp_path / "task.json"
    reference.write(found, str(path))
    profile = reference.choose(reference.read(str(path)))
    assert (profile.n_clusters, profile.df) == (6, pytest.approx(5))
    row = reference.compare(profile, 0.6, 0.5)
    assert (row.n_clusters, row.df) == (6, pytest.approx(5))
    assert profile.planning()["cluster_size"] == pytest.approx(N / 6)
    assert row.se is not None
    assert row.ci_high == pytest.approx(0.1 + 2.570582 * row.se)  # the t quantile of 5 degrees of freedom


def test_a_profile_plans_as_the_runs_do(tmp_path: Path) -> None:
    found = arena(board(M=6, K=4), Settings())
    reference.write(found, tmp_path / "p.json")
    inputs = reference.choose(reference.read(tmp_path / "p.json")).planning()
    variances = Variances(inputs["omega2"], *inputs["sigma2"])
    row = found.benchmarks[0]
    assert row.se_prediction is not None
    assert inputs["cluster_size"] is None
    assert variances.sigma2_a == pytest.approx(N * row.se_prediction.median**2 / 2)
    assert variances.omega2 >= 0


def test_a_profile_of_single_answers_does_not_invent_the_split(tmp_path: Path) -> None:
    found = arena(board(M=6, K=1), Settings())
    reference.write(found, tmp_path / "p.json")
    profile = reference.choose(reference.read(tmp_path / "p.json"))
    assert profile.se_data is None
    assert profile.planning()["omega2"] == pytest.approx(N * profile.se_total.median**2)
    assert profile.planning()["sigma2"] is None
    with pytest.raises(InputError, match="one answer per question"):
        reference.compare(profile, 0.6, 0.5, repeats=(4, 4))


def test_a_profile_never_says_that_there_is_no_noise(tmp_path: Path) -> None:
    runs = [with_values(run, np.where(np.arange(N)[:, None] % 5, run.scores[0].values, 0.0)) for run in board(M=4, K=3)]
    reference.write(arena(runs, Settings()), tmp_path / "p.json")
    profile = reference.choose(reference.read(tmp_path / "p.json"))
    assert profile.solved is not None
    assert profile.solved <= 0.8
    better = reference.compare(profile, 0.9, 0.85)  # than all models of the arena together
    assert better.se is not None
    assert better.se > 0.01
    assert better.ci_low is not None
    perfect = reference.compare(profile, 1.0, 1.0)
    assert (perfect.se, perfect.se_total, perfect.ci_low, perfect.p_value) == (None, None, None, None)


def test_profiles_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    with pytest.raises(InputError, match="cannot be read"):
        reference.read(path)
    for content in ("{", '{"kind": "other"}', '{"kind": "noise-profile", "benchmarks": [{"task": "t"}]}'):
        path.write_text(content)
        with pytest.raises(InputError, match="profile"):
            reference.read(path)
    reference.write(arena(board(), Settings()), path)
    profile = reference.choose(reference.read(path))
    with pytest.raises(InputError, match=r"0\.71 for 71"):
        reference.compare(profile, 71, 0.6)
    with pytest.raises(InputError, match=r"did you mean 0\.02"):
        reference.compare(profile, 0.5, 0.6, margin=2)
    assert main(["plan", "--reference", str(path), "--effect", "2"]) == 2
    with pytest.raises(InputError, match="task / acc / none"):
        reference.choose([profile], task="nothing")
    same = [with_values(run, np.ones((N, 1))) for run in board(M=2)]
    with pytest.raises(InputError, match="close enough"):
        reference.write(arena(same, Settings()), path)

"""HELM's runs: instances are questions, train trials repeats, perturbations scorers of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.extra.testing.adapters import check_adapter
from harness_noise_adapters.extra.formats.helm import adapter
from support.commands import refused
from support.helm_files import SCORES, instance, run, stat


def test_what_every_adapter_promises(tmp_path: Path) -> None:
    stats = [instance(i, k, None if i == k == 1 else SCORES[i, k]) for k in range(2) for i in range(12)]
    lost = SCORES.copy()
    lost[1, 1] = np.nan
    native = [stat("exact_match", float(np.nanmean(lost, axis=1).mean()))]
    check_adapter(
        adapter,
        run(tmp_path / "run", per_instance_stats=stats, stats=native),
        tmp_path / "work",
        cluster="instance_id",
        question="instance_id",
        factor="trial",
        models=["org/sim"],
        expected={
            ("quiz:subject=sums,method=joint", "id0"): SCORES[0],
            ("quiz:subject=sums,method=joint", "id1"): lost[1],
        },
    )


def test_metrics_repeats_and_perturbations(tmp_path: Path) -> None:
    (found,) = hn.read(run(tmp_path / "run"))
    assert [(part.task, part.metric, part.scorer, part.values.shape) for part in found.scores] == [
        ("quiz:subject=sums,method=joint", "exact_match", scorer, (12, 2)) for scorer in ("none", "typos")
    ]
    assert all(part.repeats_are_runs and part.diagnostics == () for part in found.scores)


def test_perturbations_of_one_name_and_parts_of_a_split_are_kept_apart(tmp_path: Path) -> None:
    """HELM itself groups by split, sub-split and the whole perturbation."""
    stats = []
    for i in range(8):
        part = {"sub_split": "ab"[i % 2]}
        for target in ("", "x", "y"):
            found = instance(i, 0, float(i % 2) if target != "y" else 0.5)
            found["stats"] = [stat("exact_match", found["stats"][0]["mean"], **part)]
            person = {"name": "person_name", "target": target, "fairness": True}
            stats.append(found | ({"perturbation": person} if target else {}))
    native = [stat("exact_match", float(k), sub_split="ab"[k]) for k in range(2)]
    (found,) = hn.read(run(tmp_path / "run", per_instance_stats=stats, stats=native))
    task = "quiz:subject=sums,method=joint"
    assert {(part.task, part.scorer, part.values.mean(), part.native) for part in found.scores} == {
        (f"{task} ({'ab'[k]})", scorer, 0.5 if scorer.endswith("y)") else k, k if scorer == "none" else None)
        for k in range(2)
        for scorer in ("none", "person_name (target=x)", "person_name (target=y)")
    }


def test_runs_of_a_suite_are_compared_by_their_words(tmp_path: Path) -> None:
    for model in ("org/a", "org/b"):
        run(tmp_path / "suite" / f"quiz-{model[-1]}", model)
    rows = hn.compare(tmp_path / "suite", models=("org/a", "org/b"), scorers=["none"]).comparisons
    assert [(row.n_questions, row.diff) for row in rows] == [(12, 0.0)]


def test_a_value_that_is_not_helm_s_own_is_said(tmp_path: Path) -> None:
    rows = hn.analyze(run(tmp_path / "run", stats=[stat("exact_match", 0.9)])).estimates
    assert "mean_mismatch" in rows[0].diagnostics


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"per_instance_stats": '[{"instance_id": '}, "not JSON"),
        ({"per_instance_stats": "version https://git-lfs.github.com/spec/v1\noid 0\n"}, "Git LFS pointer"),
        ({"per_instance_stats": {"a": 1}}, "was it written by HELM"),
        ({"per_instance_stats": [instance(0, 0, "good")]}, "is not a finite number"),
        ({"per_instance_stats": [{"instance_id": None}]}, "no instance and its stats"),
        ({"per_instance_stats": [instance(0, 0, 1.0) | {"train_trial_index": []}]}, "no instance and its stats"),
        ({"per_instance_stats": [instance(0, 10**400, 1.0)]}, "no instance and its stats"),
        ({"run_spec": {"name": None}}, "was it written by HELM"),
        ({"per_instance_stats": [instance(0, 0, 1.0), instance(0, 0, 0.0)]}, "has the score"),
    ],
)
def test_a_damaged_run_is_refused_in_one_paragraph(
    tmp_path: Path, files: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(run(tmp_path / "run", **files), capsys, words)


@pytest.mark.parametrize("value", [10**400, "x", float("inf"), float("nan"), [], True])
def test_a_mean_that_is_none_is_left_out(tmp_path: Path, value: Any) -> None:
    native = [stat("exact_match", value, split=[]), stat("exact_match", value)]
    part = hn.read(run(tmp_path / "run", stats=native))[0].scores[0]
    assert part.native in (None, 1.0)


def test_the_same_questions_in_two_harnesses_are_found_by_their_words(tmp_path: Path) -> None:
    from support.every_eval_ever_files import result, sample, write

    other = write(tmp_path, [sample(i, SCORES[i, 0]) for i in range(12)], [result("accuracy", SCORES[:, 0].mean())])
    (row,) = hn.compare(run(tmp_path / "run"), other, scorers=["none"]).comparisons
    assert (row.n_questions, row.diff) == (12, pytest.approx(SCORES.mean() - SCORES[:, 0].mean()))

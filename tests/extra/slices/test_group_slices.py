"""`--by` for the row of a group: its questions are one sample, whichever task they are of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.data.clusters import Fields
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.extra.slices.cutting import slices_of_pairs, slices_of_runs
from harness_noise.settings import Settings
from support.notes import noted

SIZES = {"t1": 90, "t2": 60}


def run_of(model: str, seed: int, spec: str | None = "passage", **group: object) -> Run:
    rng = np.random.default_rng(seed)
    parts = []
    for t, (task, n) in enumerate(SIZES.items()):
        kind = tuple("xyz"[i % 3] for i in range(n))
        questions = hn.Questions(
            tuple(f"q{i}" for i in range(n)),
            fields=Fields({"kind": kind} | ({"only": kind} if t else {}), (), ("kind",)),
        )
        values = (rng.random((n, 2 + t)) < 0.5 + 0.1 * (np.array(kind) == "y")[:, None]).astype(float)
        labels = None if spec is None else tuple(f"p{i // 5}" for i in range(n)) if spec != "task" else (task,) * n
        parts.append(Scores(task, "acc", "none", questions, values, clusters=labels, cluster_spec=spec))
    return Run(
        model, model, "array", scores=tuple(parts), groups=(Group("both", "acc", "none", tuple(SIZES), **group),)
    )  # type: ignore[arg-type]


def below(run: Run, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """The values of a slice of both tasks, and clusters that cross tasks where labels agree."""
    values, labels = [], []
    for part in run.scores:
        assert part.questions.fields is not None
        keep = np.array(part.questions.fields.values["kind"]) == kind
        wide = np.full((keep.sum(), 3), np.nan)
        wide[:, : part.values.shape[1]] = part.values[keep]
        values.append(wide)
        labels += [label for label, kept in zip(part.clusters or (), keep, strict=True) if kept]
    return np.concatenate(values), np.array(labels)


def test_a_groups_slice_is_the_mean_of_its_questions_with_the_groups_clusters() -> None:
    a, b = run_of("a", 1), run_of("b", 2)
    rows = [row for row in slices_of_runs([a], ["kind"], Settings()).slices if row.task == "both"]
    assert [row.slice for row in rows] == ["x", "y", "z"]
    for row in rows:
        values, labels = below(a, row.slice)
        alone = hn.estimate(values, clusters=labels)
        for name in ("n_questions", "n_clusters", "mean", "se", "df", "ci_low", "ci_high", "se_total"):
            assert getattr(row, name) == pytest.approx(getattr(alone, name)), name
    rows = [row for row in slices_of_pairs([(a, b)], ["kind"], Settings()).slices if row.task == "both"]
    for row in rows:
        (x, labels), (y, _) = below(a, row.slice), below(b, row.slice)
        alone = hn.estimate_difference(x, y, clusters=labels)
        for name in ("n_questions", "n_clusters", "diff", "se", "df", "p_value", "ci_low"):
            assert getattr(row, name) == pytest.approx(getattr(alone, name)), name


def test_the_tasks_keep_their_own_slices_and_the_group_has_a_test_of_them() -> None:
    found = slices_of_pairs([(run_of("a", 1), run_of("b", 2))], ["kind"], Settings())
    assert [row.task for row in found.heterogeneity] == ["t1", "t2", "both"]
    assert {row.task: row.n_questions for row in found.slices} == {"t1": 30, "t2": 20, "both": 50}
    assert noted(found) == ()


def test_a_group_that_clusters_by_task_does_so_in_its_slices() -> None:
    rows = slices_of_runs([run_of("a", 1, "task")], ["kind"], Settings()).slices
    assert {row.n_clusters for row in rows if row.task == "both"} == {2}


def test_weights_of_tasks_are_not_those_of_slices_and_that_is_said() -> None:
    found = slices_of_runs([run_of("a", 1, weighting="equal")], ["kind"], Settings())
    assert len(noted(found)) == 1
    assert "both: its tasks have weights of their own" in noted(found)[0]


def test_a_field_that_one_task_lacks_leaves_its_questions_out_and_says_so() -> None:
    found = slices_of_runs([run_of("a", 1)], ["only"], Settings())
    assert {row.task: row.n_questions for row in found.slices} == {"t2": 20, "both": 20}
    assert "both / acc: 90 of 150 questions have no only and are in no slice" in noted(found)


def test_a_group_alone_is_sliced_too() -> None:
    """Where one run has another name for a task, only the group is shared."""
    run = run_of("a", 1)
    alone = replace(run, scores=(), parts=run.scores)
    found = slices_of_pairs([(alone, alone)], ["kind"], Settings())
    assert {row.task for row in found.slices} == {"both"}


def test_the_command_slices_a_group_of_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["task,question,model,score,kind"]
    rows += [
        f"{task},q{i},m{m},{(i * 7 + m * (i % 3)) % 5 % 2},{'xy'[i % 2]}"
        for task, n in SIZES.items() for i in range(n) for m in (0, 1)
    ]  # fmt: skip
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(rows) + "\n")
    page = tmp_path / "page.html"
    arguments = ["compare", str(path), "--group", "both=t*", "--by", "kind", "--format", "json", "--html", str(page)]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    rows_of = {(row["task"], row["slice"]): row for row in found["slices"]}
    assert set(rows_of) == {(task, kind) for task in ("t1", "t2", "both") for kind in "xy"}
    for kind in "xy":
        parts = [rows_of[task, kind] for task in SIZES]
        total = sum(row["n_questions"] for row in parts)
        mean = sum(row["diff"] * row["n_questions"] for row in parts) / total
        assert rows_of["both", kind]["diff"] == pytest.approx(mean)
        assert rows_of["both", kind]["n_questions"] == total
    assert '<option value="row-2">both score' in page.read_text(encoding="utf-8")

"""Runs kept for a gate: their order, where they are from, and what a pull request may not do."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores
from harness_noise.extra.gate import kept_runs
from support.notes import noted

RUNNER = {
    "GITHUB_SHA": "abc1234def", "GITHUB_REF_NAME": "main", "GITHUB_EVENT_NAME": "push",
    "GITHUB_REPOSITORY": "some/where",
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in RUNNER:
        monkeypatch.delenv(name, raising=False)


def run(i: int) -> Run:
    keys = tuple(f"q{j}" for j in range(60))
    values = np.roll(np.arange(60) % 3 > 0, i).astype(float)[:, None]
    return Run("m", f"run {i}", "table", scores=(Scores("t", "acc", "none", Questions(keys), values=values),))


def head(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def test_what_was_just_written_stays_and_the_order_is_that_of_writing(tmp_path: Path) -> None:
    """Whatever a clock said when the others were written: here it was ahead by years."""
    for number in (10**19, 10**19 + 1):
        (written,) = kept_runs.keep(run(number % 10), tmp_path, 9)
        written.rename(tmp_path / f"run-{number:020d}-{number % 10:012d}.json.gz")
    for i in (5, 6, 7):
        (written,) = kept_runs.keep(run(i), tmp_path, 2)
        assert written.exists()
    assert [other.name for other in kept_runs.read_kept(tmp_path)] == ["run 6", "run 7"]
    assert kept_runs.keep(run(7), tmp_path, 2) == [], "it is there already"


def test_files_of_others_are_never_removed(tmp_path: Path) -> None:
    mine = [tmp_path / f"run-{name}.json.gz" for name in ("1", "2024-05-01", "mine")]
    for path in mine:
        path.write_bytes(b"mine")
    for i in range(4):
        assert len(kept_runs.keep(run(i), tmp_path, 2)) == 1
    assert all(path.exists() for path in mine)
    assert len([*tmp_path.iterdir()]) == len(mine) + 2


def test_a_kept_run_says_where_it_is_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hn.gate(run(0), floor=0.1, store=tmp_path)
    assert not [note for note in noted(hn.gate(run(0), tmp_path, margin=0.5)) if note.startswith("baseline:")]
    for name, value in RUNNER.items():
        monkeypatch.setenv(name, value)
    hn.gate(run(1), floor=0.1, store=tmp_path)
    newest = sorted(tmp_path.iterdir())[-1]
    content = head(newest)
    assert [content[name] for name in ("commit", "branch", "event", "repository")] == [
        "abc1234def", "main", "push", "some/where"
    ]  # fmt: skip
    assert content["version"] == hn.__version__
    content["time"] = (datetime.now(UTC) - timedelta(days=3, hours=1)).isoformat()
    newest.write_bytes(gzip.compress(json.dumps(content).encode()))
    assert "baseline: main@abc1234, 3 days old" in noted(hn.gate(run(2), tmp_path, margin=0.5))


@pytest.mark.parametrize("event", ["pull_request", "pull_request_target", "pull_request_review"])
def test_a_pull_request_keeps_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: str) -> None:
    monkeypatch.setenv("GITHUB_EVENT_NAME", event)
    gate = hn.gate(run(0), floor=0.1, store=tmp_path)
    assert gate.passed
    assert any(note.startswith("not kept") for note in noted(gate))
    assert list(tmp_path.iterdir()) == []


def graded(name: str, values: np.ndarray) -> Run:
    keys = Questions(tuple(f"q{j}" for j in range(len(values))))
    return Run(name, name, "table", scores=(Scores("t", "resolved", "none", keys, values=values),))


def test_means_of_right_answers_are_shown_in_points(tmp_path: Path) -> None:
    """Of a metric whose name says nothing: kept runs, several baselines and R·B hold no 0 and 1 any more."""
    rng = np.random.default_rng(0)
    old, new = ((rng.random((60, 4)) < p).astype(float) for p in (0.6, 0.5))
    a, b = graded("a", new), graded("b", old)
    hn.gate(b, floor=0.1, store=tmp_path)
    stored = {"kept": tmp_path, "runs": [b, graded("c", np.roll(old, 1, axis=1) * (np.arange(4) < 3))]}
    for against in (b, *stored.values()):
        for ratio in (None, 0.9):
            gate = hn.gate(a, against, ratio=ratio)
            assert "points" in hn.render(gate, "markdown"), (against, ratio)
    assert hn.gate(a, tmp_path).rows[0].p_value == hn.gate(a, b).rows[0].p_value
    thirds = hn.gate(graded("a", new / 3), graded("b", old / 3), ratio=0.9)
    assert "points" not in hn.render(thirds, "markdown")


def test_a_run_that_was_kept_before_says_nothing_and_is_read(tmp_path: Path) -> None:
    hn.gate(graded("b", np.eye(60)[:, :4]), floor=0.0, store=tmp_path)
    (file,) = tmp_path.iterdir()
    content = head(file)
    del content["scores"][0]["of_right"]  # type: ignore[index]
    file.write_bytes(gzip.compress(json.dumps(content).encode()))
    assert hn.gate(graded("a", np.eye(60)[:, 1:5]), tmp_path).passed


def spoilt(field: str, value: object) -> bytes:
    content = kept_runs._content(kept_runs.comparable(run(0)))
    place: object = content
    *outer, last = field.split(".")
    for name in outer:
        place = place[int(name) if name.isdecimal() else name]  # type: ignore[index]
    place[int(last) if last.isdecimal() else last] = value  # type: ignore[index]
    return gzip.compress(json.dumps(content).encode())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", 3), ("name", None), ("scores", {"a": 1}), ("questions.0.keys", ["a"] * 60), ("questions.0.kind", []),
        ("questions.0.prompts", ["a"]), ("scores.0.mean.0", "1"), ("scores.0.mean.0", True),
        ("scores.0.mean.0", 10**400), ("scores.0.mean.0", 1e160), ("scores.0.bounds", [0, 1e160]),
        ("scores.0.mean.0", float("inf")), ("scores.0.mean", [1.0]), ("scores.0.clusters", ["a"]),
        ("scores.0.clusters", [1] * 60), ("scores.0.bounds", [1, 0]), ("scores.0.bounds", [0.9, 1]),
        ("scores.0.higher_is_better", 1), ("scores.0.diagnostics", [[]]), ("scores.0.cluster_spec", 3),
        ("scores.0.version", None), ("scores.0.questions", -1), ("scores.0.questions", True), ("scores.0.task", None),
        ("scores.0.more", 1), ("scores.0.of_right", 1), ("skipped", [["a"]]), ("groups", [{"name": "g"}]),
        ("groups", [{"name": "g", "metric": "acc", "scorer": "none", "tasks": ["t", "t"], "weighting": "size",
                     "native": None, "weights": None}]),
        ("groups", [{"name": "g", "metric": "acc", "scorer": "none", "tasks": ["t"], "weighting": "size",
                     "native": None, "weights": [0]}]),
    ],
)  # fmt: skip
def test_a_value_of_another_kind_is_no_kept_run(tmp_path: Path, field: str, value: object) -> None:
    (tmp_path / "run-1-a.json.gz").write_bytes(spoilt(field, value))
    with pytest.raises(hn.InputError, match="not a run that `store` has kept"):
        hn.gate(run(0), tmp_path)

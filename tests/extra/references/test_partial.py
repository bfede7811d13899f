"""The score of a whole benchmark from a random subset of it, in arrays, files and profiles."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import as_scores
from harness_noise.cli import main
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run
from harness_noise.errors import InputError
from harness_noise.extra.partial import Part, features, from_part, plain, positions_look_random, ridge
from harness_noise.extra.references.estimating import full_means
from harness_noise.extra.subsets import full_benchmark, part_of
from harness_noise.settings import Settings
from support.notes import noted


def board(rng: np.random.Generator, n: int = 400, models: int = 7, size: int = 1) -> np.ndarray:
    """(n, models) scores, each model better than the one before."""
    difficulty = 1.2 * rng.standard_normal(n) + np.repeat(0.7 * rng.standard_normal(n // size), size) * (size > 1)
    latent = np.linspace(-0.6, 0.8, models) - difficulty[:, None] + 0.6 * rng.standard_normal((n, models))
    return (latent > 0).astype(float)


def test_without_references_that_vary_it_is_the_textbook_estimate_of_a_finite_population() -> None:
    rng = np.random.default_rng(1)
    y = rng.random(300)
    rows = rng.choice(300, 60, replace=False)
    found = hn.estimate_from_part(y[rows], rows, np.full((300, 3), 0.5))
    assert (found.r2, found.gain) == (None, None)
    assert found.estimate == pytest.approx(y[rows].mean(), abs=1e-14)
    assert found.se == pytest.approx(y[rows].std(ddof=1) / np.sqrt(60) * np.sqrt(1 - 60 / 300), rel=1e-12)
    assert found.se_population == pytest.approx(y[rows].std(ddof=1) / np.sqrt(60), rel=1e-12)


def test_references_that_say_nothing_cost_next_to_nothing() -> None:
    rng = np.random.default_rng(1)
    y, noise = rng.random(300), rng.random((300, 3))
    rows = rng.choice(300, 60, replace=False)
    found = hn.estimate_from_part(y[rows], rows, noise)
    textbook = y[rows].std(ddof=1) / np.sqrt(60) * np.sqrt(1 - 60 / 300)
    assert found.gain is not None
    assert 0.9 < found.gain <= 1
    assert found.estimate == pytest.approx(y[rows].mean(), abs=textbook / 3)
    assert textbook < found.se < 1.06 * textbook


def test_references_that_know_everything_leave_nothing_unknown() -> None:
    rng = np.random.default_rng(2)
    x = rng.random(300)
    rows = rng.choice(300, 60, replace=False)
    found = hn.estimate_from_part(0.2 + 0.5 * x[rows], rows, x)
    assert found.r2 is not None
    assert found.gain is not None
    assert found.r2 > 0.999
    assert found.gain > 1000
    assert found.estimate == pytest.approx(float((0.2 + 0.5 * x).mean()), abs=1e-3)


@pytest.mark.simulation
def test_the_interval_holds_the_mean_of_the_whole_benchmark_and_is_narrower() -> None:
    rng = np.random.default_rng(3)
    Y = board(rng)
    covered, gains, errors, plains = 0, [], [], []
    for _ in range(400):
        rows = rng.choice(400, 100, replace=False)
        found = hn.estimate_from_part(Y[rows, -1], rows, Y[:, :-1])
        assert found.ci_low is not None
        assert found.ci_high is not None
        assert found.estimate is not None
        truth = Y[:, -1].mean()
        covered += found.ci_low <= truth <= found.ci_high
        gains.append(found.gain or 1.0)
        errors.append(found.estimate - truth)
        plains.append(Y[rows, -1].mean() - truth)
    assert 0.92 <= covered / 400 <= 0.98
    assert np.var(plains) / np.mean(np.square(errors)) > 1.3
    assert abs(np.mean(errors)) < 4 * np.std(errors) / 20
    assert 1.2 < np.mean(gains) < 2.5


@pytest.mark.simulation
def test_of_a_difference_the_mean_of_the_run_that_answered_all_is_known() -> None:
    """For these questions and for all of their kind; the plain paired difference has 1.7 times the variance."""
    rng = np.random.default_rng(5)
    reached = {"these": 0, "population": 0}
    errors, plains = [], []
    kind = board(np.random.default_rng(6), 200_000)
    truth = float(kind[:, 6].mean() - kind[:, 5].mean())
    for _ in range(400):
        Y = board(rng)
        rows = rng.choice(400, 100, replace=False)
        found = hn.estimate_from_part(Y[rows, 6], rows, Y[:, :5], against=Y[:, 5])
        assert found.estimate is not None
        assert found.ci_low is not None
        assert found.ci_low_population is not None
        here = Y[:, 6].mean() - Y[:, 5].mean()
        reached["these"] += found.ci_low <= here <= found.ci_high
        reached["population"] += found.ci_low_population <= truth <= found.ci_high_population
        errors.append(found.estimate - here)
        plains.append((Y[rows, 6] - Y[rows, 5]).mean() - here)
    assert min(reached.values()) >= 0.92 * 400
    assert max(reached.values()) <= 0.98 * 400
    assert np.mean(np.square(plains)) / np.mean(np.square(errors)) > 1.4
    assert abs(np.mean(errors)) < 4 * np.std(errors) / 20


def test_a_run_that_repeats_the_other_on_the_part_says_nothing_of_the_rest() -> None:
    rng = np.random.default_rng(7)
    Y = board(rng)
    rows = rng.choice(400, 100, replace=False)
    found = hn.estimate_from_part(Y[rows, 5], rows, Y[:, :5], against=Y[:, 5])
    assert (found.estimate, found.se, found.se_population) == (0.0, None, None)
    assert "zero_variance" in found.diagnostics
    with pytest.raises(InputError, match="400 question means"):
        hn.estimate_from_part(Y[rows, 5], rows, Y[:, :5], against=Y[rows, 5])


def test_clusters_and_tasks_are_those_of_the_design() -> None:
    """By hand: residuals within tasks, summed by cluster, each task with its own share left unknown."""
    rng = np.random.default_rng(4)
    strata = np.repeat([0, 1], [200, 100])
    clusters = np.arange(300) // 5
    asked = np.flatnonzero(
        np.isin(clusters, np.concatenate([rng.choice(40, 16, False), 40 + rng.choice(20, 8, False)]))
    )
    y = rng.random(len(asked))
    found = plain(y, Part(asked, clusters, strata))
    assert found is not None
    V = estimate = 0.0
    for t, (N, G) in enumerate(((200, 16), (100, 8))):
        rows = strata[asked] == t
        m = rows.sum()
        e = y[rows] - y[rows].mean()
        sums = np.array([e[clusters[asked][rows] == c].sum() for c in np.unique(clusters[asked][rows])])
        V += (N / 300) ** 2 * (1 - m / N) * float(sums @ sums) / m**2 / (1 - 1 / G)
        estimate += N / 300 * y[rows].mean()
    assert found.variance == pytest.approx(V, rel=1e-12)
    assert found.estimate == pytest.approx(estimate, rel=1e-12)


def test_tasks_of_equal_weight_are_weighted_so() -> None:
    y, asked = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0]), np.array([0, 5, 9, 20, 25, 28])
    part = Part(asked, np.arange(30), np.repeat([0, 1], [20, 10]), np.array([0.5, 0.5]))
    found = plain(y, part)
    assert found is not None
    assert found.estimate == pytest.approx(0.5 * 2 / 3 + 0.5 / 3)


def test_a_task_that_was_asked_whole_adds_no_error() -> None:
    rng = np.random.default_rng(8)
    y = rng.random(30)
    asked = np.concatenate([np.arange(10), 10 + rng.choice(40, 20, False)])
    found = plain(y, Part(asked, np.arange(50), np.repeat([0, 1], [10, 40])))
    assert found is not None
    assert found.variance == pytest.approx((40 / 50) ** 2 * 0.5 * y[10:].var(ddof=1) / 20, rel=1e-12)


def test_the_ridge_is_the_closed_form_at_a_penalty_of_the_grid() -> None:
    rng = np.random.default_rng(5)
    Z, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    new = rng.standard_normal((5, 3))
    found = ridge(Z, y, new)
    X = Z - Z.mean(axis=0)
    each = [
        y.mean() + (new - Z.mean(axis=0)) @ np.linalg.solve(X.T @ X + k * np.eye(3), X.T @ (y - y.mean()))
        for k in 10.0 ** np.arange(-2, 5)
    ]
    assert min(np.abs(found - item).max() for item in each) < 1e-10


def test_features_come_from_the_references_alone_and_skip_what_is_constant() -> None:
    X = np.column_stack([np.ones(50), np.ones(50)])
    assert features(X, 100).shape == (50, 0)
    X = np.random.default_rng(1).random((50, 6))
    assert features(X, 49).shape == (50, 1)
    assert features(X, 1000).shape == (50, 5)
    assert features(X, 149).shape == (50, 3)  # a component for every 50 questions
    assert features(X[:, :2], 1000).shape == (50, 2)  # no more components than references less one
    X[3, 2] = np.nan
    assert np.isfinite(features(X, 1000)).all()
    own = np.arange(50.0)
    assert features(X, 49, own).shape == (50, 2)
    assert np.corrcoef(features(X, 49, own)[:, 0], own)[0, 1] == pytest.approx(1)
    assert features(X[:, :0], 49, own).shape == (50, 1)


def test_too_small_a_part_learns_nothing() -> None:
    rng = np.random.default_rng(6)
    part = Part(rng.choice(200, 29, replace=False), np.arange(200), np.zeros(200, dtype=np.intp))
    y = rng.random(29)
    assert from_part(y, part, rng.random((200, 2))) == plain(y, part)


@pytest.mark.parametrize("asked", [range(50), range(50, 150), [*range(45), 60, 70, 80, 90, 100], range(350, 400)])
def test_a_part_that_lies_together_is_refused(asked: object) -> None:
    rows = np.array(list(asked))  # type: ignore[call-overload]
    y = np.random.default_rng(1).random(400)
    with pytest.raises(InputError, match="not drawn at random"):
        hn.estimate_from_part(y[rows], rows, y)


@pytest.mark.simulation
def test_the_first_of_every_task_are_refused_and_random_parts_are_not() -> None:
    strata = np.repeat(np.arange(10), 20)
    first = np.concatenate([20 * t + np.arange(5) for t in range(10)])
    assert not positions_look_random(Part(first, np.arange(200), strata))
    rng = np.random.default_rng(2)
    for _ in range(2000):
        rows = np.concatenate([20 * t + rng.choice(20, 5, replace=False) for t in range(10)])
        assert positions_look_random(Part(rows, np.arange(200), strata))
        few = rng.choice(200, 3, replace=False)
        assert positions_look_random(Part(few, np.arange(200), np.zeros(200, dtype=np.intp)))


def test_what_cannot_be_used_is_refused() -> None:
    y = np.random.default_rng(1).random(40)
    for scores, asked, match in (
        (y, np.arange(40), "all 40 questions were asked"),
        (y[:2], np.array([3, 3]), "each once"),
        (y[:2], np.array([3, 40]), "below 40"),
        (y[:1], np.array([3]), "fewer than two"),
        (y[:3], np.array([3, 4]), "each of the 3"),
    ):
        with pytest.raises(InputError, match=match):
            hn.estimate_from_part(scores, asked, y)
    with pytest.raises(InputError, match="3 strata for the 40"):
        hn.estimate_from_part(y[:2], np.array([1, 20]), y, strata=[1, 2, 3])
    with pytest.raises(InputError, match="level"):
        hn.estimate_from_part(y[:2], np.array([1, 20]), y, level=1.0)


def test_scores_outside_the_range_are_refused() -> None:
    rng = np.random.default_rng(5)
    y, rows = rng.random(200), rng.choice(200, 60, replace=False)
    assert hn.estimate_from_part(y[rows], rows, y, range=(0, 1)) == hn.estimate_from_part(y[rows], rows, y)
    with pytest.raises(InputError, match=r"not within `range=\(0, 0\.5\)`"):
        hn.estimate_from_part(y[rows], rows, y, range=(0, 0.5))
    with pytest.raises(InputError, match=r"not within `range=\(0, 1\)`"):
        hn.estimate_from_part(y[rows], rows, y, against=100 * y, range=(0, 1))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """old0 … old4 and b_whole on all questions, new and b on a random subset, and first on the first ones."""
    rng = np.random.default_rng(11)
    Y = board(rng)
    part = rng.choice(400, 120, replace=False)

    def write(name: str, column: int, rows: np.ndarray, model: str) -> None:
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["question", "model", "score"])
            out.writerows([i, model, int(Y[i, column])] for i in rows)

    for k in range(5):
        write(f"old{k}", k, np.arange(400), f"old{k}")
    write("new", 6, part, "new")
    write("b", 5, part, "b")
    write("b_whole", 5, np.arange(400), "b")
    write("first", 6, np.arange(120), "new")
    write("whole", 6, np.arange(400), "new")
    np.save(tmp_path / "Y.npy", Y)
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main([*arguments, "--format", "json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_references_as_files_say_what_the_arrays_say(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    references = [x for k in range(5) for x in ("--complete", str(files / f"old{k}.csv"))]
    found = shown(capsys, "analyze", str(files / "new.csv"), *references)
    (row,) = found["full_benchmark"]  # type: ignore[misc]
    Y = np.load(files / "Y.npy")
    rows = asked_in(files / "new.csv")
    expected = hn.estimate_from_part(Y[rows, 6], rows, Y[:, :5])
    for name in ("estimate", "se", "ci_low", "ci_high", "n_asked", "n_total", "r2", "gain"):
        assert row[name] == pytest.approx(getattr(expected, name), rel=1e-12)
    assert row["references"] == [f"old{k}" for k in range(5)]
    assert (row["task"], row["model"]) == ("table", "new")
    assert main(["analyze", str(files / "new.csv"), *references]) == 0
    assert "The whole benchmark, from a part of it" in capsys.readouterr().out


def test_a_difference_on_the_whole_benchmark(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """B has answered all: A − B is A's mean, which B and the references predict, minus B's."""
    references = [x for k in range(5) for x in ("--complete", str(files / f"old{k}.csv"))]
    Y = np.load(files / "Y.npy")
    rows = asked_in(files / "new.csv")
    for given, X in ((references, Y[:, :5]), (["--complete", str(files / "b_whole.csv")], Y[:, :0])):
        found = shown(capsys, "compare", str(files / "new.csv"), str(files / "b_whole.csv"), *given)
        (row,) = found["full_benchmark"]  # type: ignore[misc]
        assert (row["model"], row["n_asked"], row["n_total"]) == ("new − b", 120, 400)
        expected = hn.estimate_from_part(Y[rows, 6], rows, X, against=Y[:, 5])
        for name in ("estimate", "se", "ci_low", "ci_high", "se_population", "ci_low_population", "r2", "gain"):
            assert row[name] == pytest.approx(getattr(expected, name), rel=1e-12)
        assert row["gain"] > 1
        assert row["se"] < row["se_population"]


def test_a_difference_on_one_part_says_nothing_of_the_whole(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    references = [x for k in range(5) for x in ("--complete", str(files / f"old{k}.csv"))]
    found = shown(capsys, "compare", str(files / "new.csv"), str(files / "b.csv"), *references)
    assert "full_benchmark" not in found
    assert any("b has answered 120 of 400 questions only" in note for note in noted(found["notes"]))  # type: ignore[attr-defined]


def test_a_few_questions_without_an_answer_are_left_out_of_the_whole(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Y, rows = np.load(files / "Y.npy"), asked_in(files / "new.csv")
    lines = (files / "b_whole.csv").read_text().splitlines(keepends=True)
    (files / "b_nearly.csv").write_text("".join([lines[0], *lines[11:]]))
    references = [x for k in range(5) for x in ("--complete", str(files / f"old{k}.csv"))]
    found = shown(capsys, "compare", str(files / "new.csv"), str(files / "b_nearly.csv"), *references)
    (row,) = found["full_benchmark"]  # type: ignore[misc]
    left = rows[rows >= 10]
    expected = hn.estimate_from_part(Y[left, 6], left - 10, Y[10:, :5], against=Y[10:, 5])
    assert (row["estimate"], row["se"], row["n_total"]) == pytest.approx((expected.estimate, expected.se, 390))
    assert any("no answer to 10 of 400" in note for note in noted(found["notes"]))  # type: ignore[attr-defined]


def asked_in(path: Path) -> np.ndarray:
    with path.open() as file:
        return np.array([int(line["question"]) for line in csv.DictReader(file)])


def test_the_first_questions_of_a_file_are_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(files / "first.csv"), "--complete", str(files / "old1.csv")]) == 2
    assert "not drawn at random" in capsys.readouterr().err


def test_a_run_of_all_questions_needs_no_references(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, "analyze", str(files / "whole.csv"), "--complete", str(files / "old1.csv"))
    assert "full_benchmark" not in found
    assert any("has answered all 400 questions" in note for note in noted(found["notes"]))  # type: ignore[attr-defined]


def test_questions_that_the_references_lack_are_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(files / "whole.csv"), "--complete", str(files / "new.csv")]) == 2
    assert "280 of 400 questions are not among those of the complete runs" in capsys.readouterr().err


def test_a_profile_with_questions_is_its_runs(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    olds = [str(files / f"old{k}.csv") for k in range(5)]
    profile = str(files / "profile.json")
    assert main(["arena", *olds, "--write-profile", profile, "--with-questions", "-q"]) == 0
    capsys.readouterr()
    by_profile = shown(capsys, "analyze", str(files / "new.csv"), "--complete", profile)["full_benchmark"]
    by_runs = shown(capsys, "analyze", str(files / "new.csv"), *[x for old in olds for x in ("--complete", old)])
    assert by_profile == by_runs["full_benchmark"]
    assert main(["arena", *olds, "--write-profile", profile, "-q"]) == 0
    capsys.readouterr()
    assert main(["analyze", str(files / "new.csv"), "--complete", profile]) == 2
    assert "has no means by question" in capsys.readouterr().err
    assert main(["arena", *olds, "--with-questions", "-q"]) == 2
    assert "name the FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        {"means": [[1.0]]},
        {"means": "x"},
        {"keys": None},
        {"models": ["a", "a", "b", "c", "d"]},
        {"means": [["x"] * 400] * 5},
    ],
)
def test_a_broken_profile_is_refused(
    files: Path, capsys: pytest.CaptureFixture[str], change: dict[str, object]
) -> None:
    olds = [str(files / f"old{k}.csv") for k in range(5)]
    profile = files / "profile.json"
    assert main(["arena", *olds, "--write-profile", str(profile), "--with-questions", "-q"]) == 0
    content = json.loads(profile.read_text())
    content["benchmarks"][0]["questions"] |= change
    profile.write_text(json.dumps(content, indent=2))
    capsys.readouterr()
    assert main(["analyze", str(files / "new.csv"), "--complete", str(profile)]) == 2
    assert "broken questions. Make it again" in capsys.readouterr().err


def test_a_part_without_variance_has_no_standard_error():
    rng = np.random.default_rng(1)
    asked, references = rng.choice(200, 50, replace=False), rng.random((200, 3))
    found = hn.estimate_from_part(np.ones(50), asked, references)
    assert (found.estimate, found.se, found.ci_low, found.ci_high) == (1.0, None, None, None)
    assert found.diagnostics == ("few_failures", "zero_variance")


def test_few_wrong_answers_of_a_mean_and_few_flips_of_a_difference_are_coded():
    rng = np.random.default_rng(2)
    asked, references = rng.choice(200, 50, replace=False), rng.random((200, 3))
    for y in (np.r_[np.ones(47), np.zeros(3)], np.r_[np.zeros(47), -np.ones(3)]):
        found = hn.estimate_from_part(y, asked, references)
        assert found.se > 0
        assert {"few_failures", "few_flips"} & {*found.diagnostics} == {"few_failures"}
    y = np.r_[np.ones(47), np.zeros(3)]
    found = full_benchmark(y, part_of(asked, 200, None, None), references, ("r",), against=np.ones(200))
    assert {"few_failures", "few_flips"} & {*found.diagnostics} == {"few_flips"}
    assert hn.estimate_from_part(rng.random(50), asked, references).diagnostics == ()
    assert "few_clusters" in hn.estimate_from_part(rng.random(5), asked[:5], references).diagnostics


def test_the_regression_written_out():
    """Each residual from a fit without its fold; degrees of freedom less one for each feature; df by Satterthwaite."""
    rng = np.random.default_rng(12)
    scores = board(rng, 300)
    y, X, rows = scores[:, -1], scores[:, :-1], np.sort(rng.choice(300, 60, replace=False))
    found = from_part(y[rows], Part(rows, np.arange(300), np.zeros(300, dtype=np.intp)), X)
    assert found is not None
    Z, asked, rest = features(X, 60), y[rows], np.setdiff1d(np.arange(300), rows)
    fold = np.random.default_rng(0).permutation(60) % 10
    residual, others = np.empty(60), 0.0
    for f in range(10):
        held = fold == f
        fitted = ridge(Z[rows[~held]], asked[~held], Z)
        residual[held] = asked[held] - fitted[rows[held]]
        others += float(fitted[rest].sum()) / 300 * held.mean()
    freedom = 59 - Z.shape[1]
    these, full = 0.8 * residual.var(ddof=1) / 60 * 59 / freedom, 0.2 * asked.var(ddof=1) / 60
    assert found.estimate == pytest.approx(0.2 * asked.mean() + 0.8 * residual.mean() + others, abs=1e-12)
    assert (found.variance, found.df) == pytest.approx((these, freedom), rel=1e-10)
    assert found.population_variance == pytest.approx(these + full, rel=1e-10)
    assert found.population_df == pytest.approx((these + full) ** 2 / (these**2 / freedom + full**2 / 59), rel=1e-10)
    assert found.r2 == pytest.approx(1 - residual.var() / asked.var(), rel=1e-10)
    assert found.gain == pytest.approx(0.8 * asked.var(ddof=1) / 60 / these, rel=1e-10)


def test_a_task_that_was_asked_all_but_whole_still_adds_its_error():
    rng = np.random.default_rng(8)
    strata, asked = np.repeat([0, 1], [20, 80]), np.concatenate([np.arange(19), 20 + np.arange(0, 80, 2)])
    y = rng.random(59)
    found = plain(y, Part(asked, np.arange(100), strata))
    assert found is not None
    own = [0.2**2 * (1 / 20) * y[:19].var(ddof=1) / 19, 0.8**2 * (1 / 2) * y[19:].var(ddof=1) / 40]
    assert found.variance == pytest.approx(sum(own), rel=1e-10)


def test_a_question_of_one_task_is_no_cluster_with_one_of_another() -> None:
    """Of three tasks only w has clusters; the others' questions are as independent as if each said so."""
    rng = np.random.default_rng(3)
    rows = {"u": np.arange(0, 200, 2), "v": np.arange(0, 200, 2), "w": np.flatnonzero(np.arange(200) // 4 % 2)}
    latent = {task: 1.5 * rng.standard_normal((200, 1)) + 0.7 * rng.standard_normal((200, 4)) for task in rows}

    def side(j: int, *, named: bool) -> Run:
        parts = []
        for task, right in latent.items():
            at = rows[task] if j == 0 else np.arange(200)
            labels = [f"c{i // 4}" if task == "w" else f"{task}{i}" for i in at] if named or task == "w" else None
            part = as_scores((right[at, j] > 0).astype(float), labels, task=task)
            parts.append(replace(part, questions=Questions(tuple(f"q{i}" for i in at))))
        drawn = tuple({"task": task, "n_total": 200, "stopped_early": False} for task in rows) if j == 0 else ()
        group = Group("g", parts[0].metric, parts[0].scorer, tuple(rows))
        return Run(f"m{j}", f"m{j}", "array", scores=tuple(parts), groups=(group,), drawn=drawn)

    alone, named = (
        full_means([side(0, named=named)], [side(j, named=named) for j in (1, 2, 3)], Settings())[0][-1]
        for named in (False, True)
    )
    assert alone.task == "g"
    assert alone.se == pytest.approx(named.se, rel=1e-12)
    assert alone.estimate == pytest.approx(named.estimate, rel=1e-12)


@pytest.mark.parametrize("difference", [False, True])
def test_the_interval_of_a_whole_benchmark_stays_in_the_range_of_the_row(*, difference: bool) -> None:
    """Few clusters of 0/1 scores: the row of the part has the range [0, 1], and this one reached from −0.13 to 1.13."""
    rng = np.random.default_rng(0)
    keys, cluster = tuple(f"q{i}" for i in range(60)), rng.permutation(60) // 12
    names = tuple(f"c{c}" for c in cluster)
    right = np.stack([cluster == 1, cluster == 3, rng.random(60) < 0.5], axis=1).astype(float)
    asked = [i for i in range(60) if names[i] in ("c1", "c3")]
    part = replace(as_scores(right[asked, :1], task="t"), bounds=None)
    part = replace(part, questions=Questions(tuple(keys[i] for i in asked)), clusters=tuple(names[i] for i in asked))
    sides = [
        replace(as_scores(right[:, r]), task="t", bounds=None, questions=Questions(keys), clusters=names)
        for r in (1, 2)
    ]
    new, *others = (Run(name, name, "array", scores=(x,)) for name, x in zip("abc", (part, *sides), strict=True))
    for scale, choices in ((1, {}), (100, {"range": (0, 100)})):
        runs = [replace(x, scores=(replace(x.scores[0], values=scale * x.scores[0].values),)) for x in (new, *others)]
        if difference:
            (row,) = hn.compare(runs[0], runs[1], complete=runs[2:], **choices).full_benchmark
        else:
            (row,) = hn.analyze(runs[0], complete=runs[1:], **choices).full_benchmark
        ends = (row.ci_low, row.ci_high, row.ci_low_population, row.ci_high_population)
        assert ends == (-scale if difference else 0, scale) * 2

"""A − B of two runs that have answered different random subsets of a benchmark, with references that answered all."""

import csv
import json
import math

import numpy as np
import pytest

from harness_noise.cli import main
from harness_noise.extra.partial import Part
from harness_noise.extra.references.two_parts import two_parts

N = 500


def board(rng, size=1):
    """(N, 9) scores of models of rising ability on questions of one difficulty for all, clusters of this size."""
    difficulty = 1.2 * rng.standard_normal(N) + np.repeat(0.7 * rng.standard_normal(N // size), size) * (size > 1)
    latent = np.linspace(-0.6, 0.8, 9) - difficulty[:, None] + 0.6 * rng.standard_normal((N, 9))
    return (latent > 0).astype(float)


def parts(rng, m_a, m_b, how, size=1):
    """Two random subsets of whole clusters: drawn apart, disjoint, or one within the other."""
    G, clusters = N // size, np.repeat(np.arange(N // size), size)
    order = rng.permutation(G)
    start = m_a // size if how == "disjoint" else 0
    second = rng.permutation(G) if how == "apart" else order[start:]
    asked = [np.flatnonzero(np.isin(clusters, drawn)) for drawn in (order[: m_a // size], second[: m_b // size])]
    return [Part(rows, clusters, np.zeros(N, dtype=np.intp)) for rows in asked]


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("m_a", "m_b", "how", "size", "ratio"),
    [
        (150, 150, "apart", 1, (0.75, 1.35)),
        (250, 250, "apart", 5, (0.75, 1.35)),
        (150, 300, "within", 1, (0.75, 1.35)),
        (250, 250, "disjoint", 1, (1.1, 2.1)),
    ],
)
def test_the_interval_covers_and_the_error_is_a_third(m_a, m_b, how, size, ratio):
    rng, errors, plain, variances, covered = np.random.default_rng(10), [], [], [], 0
    trials = 300  # the ratio of variances has a standard error of 0.08
    for _ in range(trials):
        Y = board(rng, size)
        a, b, X = Y[:, 6], Y[:, 4], np.delete(Y, [4, 6], axis=1)
        first, second = parts(rng, m_a, m_b, how, size)
        found = two_parts(a[first.asked], first, b[second.asked], second, X)
        truth = a.mean() - b.mean()
        errors.append(found.estimate.estimate - truth)
        variances.append(found.estimate.variance)
        covered += abs(errors[-1]) <= found.estimate.half_width(0.95)
        common = np.intersect1d(first.asked, second.asked)
        plain.append((a - b)[common].mean() - truth if len(common) else math.nan)
        assert found.overlap_known == (how != "disjoint") or size > 1  # of few clusters few are common
    assert covered / trials > 0.95 - 3.3 * math.sqrt(0.95 * 0.05 / trials)
    assert ratio[0] < np.mean(variances) / np.mean(np.square(errors)) < ratio[1]
    if how == "apart":
        assert np.mean(np.square(plain)) > 2 * np.mean(np.square(errors))


def test_a_whole_run_has_no_error_of_its_own():
    rng = np.random.default_rng(5)
    Y = board(rng)
    every = Part(np.arange(N), np.arange(N), np.zeros(N, dtype=np.intp))
    (some, _) = parts(rng, 150, 150, "apart")
    X = Y[:, :4]
    found = two_parts(Y[:, 6], every, Y[some.asked, 5], some, X).estimate
    turned = two_parts(Y[some.asked, 5], some, Y[:, 6], every, X).estimate
    assert found.estimate == pytest.approx(-turned.estimate)
    assert found.variance == pytest.approx(turned.variance)
    assert two_parts(Y[:, 6], every, Y[:, 5], every, X) is None  # nothing is unknown


def test_small_parts_and_references_that_say_nothing_are_refused():
    rng = np.random.default_rng(6)
    Y = board(rng)
    small, some = parts(rng, 10, 150, "apart")
    assert two_parts(Y[small.asked, 6], small, Y[some.asked, 5], some, Y[:, :4]) is None
    assert two_parts(Y[some.asked, 6], some, Y[some.asked, 5], some, np.full((N, 2), 0.5)) is None


def test_parts_that_split_clusters_are_refused():
    rng = np.random.default_rng(8)
    Y = board(rng, 5)
    clusters = np.repeat(np.arange(N // 5), 5)
    split = [Part(np.sort(rng.permutation(N)[:200]), clusters, np.zeros(N, dtype=np.intp)) for _ in range(2)]
    whole = parts(rng, 200, 200, "apart", 5)
    for first, second in (split, (whole[0], split[1]), (split[0], whole[1])):
        assert two_parts(Y[first.asked, 6], first, Y[second.asked, 5], second, Y[:, :4]) is None
    first, second = whole
    assert two_parts(Y[first.asked, 6], first, Y[second.asked, 5], second, Y[:, :4]) is not None


@pytest.fixture
def files(tmp_path):
    """Runs A and B of two random subsets, two references, and the numbers by the function on arrays."""
    rng = np.random.default_rng(7)
    Y, asked = board(rng), parts(rng, 150, 200, "apart")

    def write(name, column, rows):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["question", "score"], *([f"q{i:03}", column[i]] for i in rows)])

    write("a", Y[:, 6], asked[0].asked)
    write("b", Y[:, 4], asked[1].asked)
    write("old", Y[:, 5], range(N))
    write("older", Y[:, 3], range(N))
    write("same", Y[:, 2], asked[0].asked)
    return tmp_path, Y, asked


def run(capsys, folder, *words):
    names = [str(folder / f"{word}.csv") if word.isalpha() and len(word) < 6 else word for word in words]
    assert main(["compare", *names, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_command_estimates_the_whole_benchmark(files, capsys):
    folder, Y, asked = files
    found = run(capsys, folder, "a", "b", "--complete", "old", "--complete", "older")
    (row,) = found["full_benchmark"]
    expected = two_parts(Y[asked[0].asked, 6], asked[0], Y[asked[1].asked, 4], asked[1], Y[:, [5, 3]]).estimate
    assert (row["model"], row["n_asked"], row["n_asked_b"], row["n_total"]) == ("a − b", 150, 200, N)
    assert row["estimate"] == pytest.approx(expected.estimate, abs=0.01)  # folds are drawn by the questions' names
    assert row["se"] == pytest.approx(math.sqrt(expected.variance), rel=0.05)
    assert row["gain"] > 1
    assert row["se"] < row["se_population"]
    assert (
        main(["compare", *(str(folder / f"{name}.csv") for name in "ab"), "--complete", str(folder / "old.csv")]) == 0
    )
    said = " ".join(capsys.readouterr().out.split())
    assert "150 and 200 of 500" in said
    sentence = said.partition("SE")[0]  # beside the verdict
    assert "from both parts and the complete runs, a − b =" in sentence
    assert "points [" in sentence
    assert "%" not in sentence.partition("runs, a − b")[2].partition(" on all ")[0]


def test_of_one_part_the_pairs_say_all(files, capsys):
    found = run(capsys, files[0], "a", "same", "--complete", "old")
    assert "full_benchmark" not in found


def test_the_command_says_why_split_clusters_have_no_whole_benchmark(tmp_path, capsys):
    rng = np.random.default_rng(9)
    Y = board(rng, 5)
    for name, model, rows in (
        ("a", 6, rng.permutation(N)[:200]),
        ("b", 4, rng.permutation(N)[:200]),
        ("old", 5, range(N)),
    ):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            lines = [[f"q{i:03}", Y[i, model], f"c{i // 5}"] for i in sorted(rows)]
            csv.writer(file).writerows([["question", "score", "cluster"], *lines])
    found = run(capsys, tmp_path, "a", "b", "--complete", "old")
    assert "full_benchmark" not in found
    assert any("split no cluster" in note["text"] for note in found["notes"])

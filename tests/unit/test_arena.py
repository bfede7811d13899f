"""The arena beside its pairs: models, benchmarks, questions, the set of the best, input that is odd."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest

from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_runs
from harness_noise.analysis.repeats import as_repeats
from harness_noise.analysis.sample import as_scores
from harness_noise.cli import main
from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores, Run, Scores
from harness_noise.errors import InputError
from harness_noise.leaderboard import profiles as reference
from harness_noise.leaderboard.benchmark import best_p
from harness_noise.leaderboard.build import arena, distinct_names
from harness_noise.report import arena_tables as arena_export
from harness_noise.report import terminal, text
from harness_noise.results.schema import json_schema
from harness_noise.settings import Settings
from harness_noise.stats.benchmark import fit_beta, kendall_tau, size_of, suspects
from harness_noise.stats.passk import steps_of_k
from harness_noise.stats.planning import Variances
from harness_noise.stats.theory import beta_variance

N = 120


def board(
    M: int = 5, K: int = 3, *, seed: int = 0, names: list[str] | None = None, spread: float = 0.03, **more: Any
) -> list[Run]:
    rng = np.random.default_rng(seed)
    u = rng.uniform(size=N)
    keys = tuple(f"q{i}" for i in range(N))
    runs = []
    for m in range(M):
        values = (rng.uniform(size=(N, K)) < np.clip(u + spread * m, 0, 1)[:, None]).astype(float)
        name = names[m] if names else f"model {m}"
        runs.append(
            Run(name, f"run {m}", "array", scores=(Scores("task", "acc", "none", Questions(keys), values, **more),))
        )
    return runs


def values_of(run: Run) -> np.ndarray:
    return run.scores[0].values


def with_values(run: Run, values: np.ndarray) -> Run:
    return replace(run, scores=(replace(run.scores[0], values=values),))


# Models


def test_a_model_is_its_estimate_with_win_rate_and_pass_at_k() -> None:
    runs = board()
    found = arena(runs, Settings())
    for model, estimate in zip(found.models, analyze_runs(runs, Settings()).estimates, strict=True):
        for name in estimate.__dataclass_fields__:
            assert getattr(model, name) == getattr(estimate, name), name
        assert model.pass_at_k is not None
        assert list(model.pass_at_k) == [1, 2, 3]
        assert model.pass_at_k[1] == pytest.approx(model.mean)
    best = values_of(runs[-1])
    assert found.models[-1].pass_at_k is not None
    assert found.models[-1].pass_at_k[3] == pytest.approx((best.max(axis=1) == 1).mean())


def test_win_rates_are_the_mean_over_rivals_and_average_a_half() -> None:
    runs = board(M=4)
    found = arena(runs, Settings())
    rates = [model.win_rate for model in found.models]
    assert np.mean([rate for rate in rates if rate is not None]) == pytest.approx(0.5)
    a = values_of(runs[0])
    rivals = [values_of(run) for run in runs[1:]]
    expected = [((a[:, :, None] > b[:, None, :]) + 0.5 * (a[:, :, None] == b[:, None, :])).mean() for b in rivals]
    assert rates[0] == pytest.approx(np.mean(expected))


def test_lower_is_better_turns_wins_and_the_best_around() -> None:
    up, down = arena(board(), Settings()), arena(board(higher_is_better=False), Settings())
    for one, other in zip(up.models, down.models, strict=True):
        assert one.win_rate == pytest.approx(1 - (other.win_rate or 0))
        assert other.pass_at_k is None
    assert up.models[-1].among_best
    assert not down.models[-1].among_best
    assert down.models[0].among_best
    assert down.benchmarks[0].solved_by_none is None


@pytest.mark.slow
def test_the_best_set_holds_the_best_model_as_often_as_it_says() -> None:
    """All models equal, the worst case: each is the best, and leaves the set at most 5 % of the time."""
    out = trials = 0
    for seed in range(150):
        found = arena(board(M=4, K=1, spread=0.0, seed=seed), Settings())
        out += not found.models[0].among_best
        trials += 1
    assert out / trials <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / trials)


def test_p_best_is_the_smallest_one_sided_p_times_the_rivals() -> None:
    runs = board(M=4)
    found = arena(runs, Settings())
    ours = best_p(found.boards[0].pairs, 4)
    worst = []
    for run in runs[1:]:
        pair = compare_runs([(run, runs[0])], Settings()).differences[0]
        assert pair.p_value is not None
        assert pair.statistic is not None
        worst.append(pair.p_value / 2 if pair.statistic > 0 else 1 - pair.p_value / 2)
    assert ours[0] == pytest.approx(min(1.0, 3 * min(worst)))


def test_two_runs_of_one_model_are_told_apart() -> None:
    runs = board(M=3, names=["same", "same", "other"])
    found = arena(runs, Settings())
    assert [model.model for model in found.models] == ["same (run 0)", "same (run 1)", "other"]
    twins = [replace(runs[0], name="x"), replace(runs[1], name="x")]
    assert distinct_names(twins) == ("same (x)", "same (x)#2")
    paths = [replace(runs[0], name="logs/a/monday/run.json"), replace(runs[1], name="logs/a/friday/run.json"), runs[2]]
    assert distinct_names(paths) == ("same (monday)", "same (friday)", "other")
    nested = [replace(runs[0], name="logs/run"), replace(runs[1], name="logs/run/again")]
    assert len(set(distinct_names(nested))) == 2


# Benchmarks


def test_the_noise_of_a_benchmark_is_over_its_close_pairs() -> None:
    runs = board(M=7, spread=0.07)
    found = arena(runs, Settings())
    row, pairs = found.benchmarks[0], found.to_frame("pairs")
    close = pairs[pairs["diff"].abs() < 5 * pairs.se_total]
    assert 0 < row.n_close_pairs == len(close) < len(pairs) == row.n_pairs
    for name in ("se_total", "se_data", "se_prediction", "correlation"):
        spread = getattr(row, name)
        assert spread.median == pytest.approx(close[name].median())
        assert (spread.min, spread.max) == (close[name].min(), close[name].max())
    disagreement = (close.wins_a + close.wins_b) / close.n_questions
    assert row.disagreement is not None
    assert row.disagreement.median == pytest.approx(disagreement.median())
    significant = pairs.verdict != "not separable"
    assert row.smallest_significant_diff == pairs["diff"].abs()[significant].min()
    assert row.largest_insignificant_diff == pairs["diff"].abs()[~significant].max()


def test_the_beta_theory_holds_where_it_is_true() -> None:
    """Questions from Beta(p, 1 − p), answers independent given the question: the ratios are about 1."""
    rng = np.random.default_rng(0)
    n, p = 4000, 0.4
    u = rng.beta(p, 1 - p, size=n)
    keys = tuple(map(str, range(n)))
    runs = []
    for m in range(30):
        values = (rng.uniform(size=(n, 1)) < u[:, None]).astype(float)
        runs.append(Run(f"m{m}", f"r{m}", "array", scores=(Scores("t", "acc", "none", Questions(keys), values),)))
    row = arena(runs, Settings()).benchmarks[0]
    assert row.rule_of_thumb is not None
    assert row.rule_of_thumb.median == pytest.approx(1, abs=0.03)
    assert row.beta_theory is not None
    assert row.beta_theory.median > row.rule_of_thumb.median  # some questions happened to be solved by none
    assert row.solved_by_none is not None
    assert 0 < row.solved_by_none < n
    assert beta_variance(np.array([0.4]), 1.0)[0] == pytest.approx(0.24)


def test_signal_to_noise_comes_from_names_with_sizes() -> None:
    names = ["llama-3-8b-instruct", "llama-3-70b-instruct", "Qwen2.5-7B", "Mixtral-8x7B", "claude"]
    found = arena(board(names=names, spread=0.1), Settings())
    row = found.benchmarks[0]
    assert [(step.small, step.large) for step in row.steps] == [(names[0], names[1])]
    pair = found.boards[0].pairs.find(names[0], names[1])
    assert pair.diff is not None
    assert row.steps[0].diff == -pair.diff
    assert row.steps[0].ratio == pytest.approx(-pair.diff / (pair.se_total or 0))
    assert row.signal_to_noise is not None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama-3-8b", ("llama-3-*", 8)),
        ("Qwen2.5-0.5B-Instruct", ("Qwen2.5-*-Instruct", 0.5)),
        ("Mixtral-8x7B", ("Mixtral-*", 56)),
        ("pythia-160m", ("pythia-*", 0.16)),
        ("gpt-4", None),
        ("merge-7b-13b", None),
        ("3base", None),
    ],
)
def test_sizes_in_names(name: str, expected: tuple[str, float] | None) -> None:
    assert size_of(name) == expected


# Questions


@pytest.mark.parametrize("levels", [2, 4, 1000])
def test_tau_is_scipys_of_the_item_against_the_rest(levels: int) -> None:
    from scipy.stats import kendalltau

    rng = np.random.default_rng(0)
    scores = rng.integers(0, levels, (60, 45)).astype(float)
    scores[rng.uniform(size=scores.shape) < 0.2] = np.nan
    scores[0] = 1.0
    scores[:, 44] = np.nan
    scores[1, 44] = 1.0  # one question only: no rest to compare with
    for i, tau in enumerate(kendall_tau(scores)[0]):
        rest = np.full(45, np.nan)
        others = np.delete(scores, i, axis=0)
        rest[:44] = np.nanmean(others[:, :44], axis=0)
        has = ~np.isnan(scores[i]) & ~np.isnan(rest)
        assert tau == pytest.approx(kendalltau(scores[i][has], np.round(rest[has], 12)).statistic, nan_ok=True)


@pytest.mark.parametrize(("M", "ties"), [(8, 2), (7, 7), (6, 3)])
def test_the_chance_of_a_low_tau_is_that_of_all_orders(M: int, ties: int) -> None:
    """Against every order of the models, whose means differ; never too small where it counts."""
    from itertools import permutations

    rng = np.random.default_rng(M)
    item = np.sort(rng.integers(0, ties, M)).astype(float)
    others = np.arange(M) + 10.0
    taus, chances = [], []
    for order in set(permutations(item)):
        tau, low = kendall_tau(np.stack([order, others]))
        taus.append(tau[0])
        chances.append(low[0])
    found = np.array(sorted(zip(taus, chances, strict=True)))
    exact = np.searchsorted(found[:, 0], found[:, 0] + 1e-9) / len(found)
    tail = exact < 0.1
    assert (found[tail, 1] > 0.85 * exact[tail]).all()
    assert np.abs(found[:, 1] - exact).max() < 0.12


@pytest.mark.parametrize(("M", "K"), [(8, 1), (40, 1), (20, 4)])
def test_noise_alone_averages_a_tau_of_0_and_hardly_a_suspect(M: int, K: int) -> None:
    rng = np.random.default_rng(M)
    taus, suspected = [], []
    for _ in range(60):
        scores = rng.binomial(K, rng.uniform(0.2, 0.8, (100, 1)), (100, M)) / K
        tau, low = kendall_tau(scores)
        taus.append(np.nanmean(tau))
        suspected.append(suspects(tau, low).sum())
    assert abs(np.mean(taus)) < 4 * np.std(taus) / 60**0.5
    assert abs(np.mean(taus)) < 0.01
    assert np.mean(suspected) < 1.2
    with_itself = np.mean([np.corrcoef(row, scores.mean(axis=0))[0, 1] for row in scores if row.std() > 0])
    assert with_itself > 0.05  # what the item brings along when it is left in


def test_a_wrong_reference_answer_is_a_suspect_among_enough_models() -> None:
    rng = np.random.default_rng(0)
    skill, ease = np.linspace(-2, 2, 40), rng.normal(0, 1, 300)
    scores = (rng.random((300, 40)) < 1 / (1 + np.exp(-(skill - ease[:, None])))).astype(float)
    scores[:5] = 1 - scores[:5]
    found = suspects(*kendall_tau(scores))
    assert found[:5].sum() >= 3
    assert found[5:].sum() == 0
    assert not suspects(*kendall_tau(scores[:, ::13])).any()  # four models cannot tell


def test_questions_tell_difficulty_solvers_and_suspects() -> None:
    runs = board(M=16, K=2, spread=0.05)
    odd = []
    for m, run in enumerate(runs):
        values = values_of(run).copy()
        values[0], values[1], values[2] = 0.0, float(m == 3), float(m < 8)  # nobody, one, the worst half
        odd.append(with_values(run, values))
    rows = list(arena(odd, Settings()).questions)
    assert [row.n_solved for row in rows[:3]] == [0, 1, 8]
    assert [row.difficulty for row in rows[:3]] == pytest.approx([1.0, 15 / 16, 8 / 16])
    assert rows[0].tau is None
    assert rows[0].suspect is rows[0].p_tau is None
    assert rows[2].suspect
    assert rows[2].p_tau < 1 / len(rows)
    assert arena(odd, Settings()).benchmarks[0].solved_by_none == sum(row.n_solved == 0 for row in rows)


def test_difficulty_is_not_made_up_for_metrics_outside_the_unit_interval() -> None:
    found = arena([with_values(run, values_of(run) * 50 - 3) for run in board()], Settings())
    row = next(iter(found.questions))
    assert (row.difficulty, row.n_solved) == (None, None)
    assert row.tau is not None
    assert (found.benchmarks[0].beta_theory, found.benchmarks[0].solved_by_none) == (None, None)
    assert found.models[0].pass_at_k is None


# Matching


def test_questions_are_matched_by_text_where_ids_lie() -> None:
    """Shuffled automatic ids, one text each: the arena pairs as `compare` does."""
    rng = np.random.default_rng(3)
    texts = [f"text {i}" for i in range(20)]
    runs = []
    for m in range(3):
        order = rng.permutation(20) if m else np.arange(20)
        questions = Questions(tuple(str(i) for i in range(20)), inputs=tuple(texts[i] for i in order))
        values = (order[:, None] < 5 * (m + 1)).astype(float)
        runs.append(Run(f"m{m}", f"r{m}", "array", scores=(Scores("t", "acc", "none", questions, values),)))
    found = arena(runs, Settings())
    assert found.benchmarks[0].n_questions == 20
    assert any("matched by text" in note for note in found.notes)
    first = next(iter(found.pairs))
    theirs = compare_runs([(runs[0], runs[1])], Settings()).differences[0]
    assert (first.wins_a, first.wins_b, first.n_questions) == (0, 5, 20)
    assert (first.se, first.p_sign) == (pytest.approx(theirs.se), theirs.p_sign)


def test_runs_of_one_question_each_form_a_union() -> None:
    parts = []
    for m, rows in enumerate([range(0, 8), range(4, 12), range(8, 16)]):
        questions = Questions(tuple(f"q{i}" for i in rows))
        part = Scores("t", "acc", "none", questions, np.array([[float(i % 2)] for i in rows]))
        parts.append(Run(f"m{m}", f"r{m}", "array", scores=(part,)))
    found = arena(parts, Settings())
    assert found.benchmarks[0].n_questions == 16
    assert [pair.n_questions for pair in found.pairs] == [4, 0, 4]
    assert [pair.n_only_a for pair in found.pairs] == [4, 8, 4]
    empty = found.boards[0].pairs.find("m0", "m2")
    assert (empty.diff, empty.se, empty.p_value, empty.verdict) == (None, None, None, "not separable")
    assert any("share no question" in note for note in found.notes)
    json.loads(found.to_json())


# Input that cannot be used


def test_one_model_only() -> None:
    with pytest.raises(InputError, match="at least two"):
        arena(board(M=1), Settings())
    with pytest.raises(InputError, match="no run"):
        arena([], Settings())


def test_no_shared_questions() -> None:
    a, b = board(M=2)
    part = replace(b.scores[0], questions=Questions(tuple(f"x{i}" for i in range(N))))
    with pytest.raises(InputError, match="share a question"):
        arena([a, replace(b, scores=(part,))], Settings())


def test_different_metrics() -> None:
    a, b = board(M=2)
    other = replace(b, scores=(replace(b.scores[0], metric="f1"),))
    with pytest.raises(InputError, match=r"model 1 has task/f1"):
        arena([a, other], Settings())
    found = arena([a, b, replace(b, model="third", scores=(*other.scores, *b.scores))], Settings())
    assert [row.metric for row in found.benchmarks] == ["acc"]
    assert any("only third has it" in note for note in found.notes)


def test_what_is_left_out_is_said_once_for_a_task() -> None:
    a, b = board(M=2)
    more = tuple(replace(b.scores[0], metric=f"f{i}") for i in range(6))
    found = arena([a, replace(b, scores=(*b.scores, *more))], Settings())
    notes = [note for note in found.notes if "nothing to compare" in note]
    assert notes == [f"task, f0, f1, f2, f3 and 2 more: only {b.model} has them: nothing to compare"]


def test_a_corpus_metric_is_left_to_compare_and_the_arena_says_so() -> None:
    runs = board(M=3)
    whole = CorpusScores("task", "bleu", "none", runs[0].scores[0].questions)
    found = arena([replace(run, corpus=(whole,)) for run in runs], Settings())
    assert [row.metric for row in found.benchmarks] == ["acc"]
    notes = [note for note in found.notes if "bleu" in note]
    assert len(notes) == 1
    assert notes[0].startswith("task, bleu: not in the arena")


def test_a_run_that_was_given_twice_counts_once(tmp_path: Path) -> None:
    a, b = (replace(run, path=str(tmp_path / f"{i}.csv")) for i, run in enumerate(board(M=2)))
    again = replace(a, path=f"{tmp_path}/../{tmp_path.name}/0.csv")
    found = arena([a, b, again], Settings())
    assert len(found.models) == 2
    assert any("counts once" in note for note in found.notes)
    with pytest.raises(InputError, match="at least two"):
        arena([a, again], Settings())
    (joined,) = as_repeats([a, again])  # else K would double, and the noise would shrink, from nothing
    assert joined.scores == a.scores
    assert any("counts once" in note for note in joined.notes)


def test_unknown_baseline() -> None:
    with pytest.raises(InputError, match="model 0, model 1"):
        arena(board(M=3), Settings(), baseline="gpt")


def test_the_baseline_is_b_in_all_its_pairs() -> None:
    found = arena(board(M=4), Settings(), baseline="model 1")
    assert found.baseline == "model 1"
    assert sum(pair.model_b == "model 1" for pair in found.pairs) == 3
    assert not any(pair.model_a == "model 1" for pair in found.pairs)


# Forms


def test_the_json_is_strict_and_fits_the_schema() -> None:
    for runs in (board(K=1), board(), [with_values(run, values_of(run) * 9) for run in board()]):
        found = json.loads(arena(runs, Settings()).to_json(), parse_constant=lambda name: pytest.fail(name))
        jsonschema.validate(found, json_schema())
        assert [len(found[name]) for name in ("models", "pairs", "benchmarks", "questions")] == [5, 10, 1, N]


def test_the_pair_table_is_the_pairs() -> None:
    found = arena(board(), Settings())
    frame = found.to_frame("pairs")
    for (_, line), pair in zip(frame.iterrows(), found.pairs, strict=True):
        assert (line.model_a, line.model_b, line.verdict) == (pair.model_a, pair.model_b, pair.verdict)
        assert line["diff"] == pair.diff
        assert line.diagnostics == " ".join(pair.diagnostics)
    assert len(found.boards[0].pairs[:3]) == 3
    with pytest.raises(KeyError, match="no pair"):
        found.boards[0].pairs.find("model 0", "nobody")


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_exported_tables_come_back(tmp_path: Path, kind: Any) -> None:
    found = arena(board(names=["=1+1", "b", "c", "d", "e"]), Settings())
    written = arena_export.write_tables(found, tmp_path / "out", kind)
    assert sorted(path.stem for path in written) == ["benchmarks", "models", "pairs", "questions"]
    path = tmp_path / "out" / f"pairs.{kind}"
    if kind == "json":
        back = pd.DataFrame(json.loads(path.read_text()))
    elif kind == "csv":
        back = pd.read_csv(path, dtype=str)  # pandas' own way to a float may miss its last bit
    else:
        back = pd.read_parquet(path)
    np.testing.assert_array_equal(back["diff"].astype(float), found.to_frame("pairs")["diff"])
    assert back.model_a[0] == ("'=1+1" if kind == "csv" else "=1+1")
    with pytest.raises(InputError, match="xml"):
        arena_export.write_tables(found, tmp_path, "xml")  # type: ignore[arg-type]


def test_terminal_markdown_and_latex_show_every_model(capsys: pytest.CaptureFixture[str]) -> None:
    found = arena(board(M=12), Settings())
    terminal.print_to(None, found)
    shown = capsys.readouterr().out
    assert "30 of 66" in shown
    for form in (shown, text.markdown(found), text.latex(found)):
        assert all(f"model {m}" in form for m in range(12))
        assert "cannot be told from the best" in form or "is the best of" in form


# Reference profiles


def test_many_benchmarks_are_summed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    runs = [
        replace(run, scores=tuple(replace(run.scores[0], task=f"task {i}") for i in range(20))) for run in board(M=3)
    ]
    found = arena(runs, Settings())
    shown = text.markdown(found)
    assert all(f"task {i} " in shown for i in range(20))
    assert "these 20 benchmarks" in shown
    assert "pairs**" not in shown
    assert "pairs**" in text.markdown(arena([replace(run, scores=run.scores[:8]) for run in runs], Settings()))


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


def test_small_tools() -> None:
    assert steps_of_k(4) == [1, 2, 3, 4]
    assert steps_of_k(120) == [*range(1, 11), 20, 50, 100, 120]
    rng = np.random.default_rng(0)
    fit = fit_beta(rng.beta(0.6, 1.4, 20000))
    assert fit == pytest.approx((0.6, 1.4), abs=0.05)
    assert fit_beta(np.ones(5)) is None


def test_the_public_function_reads_and_compares(tmp_path: Path) -> None:
    import harness_noise as hn

    lines = ["model,question,score"]
    for run in board(M=3, K=1):
        lines += [f"{run.model},q{i},{value:g}" for i, value in enumerate(values_of(run)[:, 0])]
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(lines) + "\n")
    found = hn.arena(path, baseline="model 0", adjust="bh")
    assert isinstance(found, hn.Arena)
    expected = arena(board(M=3, K=1), Settings(adjust="bh"), baseline="model 0")
    assert [pair.p_adjusted for pair in found.pairs] == pytest.approx([pair.p_adjusted for pair in expected.pairs])
    with pytest.raises(TypeError, match="colour"):
        hn.arena(path, colour="red")  # type: ignore[call-arg]


def test_scores_that_agree_where_answers_are_known_to_differ():
    """The code that one pair alone has, too; answers of which nothing is known stay `identical_repeats`."""
    rng = np.random.default_rng(5)
    constant = np.repeat((rng.random((40, 1)) < 0.6).astype(float), 3, axis=1)
    varied = (rng.random((40, 3)) < 0.5).astype(float)
    for differ, code in ((True, "identical_scores_only"), (False, "identical_repeats")):
        runs = [
            Run(
                model=name, name=name, harness="array", scores=(as_scores(x, answers_differ=differ, bounds=(0.0, 1.0)),)
            )
            for name, x in (("a", constant), ("b", varied))
        ]
        (pair,) = arena(runs, Settings()).pairs
        (alone,) = compare_runs([(runs[0], runs[1])], Settings()).differences
        assert {"identical_scores_only", "identical_repeats"} & set(pair.diagnostics) == {code}
        assert pair.diagnostics == alone.diagnostics
        assert pair.se_prediction is None

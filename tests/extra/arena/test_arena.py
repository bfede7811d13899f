"""The arena beside its pairs: models, benchmarks, questions, the set of the best, input that is odd."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest

from harness_noise import as_scores
from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_runs
from harness_noise.analysis.repeats import as_repeats
from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores, Run, Scores
from harness_noise.errors import InputError
from harness_noise.extra.arena import tables
from harness_noise.extra.arena.benchmark import fit_beta
from harness_noise.extra.arena.build import arena, distinct_names
from harness_noise.extra.arena.figures import heatmap
from harness_noise.extra.arena.ranks import best_p, steps_of_k
from harness_noise.extra.arena.report import sentences
from harness_noise.report import terminal, text
from harness_noise.results.forms import shown_fields
from harness_noise.results.schema import json_schema
from harness_noise.settings import Settings
from support.boards import N, board, values_of, with_values
from support.notes import noted


# Models
def test_a_model_is_its_estimate_with_win_rate_and_pass_at_k() -> None:
    runs = board()
    found = arena(runs, Settings())
    for model, estimate in zip(found.models, analyze_runs(runs, Settings()).estimates, strict=True):
        for name in shown_fields(estimate):
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
    means = [model.mean for model in up.models]
    for name, turned in (("wins_a", "wins_b"), ("wins_b", "wins_a"), ("ties", "ties")):
        wins, others = up.boards[0].pairs.columns[name], down.boards[0].pairs.columns[turned]
        assert wins.tolist() == others.tolist()
    first = [
        re.findall(r'data-m="(\d+)"', heatmap(one.boards[0]).body)[0] for one in (up, down)
    ]  # of models, worst first
    assert first == [str(means.index(end(means))) for end in (min, max)]
    assert "lower is better" in sentences(down.boards[0])[0]
    assert "lower" not in sentences(up.boards[0])[0]
    assert up.models[-1].among_best
    assert not down.models[-1].among_best
    assert down.models[0].among_best
    assert down.benchmarks[0].solved_by_none is None


def test_data_noise_that_is_not_seen_is_shown_by_its_limit() -> None:
    """Answers that no question makes easier: the estimate is below 0, which is not no noise."""
    rng = np.random.default_rng(1)
    scores = [as_scores((rng.random((60, 4)) < 0.5).astype(float)) for _ in range(2)]
    found = arena([Run(name, name, "array", scores=(one,)) for name, one in zip("ab", scores, strict=True)], Settings())
    row, pair = found.benchmarks[0], found.boards[0].pairs[0]
    assert row.se_data is not None
    assert row.se_data_upper is not None
    assert row.se_data.median == 0
    assert row.se_data_upper.median == pair.se_data_upper > 0
    shown = terminal.text(found, "never", details=True)
    assert re.search(r"\bdata +< \d+\.\d", shown)
    assert not re.search(r"\bdata +0\.0\b", shown)


@pytest.mark.slow
def test_the_best_set_holds_the_best_model_as_often_as_it_says() -> None:
    """All models equal, the worst case: each is the best, and leaves the set at most 5% of the time."""
    out = trials = 0
    for seed in range(150):
        found = arena(board(M=4, K=1, spread=0.0, seed=seed), Settings())
        out += not found.models[0].among_best
        trials += 1
    assert out / trials <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / trials)


def test_p_best_is_the_smallest_one_sided_p_times_the_rivals() -> None:
    runs = board(M=4)
    found = arena(runs, Settings())
    ours = best_p(found.boards[0].pairs)
    worst = []
    for run in runs[1:]:
        pair = compare_runs([(run, runs[0])], Settings()).comparisons[0]
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
    assert any("matched by text" in note for note in noted(found))
    first = next(iter(found.pairs))
    theirs = compare_runs([(runs[0], runs[1])], Settings()).comparisons[0]
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
    assert any("share no question" in note for note in noted(found))
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
    assert any("only third has it" in note for note in noted(found))


def test_what_is_left_out_is_said_once_for_a_task() -> None:
    a, b = board(M=2)
    more = tuple(replace(b.scores[0], metric=f"f{i}") for i in range(6))
    found = arena([a, replace(b, scores=(*b.scores, *more))], Settings())
    notes = [note for note in noted(found) if "nothing to compare" in note]
    assert notes == [f"task, f0, f1, f2, f3 and 2 more: only {b.model} has them: nothing to compare"]


def test_a_corpus_metric_is_left_to_compare_and_the_arena_says_so() -> None:
    runs = board(M=3)
    whole = CorpusScores("task", "bleu", "none", runs[0].scores[0].questions)
    found = arena([replace(run, corpus=(whole,)) for run in runs], Settings())
    assert [row.metric for row in found.benchmarks] == ["acc"]
    notes = [note for note in noted(found) if "bleu" in note]
    assert len(notes) == 1
    assert notes[0].startswith("task, bleu: not in the arena")


def test_a_run_that_was_given_twice_counts_once(tmp_path: Path) -> None:
    a, b = (replace(run, path=str(tmp_path / f"{i}.csv")) for i, run in enumerate(board(M=2)))
    again = replace(a, path=f"{tmp_path}/../{tmp_path.name}/0.csv")
    found = arena([a, b, again], Settings())
    assert len(found.models) == 2
    assert any("counts once" in note for note in noted(found))
    with pytest.raises(InputError, match="at least two"):
        arena([a, again], Settings())
    (joined,) = as_repeats([a, again])  # else K would double, and the noise would shrink, from nothing
    assert joined.scores == a.scores
    assert any("counts once" in note for note in noted(joined))


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
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    found = arena(board(names=["=1+1", "b", "c", "d", "e"]), Settings())
    written = tables.write_tables(found, tmp_path / "out", kind)
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
        tables.write_tables(found, tmp_path, "xml")  # type: ignore[arg-type]


def test_terminal_markdown_and_latex_show_every_model() -> None:
    found = arena(board(M=12), Settings())
    shown = terminal.text(found)
    assert "30 of 66" in " ".join(terminal.text(found, details=True).split())
    for form in (shown, text.markdown(found), text.latex(found)):
        assert all(f"model {m}" in form for m in range(12))
        assert "not significantly worse than the best" in form


# Reference profiles
def test_many_benchmarks_are_summed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    runs = [
        replace(run, scores=tuple(replace(run.scores[0], task=f"task {i}") for i in range(20))) for run in board(M=3)
    ]
    found = arena(runs, Settings())
    shown = text.markdown(found)
    assert all(f"task {i} " in shown for i in range(20))
    whole = text.markdown(found, details=True)
    assert "these 20 benchmarks" in whole
    assert "Pairs; " not in whole
    few = arena([replace(run, scores=run.scores[:8]) for run in runs], Settings())
    assert "Pairs; " in text.markdown(few, details=True)
    assert "Pairs; " not in text.markdown(few)


def test_small_tools() -> None:
    assert steps_of_k(4) == [1, 2, 3, 4]
    assert steps_of_k(120) == [*range(1, 11), 20, 50, 100, 120]
    rng = np.random.default_rng(0)
    fit = fit_beta(rng.beta(0.6, 1.4, 20000))
    assert fit == pytest.approx((0.6, 1.4), abs=0.05)
    assert fit_beta(np.ones(5)) is None
    # questions that are all alike, or all solved or not at all, have no Beta distribution, however sums are rounded
    assert fit_beta(np.full(7, 0.1)) is None
    assert fit_beta(np.repeat([0.0, 1.0], [50, 90])) is None


def test_the_public_function_reads_and_compares(tmp_path: Path) -> None:
    import harness_noise as hn

    lines = ["model,question,score"]
    for run in board(M=3, K=1):
        lines += [f"{run.model},q{i},{value:g}" for i, value in enumerate(values_of(run)[:, 0])]
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(lines) + "\n")
    found = hn.arena(path, against="model 0", adjust="bh")
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
        (alone,) = compare_runs([(runs[0], runs[1])], Settings()).comparisons
        assert {"identical_scores_only", "identical_repeats"} & set(pair.diagnostics) == {code}
        assert pair.diagnostics == alone.diagnostics
        assert pair.se_prediction is None

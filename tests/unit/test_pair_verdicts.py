"""Verdicts on pairs: win rates by question, position bias, strengths of many models, and the files of others."""

import json
import math
from itertools import combinations

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.extra.pairs import stats
from harness_noise.extra.pairs.report import of_pairs


def verdict(question, first, second, winner, **more):
    return {"question": question, "model_a": first, "model_b": second, "winner": winner} | more


def summarised(found):
    return of_pairs(found).lead[0]


def both(question, a, b, first, second, **more):
    """Two verdicts: with A first, and with B first."""
    return [verdict(question, a, b, first, **more), verdict(question, b, a, second, **more)]


def drawn(n, strengths, rng, *, position=0.0, ties=0.0, spread=0.5, orders=2):
    """Verdicts of all pairs of models on n questions, whose difficulty differs by model."""
    rows = []
    for q in range(n):
        of_question = np.asarray(strengths) + rng.normal(0, spread, len(strengths))
        for i, j in combinations(range(len(strengths)), 2):
            for a, b in ((i, j), (j, i))[:orders]:
                p = 1 / (1 + math.exp(of_question[b] - of_question[a] - position))
                winner = "tie" if rng.random() < ties else f"m{a}" if rng.random() < p else f"m{b}"
                rows.append(verdict(f"q{q}", f"m{a}", f"m{b}", winner))
    return rows


class TestTwoModels:
    def test_orders_are_averaged_first_and_repeats_within_them(self):
        rows = [*both(1, "a", "b", "a", "b"), verdict(1, "a", "b", "b"), *both(2, "a", "b", "a", "a")]
        (row,) = hn.pairs(rows).pairs
        assert row.win_rate == pytest.approx(((0.5 + 0) / 2 + 1) / 2)
        assert (row.n_questions, row.n_verdicts) == (2, 5)

    def test_the_row_is_the_kernels_of_a_paired_difference(self):
        rng = np.random.default_rng(1)
        rows = drawn(50, [0, 0.5], rng, ties=0.2)
        (row,) = hn.pairs(rows).pairs
        points = {"m0": 1.0, "m1": 0.0, "tie": 0.5}
        values = np.array([points[row["winner"]] for row in rows]).reshape(50, 2).mean(axis=1)
        of = hn.estimate_difference(values, 1 - values, range=(0, 1))
        assert row.win_rate == pytest.approx((1 + of.diff) / 2)
        assert row.se == pytest.approx(of.se / 2)
        wilson = hn.estimate(values, range=(0, 1))
        low, high = min((1 + of.ci_low) / 2, wilson.ci_low), max((1 + of.ci_high) / 2, wilson.ci_high)
        assert (row.ci_low, row.ci_high) == pytest.approx((low, high))
        assert row.p_value == pytest.approx(of.p_value)

    def test_a_win_rate_near_one_stays_within_the_range(self):
        (row,) = hn.pairs([x for i in range(20) for x in both(i, "a", "b", "a", "a" if i else "b")]).pairs
        assert row.win_rate == pytest.approx(0.975)
        assert row.ci_low < 0.95
        assert row.ci_high <= 1
        (row,) = hn.pairs([x for i in range(20) for x in both(i, "a", "b", "a", "a")]).pairs
        assert row.ci_low < row.win_rate == row.ci_high == 1
        assert row.verdict == "A better"
        assert row.diagnostics == ("zero_variance",)

    def test_questions_of_one_cluster_count_as_one(self):
        rows = [
            x
            for i in range(40)
            for x in both(i, "a", "b", "ab"[i // 4 % 3 == 0], "ab"[i // 4 % 3 == 0], cluster=i // 4)
        ]
        alone = [{key: value for key, value in row.items() if key != "cluster"} for row in rows]
        assert hn.pairs(rows).pairs[0].n_clusters == 10
        assert hn.pairs(rows).pairs[0].se > 1.8 * hn.pairs(alone).pairs[0].se

    def test_position_bias_and_turned_verdicts(self):
        rows = [*both(1, "a", "b", "a", "b"), *both(2, "a", "b", "a", "a"), *both(3, "a", "b", "a", "tie")]
        (row,) = hn.pairs(rows).pairs
        assert row.position_bias == pytest.approx(np.mean([0.5, 0, 0.25]))
        assert (row.turned, row.tie_once) == pytest.approx((1 / 3, 1 / 3))

    def test_one_order_where_others_have_both_is_left_out(self):
        rows = [x for i in range(10) for x in both(i, "a", "b", "a", "b")] + [
            verdict(i, "a", "b", "a") for i in range(10, 20)
        ]
        (row,) = hn.pairs(rows).pairs
        assert (row.n_left_out, row.n_questions, row.win_rate) == (10, 10, 0.5)
        assert "one_order_left_out" in row.diagnostics

    def test_one_order_throughout_has_no_position_bias(self):
        (row,) = hn.pairs([verdict(i, "a", "b", "ab"[i % 2]) for i in range(12)]).pairs
        assert row.diagnostics == ("one_order",)
        assert (row.position_bias, row.turned) == (None, None)

    def test_the_first_alone_names_both_models(self):
        rows = [{"question": i, "first": "ab"[i % 2], "winner": "a"} for i in range(6)]
        assert (
            hn.pairs(rows).pairs[0].win_rate
            == hn.pairs([verdict(i, "ab"[i % 2], "ba"[i % 2], "a") for i in range(6)]).pairs[0].win_rate
        )

    @pytest.mark.parametrize(
        ("word", "points"),
        [("A>B", 1), ("A>>B", 1), ("A=B", 0.5), ("B>A", 0), ("B >> A", 0), ("tie", 0.5), ("model_a", 1), ("x", 1)],
    )
    def test_words_of_a_judge(self, word, points):
        (row,) = hn.pairs([verdict(i, "x", "y", word) for i in range(3)]).pairs
        assert row.win_rate == points


class TestManyModels:
    def test_strengths_are_evalicas(self):
        evalica = pytest.importorskip("evalica", reason="evalica is not installed")
        rows = drawn(40, [0, 0.4, 0.9, 1.5], np.random.default_rng(2), ties=0.2)
        firsts, seconds = [row["model_a"] for row in rows], [row["model_b"] for row in rows]
        words = [
            evalica.Winner.Draw if row["winner"] == "tie"
            else evalica.Winner.X if row["winner"] == row["model_a"] else evalica.Winner.Y
            for row in rows
        ]  # fmt: skip
        scores = np.log(evalica.bradley_terry(firsts, seconds, words, tolerance=1e-12, limit=10_000).scores)
        expected = (scores - scores.mean()).to_dict()
        assert {row.model: row.strength for row in hn.pairs(rows).models} == pytest.approx(expected, abs=1e-6)

    def test_the_error_is_the_jackknife_by_cluster(self):
        rng = np.random.default_rng(3)
        values = rng.uniform(0.1, 0.9, (8, 3))
        points = stats.by_cluster(
            8, 3, np.repeat(np.arange(8), 3), np.tile([0, 0, 1], 8), np.tile([1, 2, 2], 8), values.ravel()
        )
        found = stats.with_errors(points)
        without = np.array([stats.strengths(points.sum(axis=0) - points[g]) for g in range(8)])
        assert found.se == pytest.approx(np.sqrt(7 / 8 * ((without - without.mean(axis=0)) ** 2).sum(axis=0)))

    def test_the_first_sentence_names_the_best_only_if_it_is_the_only_one(self):
        rng = np.random.default_rng(3)
        clear, alike = (hn.pairs(drawn(80, (top, 0.0, -0.2), rng)) for top in (3.0, 0.1))
        assert summarised(clear) == f"{clear.models[0].model} is the best of 3 models."
        assert summarised(alike).endswith(" may be the best.")

    def test_a_model_that_never_loses_has_no_strength(self):
        rows = drawn(20, [0, 0.3, 0.1], np.random.default_rng(4))
        rows += [x for i in range(20) for m in range(3) for x in both(f"q{i}", "best", f"m{m}", "best", "best")]
        result = hn.pairs(rows)
        last = result.models[-1]
        assert (last.model, last.strength, last.se, last.rank_low, last.beside) == ("best", None, None, None, "above")
        assert last.diagnostics == ("separated",)
        assert last.win_rate == 1
        assert all(row.strength is not None for row in result.models[:-1])

    def test_one_point_in_one_cluster_is_not_enough(self):
        rows = [x for i in range(20) for x in both(f"q{i}", "a", "b", "ab"[i % 2], "ab"[i % 2])]
        rows += [x for i in range(20) for x in both(f"q{i}", "c", "a", "ca"[i == 0], "ca"[i == 0])]
        by_name = {row.model: row for row in hn.pairs(rows).models}
        assert by_name["c"].strength is None
        assert by_name["a"].strength == pytest.approx(-by_name["b"].strength)

    def test_four_clusters_are_too_few(self):
        result = hn.pairs(drawn(4, [0, 0.1, 0.2], np.random.default_rng(5)))
        assert {row.diagnostics for row in result.models} == {("too_few_to_rank",)}
        assert {row.strength for row in result.models} == {None}

    def test_ranks_are_the_same_in_every_order_of_the_file(self):
        rows = drawn(60, [0, 1, 2.0], np.random.default_rng(6))
        ranks = {row.model: (row.rank_low, row.rank_high) for row in hn.pairs(rows).models}
        assert ranks == {"m2": (1, 1), "m1": (2, 2), "m0": (3, 3)}
        assert {row.model: (row.rank_low, row.rank_high) for row in hn.pairs(rows[::-1]).models} == ranks


class TestFilesOfOthers:
    def test_arena_hard_shows_the_baseline_first_then_the_model(self, tmp_path):
        games = [("A>B", "A>>B"), ("A=B", "B>A"), (None, "A>B")]
        rows = [
            {"question_id": i, "model": "new", "judge": "j", "games": [{"score": one}, {"score": two}]}
            for i, (one, two) in enumerate(games)
        ]
        path = tmp_path / "new.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        result = hn.pairs(path)
        (row,) = result.pairs
        assert (row.model_a, row.model_b) == ("baseline", "new")
        assert row.win_rate == pytest.approx((0.5 + 0.75) / 2)
        assert row.n_left_out == 1
        assert [note.code for note in result.notes] == ["missing"]

    def test_mt_bench_names_the_winner_of_both_orders(self):
        rows = [
            {"question_id": 81, "turn": turn, "model_1": "x", "model_2": "y", "g1_winner": one, "g2_winner": two}
            for turn, one, two in ((1, "model_1", "model_2"), (2, "model_1", "tie"))
        ]
        (row,) = hn.pairs(rows).pairs
        assert row.win_rate == pytest.approx((0.5 + 0.75) / 2)
        assert (row.n_questions, row.n_clusters) == (2, 1)
        assert row.position_bias == pytest.approx((0.5 + 0.25) / 2)

    def test_alpaca_eval_prefers_from_one_to_two(self):
        rows = [
            {"instruction": f"q{i}", "generator_1": "base", "generator_2": "new", "preference": preference}
            for i, preference in enumerate([1, 2, 1.5, 1.25, 0])
        ]
        (row,) = hn.pairs(rows).pairs
        assert row.win_rate == pytest.approx(np.mean([1, 0, 0.5, 0.75, 0.5]))
        assert "one_order" in row.diagnostics

    def test_promptfoos_choice_has_beaten_the_others(self, tmp_path):
        def output(test, name, passed):
            part = {"pass": passed, "assertion": {"type": "select-best"}}
            return {"testIdx": test, "provider": {"id": name}, "gradingResult": {"componentResults": [part]}}

        results = [output(t, name, name == ("a", "b", "a")[t]) for t in range(3) for name in "abc"]
        path = tmp_path / "results.json"
        path.write_text(json.dumps({"version": 3, "results": {"results": results}}, indent=1))
        found = {(row.model_a, row.model_b): row.win_rate for row in hn.pairs(path).pairs}
        assert found == {("a", "b"): pytest.approx(2 / 3), ("a", "c"): 1.0, ("b", "c"): 1.0}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"question": 1, "winner": "a"}], "no column is the model_a and model_b"),
        ([{"model_a": "a", "model_b": "b", "winner": "a"}], "no column is the question. .*'question': 'COL'"),
        ([verdict(1, "a", "a", "a")], "compared with itself"),
        ([verdict(1, "a", "b", "c")], "the verdict 'c' is neither a, b nor tie"),
        ([verdict(1, "a", "b", "")], "no verdict"),
        ([{"question": i, "first": x, "winner": x} for i, x in enumerate("abc")], "for two models"),
    ],
)
def test_verdicts_that_cannot_be_used_are_one_paragraph(rows, said):
    with pytest.raises(hn.InputError, match=said):
        hn.pairs(rows)


@pytest.mark.parametrize("form", ["table", "json", "markdown", "latex", "csv", "sentence"])
def test_every_format_shows_pairs(tmp_path, capsys, form):
    path = tmp_path / "v.json"
    path.write_text(json.dumps(drawn(12, [0, 0.5, 1], np.random.default_rng(7))))
    assert main(["pairs", str(path), "--format", form]) == 0
    assert "m1" in capsys.readouterr().out


@pytest.mark.parametrize(("p", "ties", "orders"), [(0.5, 0.7, 1), (0.9, 0.7, 1), (0.92, 0.0, 2), (0.97, 0.0, 2)])
def test_win_rates_cover_what_they_say(p, ties, orders):
    """20 questions: with most verdicts ties, and near 1 in both orders, intervals cover 95 %."""
    rng, trials = np.random.default_rng([8, orders]), 100
    true, covered = ties / 2 + (1 - ties) * p, 0
    for _ in range(trials):
        points = np.where(rng.random((20, 2)) < ties, 0.5, rng.random((20, 2)) < p)
        words = np.array(["b", "tie", "a"])[(2 * points).astype(int)]
        shown = [("a", "b"), ("b", "a")][:orders]
        rows = [verdict(i, *pair, words[i, side]) for i in range(20) for side, pair in enumerate(shown)]
        (row,) = hn.pairs(rows).pairs
        low, high = (row.ci_low, row.ci_high) if row.model_a == "a" else (1 - row.ci_high, 1 - row.ci_low)
        covered += low <= true <= high
    assert covered / trials > 0.95 - 2.5 * math.sqrt(0.95 * 0.05 / trials)


def test_differences_of_strengths_cover_what_they_say():
    """Four models of one strength with a position effect, 12 clusters: p below .05 in 5 % of cases."""
    rng, trials, G, M = np.random.default_rng(9), 400, 12, 4
    first, second = np.triu_indices(M, 1)
    below = []
    for _ in range(trials):
        shift = rng.normal(0, 0.7, (G, M))
        p = 1 / (1 + np.exp(shift[:, second] - shift[:, first]))
        values = rng.binomial(6, p) / 6
        codes = np.repeat(np.arange(G), len(first))
        points = stats.by_cluster(G, M, codes, np.tile(first, G), np.tile(second, G), values.ravel())
        below.append((stats.with_errors(points).p[first, second] < 0.05).mean())
    assert abs(np.mean(below) - 0.05) < 3.3 * np.std(below) / math.sqrt(trials)


def table_of(models: str, n: int, winners: dict[tuple[str, str], str]) -> list[dict[str, object]]:
    """Every pair in both orders on each of n questions, the same verdicts on all."""
    shown = [(a, b) for a in models for b in models if a != b]
    return [verdict(i, a, b, winners.get((a, b), "tie")) for i in range(n) for a, b in shown]


def test_ties_alone_have_an_interval_and_no_error_of_a_strength():
    result = hn.pairs(table_of("XYZ", 8, {}))
    alone = hn.estimate_difference(np.full(8, 0.5), np.full(8, 0.5))
    for row in result.pairs:
        assert (row.win_rate, row.p_value) == (0.5, 1.0)
        assert (row.ci_low, row.ci_high) == pytest.approx(((1 + alone.ci_low) / 2, (1 + alone.ci_high) / 2))
    for row in result.models:
        assert (row.strength, row.se, row.diagnostics) == (0.0, None, ("zero_variance",))


def test_the_same_verdicts_on_all_questions_separate_no_ranks():
    """No table without one cluster differs from the whole, which is no certainty."""
    result = hn.pairs(table_of("XYZ", 6, {("X", "Y"): "X", ("Y", "Z"): "Y", ("X", "Z"): "X"}))
    assert [row.model for row in result.models] == ["X", "Y", "Z"]
    assert {(row.se, row.rank_low, row.rank_high) for row in result.models} == {(None, 1, 3)}


def test_pairs_without_a_test_count_in_no_family() -> None:
    """Of one question nothing is tested: the other pairs are adjusted among themselves, as `compare` adjusts rows."""
    judged = [("a", "b", i, "a" if i % 4 else "b") for i in range(12)]
    judged += [("a", "c", i, "a" if i % 3 else "c") for i in range(12)] + [("b", "c", 0, "tie")]
    rows = [{"question": i, "model_a": a, "model_b": b, "winner": won} for a, b, i, won in judged]
    first, second, alone = hn.pairs(rows).pairs
    assert (alone.p_value, alone.p_adjusted) == (None, None)
    assert first.p_adjusted == pytest.approx(2 * first.p_value)
    assert second.p_adjusted == pytest.approx(max(second.p_value, first.p_adjusted))

"""The order of the questions, the looks, and what may be reported after them."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness_noise import as_scores, estimate_difference
from harness_noise.analysis.sample import align
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores
from harness_noise.errors import InputError
from harness_noise.extra.stopping.api import estimate_from_part
from harness_noise.extra.stopping.growing import observe
from harness_noise.extra.stopping.observed import Observed, observe_mean, observe_samples, repeats_enough
from harness_noise.extra.stopping.rules import Look, Order, StoppingRule
from harness_noise.settings import Settings


def part(values: np.ndarray, rows: np.ndarray, clusters: np.ndarray | None = None) -> Scores:
    """The scores of some of the questions, as a run has them that has come so far."""
    whole = as_scores(values, clusters)
    labels = None if whole.clusters is None else tuple(whole.clusters[i] for i in rows)
    keys = Questions(tuple(whole.questions.keys[i] for i in rows))
    return replace(whole, values=whole.values[rows], questions=keys, clusters=labels)


def plainly(a: Scores, b: Scores, **choices: Any) -> Observed:
    """A − B with nothing else of what is known of B."""
    both = align([a], [b], None)
    return observe_samples(both.a, both.b, Settings(**choices))


def run(rule: StoppingRule, a: np.ndarray, b: np.ndarray, clusters: np.ndarray | None = None) -> tuple[Look, Order]:
    order = rule.order(len(a), clusters)
    look = None
    for number in range(1, len(order.blocks) + 1):
        rows = order.asked(number)
        look = rule.look(order, look, plainly(part(a, rows, clusters), as_scores(b, clusters)))
        if look.stop:
            break
    assert look is not None
    return look, order


def answers(rng: np.random.Generator, n: int, gap: float) -> tuple[np.ndarray, np.ndarray]:
    p = rng.beta(2, 2, n)
    return (rng.random(n) < np.clip(p + gap, 0, 1)).astype(float), (rng.random(n) < p).astype(float)


def test_an_order_holds_every_question_once_in_whole_clusters() -> None:
    clusters = np.random.default_rng(0).integers(0, 120, 700)
    order = StoppingRule(seed=4, looks=5).order(700, clusters)
    assert sorted(np.concatenate(order.blocks).tolist()) == list(range(700))
    seen = [set(clusters[block].tolist()) for block in order.blocks]
    assert sum(map(len, seen)) == len(set(clusters.tolist())) == order.units[-1]
    assert len(order.blocks) == 5
    assert max(map(len, order.blocks)) - min(map(len, order.blocks)) <= 2 * np.bincount(clusters).max()
    again, other = (StoppingRule(seed=seed, looks=5).order(700, clusters) for seed in (4, 5))
    np.testing.assert_array_equal(order.asked(3), again.asked(3))
    assert order.asked(3).tolist() != other.asked(3).tolist()


def test_every_block_holds_its_share_of_every_task() -> None:
    tasks = ["large"] * 700 + ["middle"] * 200 + ["small"] * 100
    order = StoppingRule(looks="anytime").order(1000, tasks=tasks)
    for number in range(1, len(order.blocks) + 1):
        asked = order.asked(number)
        found = Counter(tasks[i] for i in asked)
        for task, size in (("large", 700), ("middle", 200), ("small", 100)):
            assert abs(found[task] - size * len(asked) / 1000) <= 2


def test_the_first_block_is_a_simple_random_part() -> None:
    """Every question, also of a task of its own, is as often in it as any other."""
    tasks = ["lone"] + ["other"] * 59
    counts = np.zeros(60)
    for seed in range(3000):
        counts[StoppingRule(looks=2, seed=seed).order(60, tasks=tasks).blocks[0]] += 1
    assert np.abs(counts / 3000 - 0.5).max() < 4 * 0.5 / math.sqrt(3000)


def test_few_clusters_have_fewer_looks_or_none() -> None:
    def looks(n: int) -> int:
        return len(StoppingRule().order(10 * n, np.repeat(np.arange(n), 10)).blocks)

    assert [looks(n) for n in (10, 14, 15, 24, 25, 500)] == [2, 2, 3, 4, 5, 20]
    with pytest.raises(InputError, match="9 clusters are too few to stop before the end"):
        looks(9)


@pytest.mark.parametrize("n", [2, 4])
def test_a_single_look_needs_questions_too(n: int) -> None:
    with pytest.raises(InputError, match=f"{n} questions are too few to stop before the end"):
        StoppingRule(looks=1).order(n)
    assert len(StoppingRule(looks=1).order(5).blocks) == 1


def test_a_giant_cluster_takes_the_looks_that_it_fills() -> None:
    clusters = np.concatenate([np.zeros(500, dtype=int), np.arange(1, 501)])
    for seed in range(20):
        order = StoppingRule(looks=10, seed=seed).order(1000, clusters)
        assert min(map(len, order.blocks)) >= 50
        assert order.ends[-1] == 1000


def test_questions_that_are_shuffled_keep_their_order() -> None:
    clusters = np.random.default_rng(1).integers(0, 100, 300)
    order = StoppingRule(seed=9).order(300, clusters, shuffled=True)
    assert np.concatenate(order.blocks).tolist() == list(range(300))
    assert order.units == tuple(len(set(clusters[:n].tolist())) for n in order.ends)
    assert order.seed is None


def test_a_large_difference_stops_early_with_an_interval_that_excludes_zero() -> None:
    a, b = answers(np.random.default_rng(1), 1000, 0.15)
    look, order = run(StoppingRule(seed=3, looks=5), a, b)
    found = look.sequential
    assert (found.decision, found.rule, found.looks, found.order_seed) == ("A better", "group-sequential", 5, 3)
    assert found.n_asked == order.ends[found.look - 1] < found.n_total == 1000
    assert found.ci_low is not None
    assert found.estimate is not None
    assert 0 < found.ci_low < found.estimate <= (found.estimate_unadjusted or 0) + 1e-12
    assert f"look {found.look} of 5, {found.n_asked:,} of 1,000 questions, A − B 23.0 points, boundary" in look.message
    assert found.to_dict()["decision"] == "A better"


def test_all_questions_without_a_decision_are_not_separable() -> None:
    a, b = answers(np.random.default_rng(2), 500, 0.0)
    look, order = run(StoppingRule(looks=5, futility=False), a, b)
    whole = estimate_difference(a, b)
    assert look.stop
    assert look.sequential.decision == "not separable"
    assert look.sequential.estimate_unadjusted == pytest.approx(whole.diff, abs=1e-15)
    assert whole.diff is not None
    assert whole.ci_low is not None
    assert look.sequential.ci_low is not None
    # the price of four looks before
    assert 1 < (whole.diff - look.sequential.ci_low) / (whole.diff - whole.ci_low) < 1.06
    with pytest.raises(InputError, match="all its questions have been asked"):
        StoppingRule().look(order, look, Observed(estimate=0.0, se=1.0, df=10, units=500))


def test_one_look_is_the_fixed_comparison() -> None:
    a, b = answers(np.random.default_rng(5), 300, 0.1)
    clusters = np.arange(300) // 6
    look, _ = run(StoppingRule(looks=1), a, b, clusters)
    whole = estimate_difference(a, b, clusters=clusters)
    found = look.sequential
    assert found.decision == whole.verdict
    np.testing.assert_allclose((found.estimate, found.ci_low, found.ci_high), (whole.diff, whole.ci_low, whole.ci_high))


def test_one_look_at_few_flips_is_the_fixed_comparison() -> None:
    a, b = np.zeros(500), np.zeros(500)
    a[:8], b[8:9] = 1, 1
    look, _ = run(StoppingRule(looks=1), a, b)
    whole = estimate_difference(a, b)
    assert "few_flips" in whole.diagnostics
    np.testing.assert_allclose((look.sequential.ci_low, look.sequential.ci_high), (whole.ci_low, whole.ci_high))


def test_a_metric_that_is_better_below_names_the_better_run() -> None:
    o = Observed(estimate=0.3, se=0.03, df=90.0, units=100, higher_is_better=False)
    order = StoppingRule().order(500)
    assert StoppingRule().look(order, None, o).sequential.decision == "B better"


def test_equivalence_stops_within_the_margin_only() -> None:
    rng = np.random.default_rng(3)
    a = (rng.random(4000) < 0.5).astype(float)
    b = np.where(rng.random(4000) < 0.05, 1 - a, a)
    look, _ = run(StoppingRule(margin=0.05), a, b)
    found = look.sequential
    assert found.decision == "equivalent within 0.05"
    assert found.n_asked < 4000
    assert found.estimate == found.estimate_unadjusted
    assert run(StoppingRule(margin=0.0, futility=False), a, b)[0].sequential.n_asked == 4000


def test_runs_that_agree_on_everything_are_equivalent_by_the_small_sample_rule() -> None:
    a = np.resize([0.0, 1.0], 400)
    look, _ = run(StoppingRule(margin=0.05), a, a)
    assert look.sequential.decision == "equivalent within 0.05"
    assert look.sequential.n_asked < 400
    assert run(StoppingRule(futility=False), a, a)[0].sequential.decision == "not separable"
    assert run(StoppingRule(), a, a)[0].sequential.decision == "cannot be decided"


def test_how_many_more_answers_it_would_take_is_a_plain_number() -> None:
    a, b = answers(np.random.default_rng(4), 1000, 0.0)
    message = run(StoppingRule(), a, b)[0].message
    assert re.search(r"The difference seen would take (\d\.\d|\d{2,3}) times as many answers$", message), message


def test_a_run_that_is_always_better_is_decided_by_the_sign_test() -> None:
    look, _ = run(StoppingRule(looks=5), np.ones(100), np.zeros(100))
    found = look.sequential
    assert (found.decision, found.n_asked, found.estimate_unadjusted) == ("A better", 20, 1.0)
    assert found.ci_high == 1.0
    assert found.ci_low is not None
    assert 0 < found.ci_low < 1


def test_what_is_not_decided_when_it_ends_says_so_with_a_repeated_interval() -> None:
    rule = StoppingRule(looks=5)
    look = rule.look(rule.order(1000), None, Observed(estimate=0.04, se=0.03, df=math.inf, units=200))
    found = look.sequential
    assert (look.stop, found.decision, found.look, found.n_asked) == (False, "not decided", 1, 200)
    assert found.ci_low == pytest.approx(0.04 - 3.2526684884 * 0.03, abs=1e-9)
    assert look.message == "look 1 of 5, 200 of 1,000 questions, A − B 0.040, boundary 0.098"


def test_a_look_without_a_standard_error_spends_nothing() -> None:
    rule = StoppingRule(looks=2)
    order = rule.order(100)
    first = rule.look(order, None, Observed(estimate=None, se=None, units=1))
    assert (first.stop, first.sequential.alpha_spent, first.sequential.ci_low) == (False, 0.0, None)
    assert "too few to tell" in first.message
    second = rule.look(order, first, Observed(estimate=0.196, se=0.1, df=math.inf, units=100))
    assert second.sequential.decision == "A better"  # 1.96 > 1.95996: no look has been spent


def test_anytime_looks_after_every_block() -> None:
    a, b = answers(np.random.default_rng(1), 1000, 0.15)
    look, order = run(StoppingRule(looks="anytime", seed=3), a, b)
    found = look.sequential
    assert len(order.blocks) == 50
    assert (found.rule, found.looks, found.decision) == ("confidence sequence", "anytime", "A better")
    assert found.alpha_spent == 0.05
    assert found.estimate is not None
    assert found.ci_low is not None
    assert 0 < found.ci_low < found.estimate < (found.estimate_unadjusted or 0)


def test_the_rule_se_stops_at_its_standard_error() -> None:
    rng = np.random.default_rng(8)
    a = (rng.random(2000) < 0.7).astype(float)
    rule = StoppingRule.parse("se=0.02", seed=1)
    order, look = rule.order(2000), None
    while look is None or not look.stop:
        number = 1 if look is None else look.sequential.look + 1
        look = rule.look(order, look, observe_mean([part(a, order.asked(number))], Settings()))
    found = look.sequential
    assert (found.rule, found.decision) == ("se", "precise enough")
    assert abs(found.n_asked - 0.21 / 0.02**2) < 80
    assert found.ci_low is not None
    assert found.ci_low < 0.7


def test_a_precise_difference_has_the_interval_of_one_look() -> None:
    rule = StoppingRule(se=0.02)
    found = rule.look(rule.order(500), None, Observed(estimate=0.3, se=0.01, df=math.inf, units=100)).sequential
    assert found.decision == "precise enough"
    assert (found.ci_low, found.ci_high) == pytest.approx((0.3 - 0.01959964, 0.3 + 0.01959964), rel=1e-7)


def test_a_standard_error_of_zero_is_not_precise() -> None:
    rule = StoppingRule(se=0.01)
    look = rule.look(rule.order(1000), None, observe_mean([as_scores(np.ones(40))], Settings()))
    assert (look.stop, look.sequential.decision) == (False, "not decided")


def test_rules_are_written_as_words() -> None:
    assert StoppingRule.parse("decided", margin=0.02, looks="anytime") == StoppingRule(margin=0.02, looks="anytime")
    assert StoppingRule.parse("se=0.01", looks="3", seed=2) == StoppingRule(se=0.01, looks=3, seed=2)
    for bad in ("soon", "se=", "se=x", "=1"):
        with pytest.raises(InputError, match="write decided, or se="):
            StoppingRule.parse(bad)
    for looks in ("0", "51", "many", "2.5"):
        with pytest.raises(InputError, match="must be a number from 1 to 50"):
            StoppingRule.parse("decided", looks=looks)
    for choices in ({"se": 0.0}, {"margin": -1.0}, {"level": 1.0}, {"seed": -1}, {"margin": math.nan}):
        with pytest.raises(InputError):
            StoppingRule(**choices)


def test_fixed_questions_and_unrelated_runs_are_refused() -> None:
    a = as_scores(np.resize([0.0, 1.0], 40))
    for choices in ({"questions_are": "fixed"}, {"unpaired": True}):
        with pytest.raises(InputError, match="takes the questions for a random sample"):
            plainly(a, a, **choices)


def test_repeats_stop_where_prediction_noise_has_no_part_worth_more() -> None:
    rng = np.random.default_rng(2)
    spread, tight = rng.beta(0.2, 0.2, 300), rng.beta(20, 20, 300)

    def found(p: np.ndarray, K: int) -> tuple[bool, float | None]:
        out = repeats_enough(as_scores((rng.random((300, K)) < p[:, None]).astype(float)), Settings())
        return out.enough, out.share

    assert found(spread, 1) == (False, None)
    assert found(spread, 2)[0] is False
    assert found(spread, 8)[0] is True
    enough, share = found(tight, 8)
    assert not enough
    assert share is not None
    assert share > 0.5


def test_answers_that_never_differ_are_enough_at_two() -> None:
    same = as_scores(np.repeat(np.resize([0.0, 1.0], 50)[:, None], 2, axis=1))
    out = repeats_enough(same, Settings())
    assert out.enough
    assert "never differ" in out.message


def test_breadth_asks_every_question_once_before_any_twice() -> None:
    clusters, K = np.arange(300) // 3, np.resize([1, 3, 4], 300)
    rule = StoppingRule(seed=2)
    order = rule.order(300, clusters, repeats=K)
    questions, rounds = (
        np.concatenate(parts) for parts in zip(*(order.pairs(k + 1) for k in range(len(order.blocks))), strict=True)
    )
    assert rounds.tolist() == sorted(rounds.tolist())
    np.testing.assert_array_equal(np.bincount(questions), K)
    assert len(set(zip(questions.tolist(), rounds.tolist(), strict=True))) == K.sum() == order.ends[-1]
    np.testing.assert_array_equal(order.answers(len(order.blocks)), K)
    # whole clusters, in each round: what a block begins in a round it ends
    for number in range(1, len(order.blocks)):
        k = order.answers(number)
        later = {(int(q) // 3, int(r)) for q, r in zip(*order.pairs(number + 1), strict=True)}
        assert not later & {(int(q) // 3, int(r)) for q, r in zip(*order.pairs(number), strict=True)}
        np.testing.assert_array_equal(np.sort(order.asked(number)), np.flatnonzero(k))
        assert len(order.asked(number)) == (k > 0).sum()
    assert 10 <= len(order.blocks) <= 20
    deep = StoppingRule(seed=2, asking="depth").order(300, clusters, repeats=K)
    first = deep.answers(1)
    assert set(first.tolist()) <= {0, 1, 3, 4}
    np.testing.assert_array_equal(first[first > 0], K[first > 0])
    np.testing.assert_array_equal(deep.asked(len(deep.blocks)), order.asked(len(order.blocks)))


def test_a_look_in_a_later_round_has_the_information_of_its_answers() -> None:
    rng = np.random.default_rng(6)
    p = rng.beta(2, 2, 400)
    a, b = ((rng.random((400, 5)) < p[:, None]).astype(float) for _ in range(2))
    rule = StoppingRule(futility=False, level=0.9999)
    order, look, found = rule.order(400, repeats=5), None, []
    for number in range(1, len(order.blocks) + 1):
        asked = np.where(np.arange(5) < order.answers(number)[:, None], a, np.nan)
        rows = np.flatnonzero(order.answers(number))
        look = rule.look(order, look, observe([part(asked, rows)], [as_scores(b)], Settings()))
        found.append((look.sequential.round, look.sequential.n_answers, look.sequential.information))
        if look.stop:
            break
    assert look is not None
    assert found[-1] == (5, 2000, 1.0)
    share = [t for _, _, t in found if t is not None]
    assert share == sorted(share)
    whole = estimate_difference(a, b)
    once = estimate_difference(a[:, :1], b)
    ends = next(t for r, n, t in found if n == 400)
    assert ends == pytest.approx((whole.se / once.se) ** 2, abs=0.05)
    assert look.sequential.estimate_unadjusted == pytest.approx(whole.diff, abs=1e-12)


def test_what_is_known_of_b_makes_a_part_say_more() -> None:
    rng = np.random.default_rng(7)
    latent = rng.standard_normal((500, 1)) * 1.5 + 0.7 * rng.standard_normal((500, 6))
    right = (latent > 0).astype(float)
    rows = rng.choice(500, 150, replace=False)
    mine, other = part(right[:, 0], rows), as_scores(right[:, 1])
    plain = plainly(mine, other)
    alone = observe([mine], [other], Settings())
    runs = [Run(model=f"r{j}", name=f"r{j}", harness="", scores=(as_scores(right[:, j]),)) for j in range(2, 6)]
    known = observe([mine], [other], Settings(), references=runs)
    assert plain.se is not None
    assert alone.se is not None
    assert known.se is not None
    assert known.se < alone.se < plain.se
    part_ = estimate_from_part(right[rows, 0], rows, right[:, 2:], against=right[:, 1])
    assert known.estimate == pytest.approx(part_.estimate, abs=1e-12)
    assert known.se == pytest.approx(part_.se_population, abs=1e-12)
    assert known.residual == pytest.approx(1 / part_.gain)
    everything = observe([part(right[:, 0], np.arange(500))], [other], Settings(), references=runs)
    assert everything.estimate == pytest.approx(float((right[:, 0] - right[:, 1]).mean()))
    assert everything.residual is None


@pytest.mark.simulation
def test_information_of_several_answers_to_a_part_is_not_overstated() -> None:
    """V(final)/V(now): the regression's gain on means of five answers is not that on single ones."""
    rng = np.random.default_rng(13)
    rule = StoppingRule(futility=False, level=0.9999, asking="depth", looks=4)
    shares, variances = [], []
    for _ in range(60):
        p = np.clip(rng.beta(2, 2, 400) + 0.1 * rng.standard_normal((2, 400)), 0, 1)
        a, b = ((rng.random((400, 5)) < row[:, None]).astype(float) for row in p)
        order, look = rule.order(400, repeats=5), None
        for number in (1, 2):
            rows = np.flatnonzero(order.answers(number))
            observed = observe([part(a, rows)], [as_scores(b)], Settings())
            look = rule.look(order, look, observed)
            whole = float((a.mean(axis=1) - b.mean(axis=1)).var(ddof=1)) / 400
            shares.append((number, look.sequential.information))
            variances.append((number, observed.se, whole))
    for number in (1, 2):
        now = np.mean([se**2 for at, se, _ in variances if at == number])
        final = np.mean([whole for at, _, whole in variances if at == number])
        assert np.mean([t for at, t in shares if at == number]) == pytest.approx(final / now, rel=0.04)


def test_questions_that_b_lacks_do_not_end_the_looks_early() -> None:
    """B answered half of the questions: half of A's run, in a random order, is no more than half of the information."""
    rng = np.random.default_rng(14)
    right = (rng.standard_normal((400, 1)) * 1.5 + 0.7 * rng.standard_normal((400, 3)) > 0).astype(float)
    b = np.where(np.arange(400) % 2 == 0, right[:, 1], np.nan)
    runs = [Run(model="r", name="r", harness="", scores=(as_scores(right[:, 2]),))]
    rule, look, found = StoppingRule(futility=False, level=0.9999, looks=4), None, []
    order = rule.order(400)
    for number in range(1, 5):
        observed = observe([part(right[:, 0], order.asked(number))], [as_scores(b)], Settings(), references=runs)
        look = rule.look(order, look, observed)
        found.append(look.sequential.information)
    half = observe([part(right[:, 0], order.asked(2))], [as_scores(b)], Settings(), references=runs)
    both = int(np.isfinite(b[order.asked(2)]).sum())
    assert half.residual is not None
    assert found[1] == pytest.approx(1 / (1 + (200 / both - 1) * half.residual), rel=0.05)
    assert 0.4 < found[1] < 0.75
    assert found[-1] == 1


def test_what_cannot_be_decided_ends_with_an_interval_and_what_it_would_take() -> None:
    a, b = answers(np.random.default_rng(12), 1000, 0.0)
    look, _ = run(StoppingRule(seed=1), a, b)
    found = look.sequential
    assert (look.stop, found.decision) == (True, "cannot be decided")
    assert found.n_asked < 1000
    assert found.futility is not None
    assert found.futility < 0.05
    assert found.ci_low is not None
    assert found.ci_high is not None
    assert found.ci_low < 0 < found.ci_high
    assert "the rest cannot decide it" in look.message
    on = run(StoppingRule(seed=1, effect=0.2), a, b)[0].sequential
    assert on.decision == "cannot be decided"
    later = run(StoppingRule(seed=1, effect=0.07), a, b)[0].sequential
    assert later.n_asked > on.n_asked


def test_few_clusters_that_can_save_nothing_are_told_before_the_first_question() -> None:
    rule = StoppingRule()
    order = rule.order(120, np.repeat(np.arange(12), 10))
    said = rule.cannot_save(order)
    assert said is not None
    assert "12 clusters" in said
    assert rule.cannot_save(rule.order(1200, np.repeat(np.arange(120), 10))) is None
    assert StoppingRule(looks=2).cannot_save(StoppingRule(looks=2).order(1000)) is None


@pytest.mark.parametrize(
    "wrong", [{"spending": "haybittle"}, {"order": "width"}, {"futility": "maybe"}, {"effect": -0.1}, {"looks": "many"}]
)
def test_a_rule_with_a_wrong_word_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        StoppingRule.parse("decided", **wrong)


def test_a_look_at_0_1_scores_is_in_points() -> None:
    rule = StoppingRule(looks=5, margin=0.02)
    observed = Observed(estimate=0.04, se=0.03, df=math.inf, units=200, zero_one=True)
    look = rule.look(rule.order(1000), None, observed)
    assert look.message == "look 1 of 5, 200 of 1,000 questions, A − B 4.0 points, boundary 9.8 points"
    near = Observed(estimate=0.0, se=0.001, df=math.inf, units=200, zero_one=True)
    assert rule.look(rule.order(1000), None, near).message.endswith(": equivalent within 2 points")
    assert rule.look(rule.order(1000), None, near).decision == "equivalent within 0.02"


def test_an_observed_difference_knows_its_scale() -> None:
    values = (np.random.default_rng(2).random((60, 1)) < 0.5).astype(float)
    for scale, zero_one in ((1.0, True), (7.0, False)):
        observed = observe_mean([as_scores(scale * values)], Settings())
        assert observed.zero_one is zero_one
        assert ("points" in observed.amount(0.03)) is zero_one

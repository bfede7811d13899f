"""Plans: the checks of statistics §6, inverses, where the noise comes from, and what is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import integrate, stats

from harness_noise.analysis import estimate
from harness_noise.comparison import estimate_difference
from harness_noise.errors import InputError
from harness_noise.estimators import theory
from harness_noise.estimators.planning import Variances, best_repeats, best_unequal_repeats
from harness_noise.planning import plan


class TestFormula:
    def test_miller(self):
        assert plan(omega2=1 / 9, sigma2=0, effect=0.03, power=0.8).n_questions == 969
        at = {K: plan(omega2=1 / 9, sigma2=1 / 6, n=198, repeats=K).mde for K in (1, 10)}
        assert at == pytest.approx({1: 0.1327, 10: 0.0757}, abs=5e-5)

    def test_uniform_difficulty(self):
        v = Variances(1 / 12, 1 / 6)
        assert [1 - v.at(K) / v.at(1) for K in (2, 4, 6)] == pytest.approx([1 / 3, 1 / 2, 5 / 9])

    def test_two_give_the_third(self):
        first = plan(omega2=0.1, sigma2=(0.1, 0.2), effect=0.05, power=0.9, repeats=3)
        assert plan(omega2=0.1, sigma2=(0.1, 0.2), n=first.n_questions, power=0.9, repeats=3).effect <= 0.05
        assert plan(omega2=0.1, sigma2=(0.1, 0.2), n=first.n_questions - 1, power=0.9, repeats=3).effect > 0.05
        back = plan(omega2=0.1, sigma2=(0.1, 0.2), n=first.n_questions, effect=0.05, repeats=3)
        assert back.power == pytest.approx(0.9, abs=0.002)
        assert back.mde == pytest.approx(back.effect * 2.801585 / 3.241515, rel=1e-3)

    def test_sigma2_is_for_each_model(self):
        one, two = plan(omega2=0.1, sigma2=0.2, effect=0.1), plan(omega2=0.1, sigma2=(0.2, 0.2), effect=0.1)
        assert one == two
        assert one.n_questions == math.ceil((1.959964 + 0.841621) ** 2 * 0.5 / 0.01)

    def test_design_effect_is_of_the_data_only(self):
        p = plan(omega2=0.1, sigma2=0.2, n=100, design_effect=3)
        assert p.mde == pytest.approx(2.801585 * math.sqrt((0.3 + 0.4) / 100), rel=1e-6)
        assert (p.omega2, p.design_effect) == (pytest.approx(0.3), 3)

    def test_table(self):
        p = plan(omega2=0.1, sigma2=0.2, effect=0.05, k_max=10)
        assert [row.repeats for row in p.table[:5]] == [1, 2, 4, 8, 10]
        assert p.n_questions in {row.n_questions for row in p.table}
        for row in p.table:
            assert row.mde == pytest.approx(2.801585 * math.sqrt((0.1 + 0.4 / row.repeats) / row.n_questions), rel=1e-6)
        assert list(p.to_frame().columns) == ["n_questions", "repeats", "mde"]
        json.dumps(p.to_dict(), allow_nan=False)

    @pytest.mark.slow
    def test_power_by_simulation(self):
        """The plan's n gives the plan's power, with our own test."""
        rng = np.random.default_rng(0)
        p = plan(omega2=0.04, sigma2=0.25, effect=0.06, power=0.8, repeats=4)
        n, hits = p.n_questions, 0
        for _ in range(1000):
            base = rng.normal(0, 0.2, (n, 1)) + 0.06
            d = base + rng.normal(0, 0.5, (n, 4)), rng.normal(0, 0.5, (n, 4))
            hits += estimate_difference(*d).p_value < 0.05
        assert hits / 1000 == pytest.approx(0.8, abs=0.04)


class TestRepeats:
    @pytest.mark.parametrize(("omega2", "s", "cq", "ca"), [(0.1, 0.2, 10, 1), (0.02, 0.25, 1, 1), (0.3, 0.1, 1, 5)])
    def test_best_is_the_closed_form_rounded(self, omega2, s, cq, ca):
        real = math.sqrt(2 * s / omega2 * cq / (2 * ca))
        best = best_repeats(Variances(omega2, s, s), cq, ca, 100)
        assert best in (max(1, math.floor(real)), math.ceil(real))
        alone = best_repeats(Variances(omega2, s), cq, ca, 100)
        real = math.sqrt(s / omega2 * cq / ca)
        assert alone in (max(1, math.floor(real)), math.ceil(real))

    def test_unequal(self):
        """No other (K_A, K_B) gives less variance for a budget."""
        omega2, s = 0.05, (0.3, 0.05)
        a, b = best_unequal_repeats(omega2, s, 8, 0.5)

        def loss(x, y):
            return (omega2 + s[0] / x + s[1] / y) * (8 + 0.5 * (x + y))

        for x in np.linspace(0.5, 2, 16):
            for y in np.linspace(0.5, 2, 16):
                assert loss(a, b) <= loss(a * x, b * y) + 1e-12
        assert best_unequal_repeats(0.0, s, 1, 1) == [math.inf, math.inf]

    def test_a_negative_estimate_is_no_bonus(self):
        """Twenty answers would make ω² + 2σ²/K negative; the floor of the data noise is 0, not below."""
        p = plan(omega2=-0.02, sigma2=0.2, n=100, repeats=20)
        assert p.mde == pytest.approx(2.801585 * math.sqrt(0.4 / 20 / 100), rel=1e-6)
        assert p.omega2 == -0.02

    def test_no_data_noise_means_as_many_as_allowed(self):
        p = plan(omega2=-0.001, sigma2=0.2, n=100, cost_question=1, cost_answer=1, k_max=7)
        assert (p.best_repeats, p.repeats) == (7, 7)

    def test_costs(self):
        p = plan(omega2=0.1, sigma2=0.2, effect=0.05, cost_question=10, cost_answer=1)
        assert p.repeats == p.best_repeats == 4
        assert p.cost == pytest.approx(p.n_questions * (10 + 2 * 4))
        fixed = plan(omega2=0.1, sigma2=0.2, effect=0.05, cost_question=10, cost_answer=1, repeats=1)
        assert (fixed.repeats, fixed.best_repeats) == (1, 4)
        assert fixed.cost > p.cost
        assert plan(omega2=0.1, sigma2=0.2, effect=0.05).cost is None


class TestFromRuns:
    @pytest.fixture
    def ab(self):
        rng = np.random.default_rng(1)
        u = rng.random((150, 1))
        return (rng.random((150, 6)) < u).astype(float), (rng.random((150, 6)) < 0.8 * u).astype(float)

    def test_from_a_difference(self, ab):
        d = estimate_difference(*ab)
        p = plan(runs=[d], n=150, repeats=6)
        assert p.mde == pytest.approx(d.mde, rel=1e-9)
        assert p.omega2 == pytest.approx(150 * d.var_data)
        assert p.sigma2_a + p.sigma2_b == pytest.approx(150 * d.var_prediction)

    def test_from_two_runs(self, ab):
        from harness_noise.analysis import as_scores
        from harness_noise.scores import Run

        runs = [Run(model=m, name=m, harness="test", scores=(as_scores(x),)) for m, x in zip("ab", ab, strict=True)]
        p = plan(runs=runs, effect=0.05)
        assert p.sigma2_a == pytest.approx(ab[0].var(axis=1, ddof=1).mean())
        assert p.sigma2_b == pytest.approx(ab[1].var(axis=1, ddof=1).mean())
        assert p.basis == "from"
        one = plan(runs=runs[:1], effect=0.05)
        assert (one.sigma2_b, one.omega2) == (None, pytest.approx(150 * estimate(ab[0]).var_data))

    def test_one_answer_promises_nothing_of_more(self, ab):
        d = estimate_difference(ab[0][:, 0], ab[1][:, 0])
        p = plan(runs=[d], n=150)
        assert p.mde == pytest.approx(d.mde)
        assert (p.sigma2_a, p.sigma2_b, p.best_repeats) == (None, None, None)
        assert {row.repeats for row in p.table} == {1}
        assert "single_repeat" in p.diagnostics
        with pytest.raises(InputError, match="not known here"):
            plan(runs=[d], n=150, repeats=4)

    def test_clustered_runs_hold_their_clustering(self, ab):
        d = estimate_difference(*ab, clusters=np.arange(150) // 5)
        assert d.var_data > 0
        assert plan(runs=[d], n=150, repeats=6).mde == pytest.approx(d.mde)
        with pytest.raises(InputError, match="holds the clustering"):
            plan(runs=[d], n=150, design_effect=2)


class TestTheory:
    @pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
    def test_beta_theory_by_integration(self, p):
        """E[u(1 − u)] of Beta(p, 1 − p), twice."""
        found = integrate.quad(lambda x: stats.beta(p, 1 - p).cdf(x) * (2 * x - 1), 0, 1)[0]
        # E[u(1−u)] = ∫ (1 − 2u) S(u) du = ∫ (2u − 1) F(u) du, by parts
        assert theory.beta_theory(p).at(1) == pytest.approx(2 * found, rel=1e-6) == pytest.approx(p * (1 - p), rel=1e-6)
        assert theory.beta_theory(p).omega2 == 0

    def test_unsolvable_questions_add_no_noise(self):
        s, p = 0.8, 0.5
        assert theory.beta_theory(p, s).at(1) == pytest.approx(s * (p / s) * (1 - p / s))

    def test_all_three_are_shown(self):
        found = plan(accuracy=0.7, effect=0.03)
        assert [row.theory for row in found.theory] == ["rule of thumb", "Beta theory", "independence bound"]
        assert [row.variance for row in found.theory] == pytest.approx([0.21, 0.21, 0.42])
        assert found.n_questions == found.theory[0].n_questions == math.ceil(7.848880 * 0.21 / 0.0009)
        assert found.theory[2].mde == pytest.approx(found.mde * math.sqrt(2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of --omega2"),
        ({"omega2": 0.1, "accuracy": 0.5, "n": 10}, "2 of them"),
        ({"omega2": 0.1}, "give --effect"),
        ({"omega2": 0.1, "effect": 0.1, "n": 9, "power": 0.8}, "give two"),
        ({"omega2": 0.1, "effect": -0.1}, "--effect -0.1"),
        ({"omega2": 0.1, "n": 1}, "two questions"),
        ({"omega2": 0.1, "n": 9, "power": 1.0}, "--power 1"),
        ({"omega2": 0.1, "n": 9, "repeats": 2}, "not known here"),
        ({"omega2": 0.1, "n": 9, "sigma2": (1, 2, 3)}, "one number or two"),
        ({"omega2": 0.1, "n": 9, "sigma2": -1}, "not negative"),
        ({"omega2": math.nan, "n": 9}, "finite"),
        ({"omega2": 0.1, "n": 9, "cost_answer": 1.0}, "go together"),
        ({"omega2": 0.1, "n": 9, "k_max": 0}, "at least 1"),
        ({"accuracy": 1.2, "n": 9}, "--accuracy 1.2"),
        ({"accuracy": 0.9, "solved": 0.8, "n": 9}, "above the accuracy"),
        ({"accuracy": 0.9, "sigma2": 0.8, "n": 9}, "belongs to --omega2"),
        ({"omega2": 0.1, "n": 9, "cluster": "x"}, "unknown option"),
        ({"omega2": 0.0, "sigma2": 0.0, "effect": 0.03}, "no noise to plan with"),
    ],
)
def test_refused(options, message):
    with pytest.raises(InputError) as caught:
        plan(**options)
    assert message in str(caught.value)

"""Noise by factor: the ANOVA of balanced designs exactly, no bias in others, aliasing said aloud."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import harness_noise as hn
from harness_noise import as_scores
from harness_noise.data.scores import Run
from harness_noise.errors import InputError
from harness_noise.extra.factors.sources import factor_noise, factors_of_runs
from harness_noise.extra.factors.stats import components
from support.notes import noted
from support.slow import rest_slow


def crossed(Q, L, K, seed=0, sd=(1.0, 0.5, 0.4, 0.7)):
    """Questions × prompts × answers; standard deviations of question, prompt, interaction, answer."""
    rng = np.random.default_rng(seed)
    q, p = rng.normal(0, sd[0], (Q, 1, 1)), rng.normal(0, sd[1], (1, L, 1))
    y = q + p + rng.normal(0, sd[2], (Q, L, 1)) + rng.normal(0, sd[3], (Q, L, K))
    questions, prompts, _ = np.meshgrid(np.arange(Q), np.arange(L), np.arange(K), indexing="ij")
    return y, questions.ravel(), prompts.ravel()


def test_balanced_two_way_is_anova():
    Q, L, K = 7, 4, 3
    y, questions, prompts = crossed(Q, L, K)
    m, mq, mp, mqp = y.mean(), y.mean((1, 2)), y.mean((0, 2)), y.mean(2)
    ms_q = L * K * ((mq - m) ** 2).sum() / (Q - 1)
    ms_p = Q * K * ((mp - m) ** 2).sum() / (L - 1)
    ms_qp = K * ((mqp - mq[:, None] - mp + m) ** 2).sum() / ((Q - 1) * (L - 1))
    ms_e = ((y - mqp[..., None]) ** 2).sum() / (Q * L * (K - 1))
    found = {item.name: item for item in components(y.ravel(), [("question", questions), ("prompt", prompts)])}
    expected = {
        "question": (ms_q - ms_qp) / (L * K),
        "prompt": (ms_p - ms_qp) / (Q * K),
        "question × prompt": (ms_qp - ms_e) / K,
        "residual": ms_e,
    }
    assert {name: item.variance for name, item in found.items()} == pytest.approx(expected, rel=1e-9)
    assert [item.df for item in found.values()] == [6, 3, 27, 56]
    assert found["prompt"].var_mean == pytest.approx(expected["prompt"] / L)
    assert found["residual"].var_mean == pytest.approx(ms_e / (Q * L * K))


def test_what_adds_most_so_far_is_a_factor_whose_noise_is_known():
    """Beside one of a single level, whose noise is not."""
    y, questions, prompts = crossed(7, 4, 3, sd=(0.01, 0.5, 0.01, 0.01))
    found = factor_noise(y.ravel(), questions, {"prompt": prompts, "model": np.zeros(y.size)})
    assert next(row for row in found.factors if row.factor == "model").var is None
    assert "So far the prompt adds most (SE " in found.advice


def test_one_answer_per_cell_folds_the_interaction_into_the_residual():
    y, questions, prompts = crossed(9, 4, 1)
    y = y[..., 0]
    res = y - y.mean(1, keepdims=True) - y.mean(0) + y.mean()
    found = components(y.ravel(), [("question", questions), ("prompt", prompts)])
    assert [item.name for item in found] == ["question", "prompt", "residual"]
    assert found[2].variance == pytest.approx((res**2).sum() / 24, rel=1e-9)
    assert found[2].df == 24


def test_limits_of_a_balanced_design_are_williams_and_tukeys():
    """From mean squares by hand, of the prompt, of the interaction and of the residual."""
    Q, L, K = 7, 4, 3
    y, questions, prompts = crossed(Q, L, K)
    m, mq, mp, mqp = y.mean(), y.mean((1, 2)), y.mean((0, 2)), y.mean(2)
    ms_p = Q * K * ((mp - m) ** 2).sum() / (L - 1)
    ms_qp = K * ((mqp - mq[:, None] - mp + m) ** 2).sum() / ((Q - 1) * (L - 1))
    ms_e = ((y - mqp[..., None]) ** 2).sum() / (Q * L * (K - 1))
    found = {item.name: item for item in components(y.ravel(), [("question", questions), ("prompt", prompts)])}

    def limits(ms, df, rest, df_rest, c):
        return [
            df * ms / stats.chi2.ppf(p, df) * (1 - rest * stats.f.ppf(p, df, df_rest) / ms) / c for p in (0.975, 0.025)
        ]

    item = found["residual"]
    assert [item.low, item.high] == pytest.approx([56 * ms_e / stats.chi2.ppf(p, 56) for p in (0.975, 0.025)])
    item = found["question × prompt"]
    assert [item.low, item.high] == pytest.approx(limits(ms_qp, 18, ms_e, 56, K), rel=1e-9)
    # the rest of the prompt's mean square, K σ²_qp + σ²_e, is MS_qp; its df are Satterthwaite's of the two parts
    v = found["question × prompt"].variance * K
    df = ms_qp**2 / (v**2 / found["question × prompt"].df + ms_e**2 / 56)
    item = found["prompt"]
    assert [item.low, item.high] == pytest.approx(limits(ms_p, 3, ms_qp, df, Q * K), rel=1e-9)


@pytest.mark.parametrize("L", [3, 5])
@pytest.mark.parametrize("replications", rest_slow([100, 800]))
def test_limits_cover(L, replications):
    """95% nominal, within four standard errors of the replications."""
    rng = np.random.default_rng(L)
    Q, K, truth = 30, 3, np.array([1.0, 0.25, 0.16, 0.49])
    q, p, _ = (x.ravel() for x in np.meshgrid(range(Q), range(L), range(K), indexing="ij"))
    hits = np.zeros(4)
    for _ in range(replications):
        y = rng.normal(0, 1, Q)[q] + rng.normal(0, 0.5, L)[p] + rng.normal(0, 0.4, (Q, L))[q, p]
        found = components(y + rng.normal(0, 0.7, len(q)), [("question", q), ("prompt", p)])
        hits += [item.low <= value <= item.high for item, value in zip(found, truth, strict=True)]
    assert (np.abs(hits / replications - 0.95) < 4 * (0.95 * 0.05 / replications) ** 0.5).all()


@pytest.mark.simulation
@pytest.mark.parametrize("kept", [1.0, 0.6])
def test_every_estimate_lies_in_its_interval(kept):
    """Also one below 0, of a factor that does nothing."""
    rng = np.random.default_rng(round(10 * kept))
    q, p, _ = (x.ravel() for x in np.meshgrid(range(12), range(5), range(3), indexing="ij"))
    negative = 0
    for _ in range(200):
        here = rng.random(len(q)) < kept
        y = rng.normal(0, 0.3, 12)[q] + rng.normal(0, 0.5, len(q))
        for item in components(y[here], [("question", q[here]), ("prompt", p[here])]):
            if item.low is not None:
                assert item.low <= item.variance <= item.high
                assert item.high >= 0
                negative += item.variance < 0
    assert negative > 100


@pytest.mark.simulation
@pytest.mark.parametrize("design", ["crossed, unbalanced", "nested", "two factors"])
@pytest.mark.parametrize("reps", rest_slow([200, 4000]))
def test_unbiased(design, reps):
    rng = np.random.default_rng(1)
    truth = {"question": 1.0, "prompt": 0.25, "seed": 0.16, "residual": 0.5}
    Q = 15
    q = np.repeat(np.arange(Q), 12)
    prompt = np.tile(np.repeat(np.arange(4), 3), Q)
    if design == "crossed, unbalanced":
        keep = rng.random(len(q)) < 0.7
        q, prompt = q[keep], prompt[keep]
        layout = [("question", q), ("prompt", prompt)]
    elif design == "nested":  # three seeds of each prompt, the same for all questions
        layout = [("question", q), ("prompt", prompt), ("seed", np.tile(np.arange(12), Q))]
    else:
        layout = [("question", q), ("prompt", prompt), ("seed", np.tile(np.arange(3), 4 * Q))]
    names = [name for name, _ in layout] + ["residual"]
    found = np.empty((reps, len(names)))
    for r in range(reps):
        y = rng.normal(0, truth["residual"] ** 0.5, len(q))
        for name, codes in layout:
            y = y + rng.normal(0, truth[name] ** 0.5, codes.max() + 1)[codes]
        of = {item.name: item.variance for item in components(y, layout)}
        found[r] = [of[name] for name in names]
    error = found.std(axis=0, ddof=1) / reps**0.5
    assert (np.abs(found.mean(axis=0) - [truth[name] for name in names]) < 3.5 * error).all()


class TestRows:
    def test_shares_and_advice(self):
        y, questions, prompts = crossed(60, 5, 4, sd=(0.1, 1.0, 0.1, 0.1))
        found = factor_noise(y.ravel(), questions, {"prompt": prompts})
        shares = {row.factor: row.share for row in found.factors}
        assert sum(shares.values()) == pytest.approx(1)
        assert shares["prompt"] > 0.8
        assert "new levels of prompt" in found.advice
        y, questions, prompts = crossed(10, 5, 40, sd=(1.0, 0.05, 0.0, 0.5))
        assert "new questions" in factor_noise(y.ravel(), questions, {"prompt": prompts}).advice
        json.dumps(found.to_dict(), allow_nan=False)
        assert list(found.to_frame()["factor"]) == ["question", "prompt", "question × prompt", "residual"]

    def test_gain_is_what_a_larger_design_has(self):
        """Twice the questions: the closed form of a balanced design."""
        y, questions, prompts = crossed(30, 5, 4)
        found = factor_noise(y.ravel(), questions, {"prompt": prompts}, more=600)
        v = {row.factor: row.var for row in found.factors}

        def variance(Q, L, K):
            return v["question"] / Q + v["prompt"] / L + v["question × prompt"] / (Q * L) + v["residual"] / (Q * L * K)

        gain = {row.factor: row.gain for row in found.factors}
        now = variance(30, 5, 4)
        assert gain["question"] == pytest.approx(1 - variance(60, 5, 4) / now)
        assert gain["prompt"] == pytest.approx(1 - variance(30, 10, 4) / now)
        assert gain["residual"] == pytest.approx(1 - variance(30, 5, 8) / now)

    @pytest.mark.parametrize("levels", [2, 3, 4])
    def test_few_levels_give_no_advice(self, levels):
        """Three prompts: their variance is known to a factor of a hundred, and the output says that."""
        y, questions, prompts = crossed(40, levels, 3)
        found = factor_noise(y.ravel(), questions, {"prompt": prompts})
        assert f"prompt has only {levels} levels, so no advice can be given yet. So far the " in found.advice
        assert {row.gain for row in found.factors} == {None}
        assert noted(found)[0].startswith(f"prompt has {levels} levels: its variance lies anywhere between")
        row = found.factors[1]
        assert row.var_high > 10 * row.var_low
        assert noted(found.to_dict()["notes"]) == noted(found)
        assert noted(factor_noise(*(lambda y, q, p: (y.ravel(), q, {"prompt": p}))(*crossed(40, 5, 3)))) == ()

    def test_one_level(self):
        y, questions, _ = crossed(20, 3, 1)
        found = factor_noise(y.ravel(), questions, {"judge": ["a"] * 60})
        row = {row.factor: row for row in found.factors}["judge"]
        assert (row.var, row.share, row.diagnostics) == (None, None, ("single_level",))

    def test_aliased(self):
        """A factor that changes with the question is the question by another name."""
        y, questions, prompts = crossed(20, 3, 2)
        found = factor_noise(y.ravel(), questions, {"author": questions, "prompt": prompts})
        rows = {row.factor: row for row in found.factors}
        assert rows["author"].diagnostics == rows["question"].diagnostics == ("aliased_factor",)
        assert rows["author"].var is None
        assert rows["prompt"].var is not None

    def test_negative_is_raw(self):
        y, questions, prompts = crossed(8, 4, 2, sd=(1, 0, 0, 1), seed=3)
        row = factor_noise(y.ravel(), questions, {"prompt": prompts}).factors[1]
        assert row.var < 0
        assert (row.share, row.se, row.diagnostics) == (0.0, 0.0, ("negative_component",))

    def test_missing_scores_are_left_out(self):
        y, questions, prompts = crossed(8, 4, 2)
        y = y.ravel()
        y[:5] = np.nan
        assert factor_noise(y, questions, {"prompt": prompts}).n_answers == 59

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            (([1.0, 2.0], [1, 2], {}), "at least one factor"),
            (([1.0, 2.0], [1], {"a": [1, 2]}), "of one length"),
            (([1.0, np.nan], [1, 2], {"a": [1, 2]}), "at least two finite"),
            (([1.0, np.inf], [1, 2], {"a": [1, 2]}), "at least two finite"),
        ],
    )
    def test_refused(self, args, message):
        with pytest.raises(ValueError, match=message):
            factor_noise(*args)


class TestRuns:
    def test_column_and_task(self):
        from dataclasses import replace

        y, questions, prompts = crossed(12, 3, 2)
        whole = factor_noise(y.ravel(), questions, {"prompt": prompts})
        labels = tuple(tuple(str(p) for p in range(3) for _ in range(2)) for _ in range(12))
        table = replace(as_scores(y.reshape(12, 6)), factors={"template": labels})
        run = Run(model="m", name="r", harness="test", scores=(table,))
        assert factors_of_runs([run], {"prompt": "template"}) == whole
        tasks = tuple(as_scores(y[:, p], task=f"task_{p}") for p in range(3))
        run = Run(model="m", name="r", harness="test", scores=tasks)
        found = factors_of_runs([run], {"prompt": "task"})
        assert [row.var for row in found.factors] == pytest.approx([row.var for row in whole.factors])

    def test_unknown_column(self):
        run = Run(model="m", name="r", harness="test", scores=(as_scores([[1.0, 0.0]]),))
        with pytest.raises(InputError, match=r"no such column\. There are task, model, run"):
            factors_of_runs([run], {"judge": "judge"})

    def test_two_metrics(self):
        scores = as_scores([[1.0]], metric="a"), as_scores([[1.0]], metric="b")
        with pytest.raises(InputError, match="a / none, b / none"):
            factors_of_runs([Run(model="m", name="r", harness="t", scores=scores)], {"task": "task"})


class TestTables:
    def write(self, path, nested=False):
        y, questions, prompts = crossed(12, 3, 2)
        seeds = np.tile([0, 1], 36)
        lines = ["question,template,seed,score"]
        rows = list(zip(questions, prompts, seeds, y.ravel(), strict=True))
        np.random.default_rng(0).shuffle(rows)
        lines += [f"q{int(q)},p{int(p)},{int(s)},{float(x)!r}" for q, p, s, x in rows]
        path.write_text("\n".join(lines) + "\n")
        return factor_noise(y.ravel(), questions, {"prompt": prompts})

    @pytest.mark.parametrize("repeat", [True, False])
    def test_columns_of_a_table(self, tmp_path, repeat):
        """`seed` is taken for the repeat, with one prompt's seeds apart from another's; or rows are repeats."""
        import harness_noise as hn

        whole = self.write(tmp_path / "t.csv")
        if not repeat:
            text = (tmp_path / "t.csv").read_text().replace("seed,", "note,")
            (tmp_path / "t.csv").write_text(text)
        (run,) = hn.read(tmp_path / "t.csv", factors=("template",))
        found = factors_of_runs([run], {"prompt": "template"})
        assert found.n_answers == 72
        assert [row.var for row in found.factors] == pytest.approx([row.var for row in whole.factors])

    def test_unknown_column_and_empty_cell(self, tmp_path):
        import harness_noise as hn

        self.write(tmp_path / "t.csv")
        with pytest.raises(InputError, match=r"line 2: factor 'judge' is not there or empty\. There are question, "):
            hn.read(tmp_path / "t.csv", factors=("judge",))
        (tmp_path / "u.csv").write_text("question,score,judge\na,1,x\na,0,\n")
        with pytest.raises(InputError, match="line 3: factor 'judge' is not there or empty"):
            hn.read(tmp_path / "u.csv", factors=("judge",))

    def test_labels_that_questions_do_not_share(self, tmp_path):
        """A seed of its own for every answer only says the order; the labels stay with their answers."""
        import harness_noise as hn

        y, questions, prompts = crossed(12, 3, 2)
        whole = factor_noise(y.ravel(), questions, {"prompt": prompts})
        lines = ["question,template,seed,score"]
        lines += [
            f"q{q},p{p},{seed},{float(x)!r}"
            for seed, (q, p, x) in enumerate(zip(questions, prompts, y.ravel(), strict=True))
        ]
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
        (run,) = hn.read(tmp_path / "t.csv", factors=("template",))
        found = factors_of_runs([run], {"prompt": "template"})
        assert [row.var for row in found.factors] == pytest.approx([row.var for row in whole.factors])

    def test_counts_have_no_labels(self, tmp_path):
        import harness_noise as hn

        (tmp_path / "t.csv").write_text("example_id,model,pass1,count,judge\na,m,0.5,4,x\n")
        with pytest.raises(InputError, match="`factors` needs rows"):
            hn.read(tmp_path / "t.csv", factors=("judge",))


def test_rounding_is_no_negative_component() -> None:
    question, prompt = np.repeat(np.arange(6), 3), np.tile(np.arange(3), 6)
    rows = factor_noise(0.1 * prompt + 0.3, question, {"prompt": prompt}).factors
    assert {row.factor: row.var for row in rows if row.factor != "prompt"} == {"question": 0.0, "residual": 0.0}
    assert not any(row.diagnostics for row in rows)


@pytest.mark.parametrize(
    ("metric", "bounds", "high", "points"),
    [("acc", None, 1.0, True), ("acc", (0.0, 1.0), 0.5, True), ("rating", (0.0, 5.0), 1.0, False)],
)
def test_the_units_are_those_of_the_same_scores_elsewhere(metric, bounds, high, points) -> None:
    """A rating from 0 to 5 is none of right and wrong answers where it happens to be 0 or 1, and half an acc is."""
    rng = np.random.default_rng(0)
    values = high * (rng.random((30, 4)) < 0.5)
    part = hn.Scores("t", metric, "none", hn.Questions(tuple(map(str, range(30)))), values, bounds=bounds)
    run = hn.Run("m", "m", "table", scores=(part,))
    shown = hn.render(hn.factors([run, replace(run, name="n")], {"run": "run"}), "markdown")
    assert ("in points" in shown) == points
    assert ("SE in points" in hn.render(hn.analyze(run), "markdown", details=True)) == points


def test_limits_are_numbers_where_the_other_components_cancel() -> None:
    """In an unbalanced design some count negatively, and their degrees of freedom fell to 0: NaN, which is no JSON."""
    y = [1.77, 2.04, 1.31, 0.87, -0.15, -3.53, -2.61, -3.93, -0.63, 0.09]
    prompts = [0, 0, 1, 1, 1, 0, 0, 1, 1, 1]
    seeds = [f"{prompt}/{seed}" for prompt, seed in zip(prompts, [0, 1, 0, 1, 0, 0, 1, 1, 0, 1], strict=True)]
    found = hn.factor_noise(y, list("aaaabcccdd"), {"prompt": [str(p) for p in prompts], "seed": seeds})
    row = next(row for row in found.factors if row.factor == "question × prompt")
    assert (row.var_low, row.var, row.var_high) == pytest.approx((0.3000745, 1.5075404, 1535.0654569), rel=1e-6)
    assert json.loads(found.to_json())["factors"]

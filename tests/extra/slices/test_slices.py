"""`--by`: means and differences slice by slice."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from scipy import stats

import harness_noise as hn
from harness_noise.cli.commands import cli
from harness_noise.data.clusters import Fields
from harness_noise.extra.slices.cutting import slices_of_pairs, slices_of_runs
from harness_noise.extra.slices.stats import against_rest, heterogeneity, joint, pooled_unit, shrink
from harness_noise.results.schema import json_schema
from support.commands import runner
from support.notes import noted

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


def run_of(values, fields, model="a", clusters=None, auto=(), task="t"):
    values = np.asarray(values, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    questions = hn.Questions(tuple(f"q{i}" for i in range(len(values))), fields=Fields(fields, auto, tuple(fields)))
    scores = hn.Scores(task, "acc", "none", questions, values, clusters=clusters, cluster_spec=clusters and "c")
    return hn.Run(model=model, name=model, harness="array", scores=(scores,))


@pytest.fixture
def kinds():
    rng = np.random.default_rng(0)
    kind = rng.choice(list("uvwxyz"), 300)
    return list(kind), rng.random((300, 3)) < 0.6, rng.random((300, 2)) < 0.5 + 0.3 * (kind == "w")[:, None]


def test_every_slice_is_what_its_questions_alone_give(kinds):
    kind, x, y = kinds
    clusters = tuple(f"c{i // 6}" for i in range(300))
    a, b = run_of(x, {"k": kind}, "a", clusters), run_of(y, {"k": kind}, "b", clusters)
    result = hn.compare(a, b, by=["k"])
    assert [row.slice for row in result.slices] == sorted(set(kind))
    for row in result.slices:
        at = np.array(kind) == row.slice
        alone = hn.estimate_difference(x[at].astype(float), y[at].astype(float), clusters=np.array(clusters)[at])
        for name in ("n_questions", "n_clusters", "diff", "se", "ci_low", "ci_high", "df", "p_value", "se_total"):
            assert getattr(row, name) == pytest.approx(getattr(alone, name)), name
    p = [row.p_value for row in result.slices]
    assert [row.p_adjusted for row in result.slices] == pytest.approx(stats.false_discovery_control(p))
    assert [row.p_adjusted for row in hn.compare(a, b, by=["k"], adjust="none").slices] == pytest.approx(p)
    assert result.comparisons == hn.compare(a, b).comparisons


def test_means_by_slice_and_the_rest(kinds):
    kind, _, y = kinds
    result = hn.analyze(run_of(y, {"k": kind}), by=["k"])
    told = {row.slice: row for row in result.slices}
    assert told["w"].p_adjusted < 0.001
    at = np.array(kind) == "w"
    assert told["w"].mean == pytest.approx(y[at].mean())
    assert result.heterogeneity[0].p_value < 0.001
    assert result.heterogeneity[0].n_slices == 6
    for row in result.slices:
        assert row.ci_low <= row.mean <= row.ci_high
        assert min(row.mean, y.mean()) - 0.05 <= row.shrunken <= max(row.mean, y.mean()) + 0.05
        assert 0 <= row.shrunken_ci_low <= row.shrunken <= row.shrunken_ci_high <= 1


def test_brown_and_forsythe_of_independent_questions():
    rng = np.random.default_rng(4)
    slices = np.repeat(np.arange(3), [10, 20, 30])
    d = rng.normal(size=60) * (1 + slices)
    n = np.bincount(slices)
    mean = np.array([d[slices == s].mean() for s in range(3)])
    var = np.array([d[slices == s].var(ddof=1) for s in range(3)])
    c = (1 - n / 60) * var
    found = heterogeneity(d, slices, np.arange(60))
    assert found.statistic == pytest.approx((n * (mean - d.mean()) ** 2).sum() / c.sum())
    assert found.df_residual == pytest.approx(c.sum() ** 2 / (c**2 / (n - 1)).sum())


def test_balanced_slices_have_the_f_of_an_analysis_of_variance():
    d = np.random.default_rng(4).normal(size=60)
    slices = np.tile(np.arange(3), 20)
    found = heterogeneity(d, slices, np.arange(60))
    assert found.statistic == pytest.approx(stats.f_oneway(*(d[slices == s] for s in range(3))).statistic)
    assert found.df <= 2 + 1e-9


def test_the_joint_covariance_is_that_of_club_sandwichs_dummies():
    from harness_noise.extra.regress.stats import regress

    rng = np.random.default_rng(6)
    slices, clusters = rng.integers(3, size=50), rng.integers(9, size=50)
    d = rng.normal(size=50)
    found = joint(d, slices, clusters)
    same = regress(d, np.eye(3)[slices], clusters)
    np.testing.assert_allclose(found.scores.T @ found.scores, same.covariance, rtol=1e-9)
    inside = (slices == 1).astype(float)
    two = regress(d, np.column_stack([np.ones(50), inside]), clusters)
    p = 2 * stats.t.sf(abs(two.coefficients[1]) / np.sqrt(two.variances[1]), two.df[1])
    own = joint(d, (slices == 1).astype(int), clusters)
    assert (own.scores[:, 1] ** 2).sum() >= pooled_unit(found) / (slices == 1).sum(), "else that is its variance"
    assert against_rest(d, slices, clusters)[1] == pytest.approx(p, rel=1e-6)


def test_a_few_right_answers_are_no_slice_without_errors():
    """Twenty questions that all go right are nothing where nine in ten do."""
    rng = np.random.default_rng(7)
    d = (rng.random(400) < 0.9).astype(float)
    slices = np.zeros(400, dtype=int)
    slices[np.flatnonzero(d)[:20]] = 1
    p = against_rest(d, slices, np.arange(400))[1]
    assert 0.05 < p < 0.5
    means = np.array([1.0, 0.9, 0.88, 0.85, 0.93])
    drawn = shrink(means, np.full(5, 0.09 / 20), 0.95)
    assert abs(drawn.values[0] - means.mean()) == pytest.approx(0.5 * abs(means[0] - means.mean()))  # (S − 3)/(S − 1)


def test_shrinkage_by_morris():
    means, V = np.array([0.1, 0.4, -0.3, 0.9, 0.2, -0.5]), np.full(6, 0.04)
    found = shrink(means, V, 0.95)
    tau2 = means.var(ddof=1) - 0.04  # with equal variances
    B = 3 / 5 * 0.04 / (0.04 + tau2)
    np.testing.assert_allclose(found.values, means - B * (means - means.mean()))
    assert found.spread == pytest.approx(np.sqrt(tau2))
    assert shrink(means[:3], V[:3], 0.95) is None


def test_the_spread_of_unequal_slices_solves_morriss_equation():
    y, V = np.array([0.1, 0.4, -0.3, 0.9, 0.2, -0.5]), np.array([0.01, 0.2, 0.04, 0.02, 0.1, 0.05])
    tau2 = shrink(y, V, 0.95).spread ** 2
    w = 1 / (V + tau2)
    mu = w @ y / w.sum()
    assert tau2 == pytest.approx(w @ (6 / 5 * (y - mu) ** 2 - V) / w.sum(), rel=1e-9)
    assert tau2 > 0.1
    assert shrink(np.full(6, 0.2), V, 0.95).spread == 0


def test_numbers_are_cut_at_their_quartiles_or_used_as_they_are():
    rng = np.random.default_rng(1)
    length, digits = rng.integers(10, 400, 200).astype(float), rng.integers(1, 5, 200).astype(float)
    run = run_of(rng.random(200), {"length": list(length), "digits": list(digits)})
    result = hn.analyze(run, by=["length", "digits"])
    parts = [row for row in result.slices if row.field == "length"]
    assert len(parts) == 4
    assert sum(row.n_questions for row in parts) == 200
    assert max(row.n_questions for row in parts) < 60
    assert parts[0].slice.startswith(f"{length.min():g} … ")
    assert [row.slice for row in result.slices if row.field == "digits"] == ["1", "2", "3", "4"]


def test_auto_tries_what_can_be_tried_once():
    n = 120
    rng = np.random.default_rng(2)
    fields = {
        "id": [float(i) for i in range(n)], "kind": list("abcd" * 30), "kind_id": [f"k{i % 4}" for i in range(n)],
        "length": list(rng.random(n)), "same": ["x"] * n,
    }  # fmt: skip
    run = run_of(rng.random(n), fields, auto=tuple(fields))
    result = slices_of_runs([run], ["auto"], hn.Settings())
    assert [row.field for row in result.heterogeneity] == ["kind", "length"]
    p = [row.p_value for row in result.slices]
    assert [row.p_adjusted for row in result.slices] == pytest.approx(stats.false_discovery_control(p))


def test_a_task_that_a_field_does_not_divide_is_left_out():
    values = np.random.default_rng(0).random((40, 1))
    one, other = (
        run_of(values, {"k": ["u", "v"] * 20}),
        run_of(values, {"k": ["u"] * 40, "m": ["x"] * 40}, task="other"),
    )
    both = hn.Run(model="a", name="a", harness="array", scores=(*one.scores, *other.scores))
    result = slices_of_runs([both], ["k"], hn.Settings())
    assert {row.task for row in result.slices} == {"t"}
    assert any("other / acc: `by` k divides nothing" in note for note in noted(result))


def test_questions_without_the_field_are_in_no_slice():
    values = ["u", None, "v", "u", "v", None, "u", "v"]
    result = hn.analyze(run_of(np.arange(8.0) % 3, {"k": values}), by=["k"])
    assert sum(row.n_questions for row in result.slices) == 6
    assert result.heterogeneity[0].n_left_out == 2
    assert any("2 of 8 questions have no k" in note for note in noted(result))


def test_pairs_use_the_fields_of_either_run(kinds):
    kind, x, y = kinds
    a, b = run_of(x, {"k": kind}, "a"), run_of(y, {}, "b")
    order = np.random.default_rng(3).permutation(300)
    b = run_of(y[order], {"k": list(np.array(kind)[order])}, "b")
    questions = hn.Questions(tuple(f"q{i}" for i in order))
    plain = hn.Run(
        model="b", name="b", harness="array", scores=(hn.Scores("t", "acc", "none", questions, b.scores[0].values),)
    )
    one = slices_of_pairs([(a, plain)], ["k"], hn.Settings())
    other = slices_of_pairs([(plain, a)], ["k"], hn.Settings())
    assert [row.diff for row in one.slices] == pytest.approx([-row.diff for row in other.slices])
    assert one.slices[0].diff == pytest.approx((x.mean(axis=1) - y.mean(axis=1))[np.array(kind) == "u"].mean())


def test_a_field_that_only_b_knows_slices_both(kinds):
    kind, x, y = kinds
    a, b = run_of(x, {"other": [None] * 300, "k": [None] * 300}, "a"), run_of(y, {"k": kind}, "b")
    assert [row.slice for row in hn.compare(a, b, by=["k"]).slices] == sorted(set(kind))


@pytest.mark.parametrize(
    ("by", "more", "words"),
    [
        (["z"], {}, "no question has it. The fields are k, names, same"),
        (["names"], {}, "too few in each"),
        (["same"], {}, "divides nothing"),
        (["k"], {"repeats_are": "runs"}, "`repeats_are='runs'`"),
        (["k"], {"questions_are": "fixed"}, "`questions_are='fixed'`"),
    ],
)
def test_what_cannot_be_sliced_is_refused(by, more, words):
    run = run_of(
        np.random.default_rng(0).random((40, 3)),
        {"k": ["u", "v"] * 20, "names": [f"n{i}" for i in range(40)], "same": ["x"] * 40},
    )
    with pytest.raises(hn.InputError, match=words):
        slices_of_runs([run], by, hn.Settings(**more))


def test_slices_of_one_question_or_cluster_are_said():
    values = ["u"] + ["v"] * 10 + ["w"] * 10
    result = hn.analyze(run_of(np.arange(21.0) % 4, {"k": values}), by=["k"])
    lone = result.slices[0]
    assert lone.n_questions == 1
    assert lone.se is lone.p_value is lone.p_adjusted is None
    assert "too_few_questions" in lone.diagnostics
    assert result.heterogeneity[0].p_value is not None
    flat = hn.analyze(run_of(np.ones(20), {"k": ["u", "v"] * 10}), by=["k"])
    assert flat.heterogeneity[0].p_value is None
    assert all(row.p_value is None for row in flat.slices)


def invoke(*arguments):
    found = runner().invoke(cli, arguments)
    assert found.exit_code == 0, (found.output, found.exception)
    return found.stdout


def test_commands(tmp_path):
    rng = np.random.default_rng(3)
    rows = [
        {"question": f"q{i}", "model": model, "score": int(rng.random() < 0.8 - 0.5 * (i % 5 == 2 and model == "one")),
         "kind": "uvwxy"[i % 5], "words": 10 + (i * 37) % 91}
        for i in range(200) for model in ("one", "two")
    ]  # fmt: skip
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    for command in (["analyze", str(path)], ["compare", str(path)]):
        out = json.loads(invoke(*command, "--by", "auto", "--format", "json"))
        jsonschema.validate(out, json_schema())
        assert {row["field"] for row in out["heterogeneity"]} == {"kind", "words"}
    text = " ".join(invoke("compare", str(path), "--by", "kind").split())
    assert "the difference varies over kind" in text
    assert "kind = w" in text
    for form in ("markdown", "latex", "csv"):
        assert invoke("compare", str(path), "--by", "kind", "--format", form)
    page = tmp_path / "page.html"
    invoke("compare", str(path), "--by", "kind", "--html", str(page))
    assert "By slice" in page.read_text(encoding="utf-8")
    counts = runner().invoke(cli, ["compare", "3/10", "4/10", "--by", "kind"])
    assert "a number is given in place of a run" in str(counts.exception)


def test_a_real_log_of_inspect_by_subject():
    path = DATA / "inspect" / "mmlu_gpt-4_285.eval"
    if not path.exists():
        pytest.skip("the shared data are not here")
    pytest.importorskip("inspect_ai")
    result = hn.analyze(path, by=["subject"])
    assert len(result.slices) == 57
    assert sum(row.n_questions for row in result.slices) == 285
    assert result.heterogeneity[0].field == "subject"
    scores = hn.read(path, cluster="subject")[0].scores[0]
    subject = np.array(scores.clusters)
    by_hand = heterogeneity(scores.values.mean(axis=1), np.unique(subject, return_inverse=True)[1], np.arange(285))
    assert result.heterogeneity[0].p_value == pytest.approx(by_hand.p_value)


def test_real_runs_of_lm_eval_by_a_template():
    if not (DATA / "lm_eval" / "asdiv").exists():
        pytest.skip("the shared data are not here")
    result = hn.compare(
        DATA / "lm_eval" / "asdiv",
        DATA / "lm_eval" / "asdiv_cot",
        by=["{{ 'long' if body | length > 100 else 'short' }}"],
    )
    assert {row.slice for row in result.slices} == {"long", "short"}
    assert all("identical_scores" in row.diagnostics for row in result.slices)
    assert all(row.p_value == 1 for row in result.slices)


def by_value(values: list[object]) -> dict[str, int]:
    scores = np.random.default_rng(0).random(len(values))
    return {row.slice: row.n_questions for row in hn.analyze(run_of(scores, {"k": values}), by=["k"]).slices}


def test_numbers_that_agree_in_six_digits_are_slices_of_their_own():
    days = [20240101.0, 20240102.0, 20240103.0]
    assert by_value(days * 10) == dict.fromkeys(["20240101", "20240102", "20240103"], 10)
    assert by_value([1.0000001, 1.0000002, 1e-7] * 10) == dict.fromkeys(["1e-07", "1.0000001", "1.0000002"], 10)
    assert by_value([0.1 + 0.2, 0.3, 0.5, 0.5] * 10) == {"0.3": 20, "0.5": 20}  # the rounding of a sum


def test_quarters_of_a_large_number_do_not_overlap():
    found = by_value([1_700_000_000.0 + i for i in range(40)])
    assert [*found.values()] == [10, 10, 10, 10]
    assert next(iter(found)) == "1700000000 … 1700000009"


def test_versions_that_are_one_number_are_not_one_slice():
    assert by_value(["1.1", "1.10", "1.2"] * 10) == dict.fromkeys(["1.1", "1.10", "1.2"], 10)
    assert by_value(["3", 3.0, "4", 4.0] * 10) == {"3": 20, "4": 20}


def two_runs_of_topics(unequal):
    """Two runs of four topics, one of which has a difference: far above that of the others, or little above it."""
    rng = np.random.default_rng(0)
    topics = np.repeat(["art", "geo", "law", "zoo"], 12)
    noise = rng.normal(0, 1.6, 48)
    noise -= np.array([noise[topics == topic].mean() for topic in topics])
    shift = np.where(topics == "law", 6.0 if unequal else 1.5, 0.4)
    b = rng.normal(5, 1, 48)
    fields = {"topic": topics.tolist()}
    return run_of(b + noise + shift, fields, "a"), run_of(b, fields, "b")


@pytest.mark.parametrize(("unequal", "said"), [(False, True), (True, False)])
def test_one_slice_and_all_slices_may_differ_in_verdict(unequal, said):
    found = hn.compare(*two_runs_of_topics(unequal), by=["topic"])
    (test,) = found.heterogeneity
    assert [row.slice for row in found.slices if row.p_adjusted < 0.05] == ["law"]
    assert (test.p_adjusted > 0.05) is said
    words = "Both can be true: this slice alone differs from 0. That the slices differ from each other is not shown"
    assert (words in " ".join(str(found).split())) is said

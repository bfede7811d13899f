"""Fixed questions: V from the repeats alone, its degrees of freedom, real ratios, type I error, and what is refused."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.comparison import compare_runs
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.results.rows import Comparison
from harness_noise.settings import Settings
from support.slow import rest_slow


def fixed(*arrays, **choices):
    function = hn.estimate if len(arrays) == 1 else hn.estimate_difference
    return function(*arrays, questions_are="fixed", **choices)


def answers(seed, n=40, K=4):
    rng = np.random.default_rng(seed)
    return (rng.random((n, K)) < rng.random((n, 1))).astype(float)


def test_variance_and_degrees_of_freedom_in_plain_sums():
    a, b = answers(1, K=4), answers(2, K=7)
    terms = [values.var(axis=1, ddof=1) / values.shape[1] / 40**2 for values in (a, b)]
    V = sum(term.sum() for term in terms)
    df = V**2 / sum((term**2).sum() / (values.shape[1] - 1) for term, values in zip(terms, (a, b), strict=True))
    d = fixed(a, b)
    assert (d.se**2, d.df) == pytest.approx((V, df), rel=1e-12)
    assert d.diff == pytest.approx(a.mean() - b.mean(), abs=1e-12)
    assert d.se_prediction**2 == pytest.approx(sum(x.var(axis=1, ddof=1).sum() for x in (a, b)) / 40**2, rel=1e-12)
    assert d.se_total == d.se_prediction
    assert d.estimand == "these_questions"
    # what belongs to a sample of questions is not identified
    assert (d.se_data, d.var_data, d.design_effect, d.p_sign) == (None, None, None, None)
    e = fixed(a)
    assert e.se**2 == pytest.approx(terms[0].sum(), rel=1e-12)
    assert (e.se_naive, e.n_effective, e.icc, e.se_data, e.estimand) == (None, None, None, None, "these_questions")
    assert 0 <= e.ci_low < e.mean < e.ci_high <= 1


def test_a_group_weighs_its_tasks():
    run, other = (
        Run(name, name, "test", groups=(Group("g", "acc", "none", ("s", "t"), "equal"),), scores=tuple(
            Scores(task, "acc", "none", Questions(tuple(f"{task}{i}" for i in range(n))), answers(seed + n, n))
            for task, n in (("s", 30), ("t", 12))
        ))
        for name, seed in (("a", 1), ("b", 100))
    )  # fmt: skip
    rows = {r.task: r for r in compare_runs([(run, other)], Settings(questions_are="fixed")).comparisons}
    assert rows["g"].se ** 2 == pytest.approx((rows["s"].se ** 2 + rows["t"].se ** 2) / 4, rel=1e-12)
    pairs = {r.task: r for r in hn.arena([run, other], questions_are="fixed").pairs}
    plain = {r.task: r for r in hn.arena([run, other]).pairs}
    for task in ("s", "t", "g"):
        for field in (
            "diff",
            "se",
            "df",
            "ci_low",
            "p_value",
            "se_total",
            "var_data",
            "diagnostics",
            "estimand",
            "verdict",
        ):
            one, other = getattr(pairs[task], field), getattr(rows[task], field)
            assert one == (pytest.approx(other, rel=1e-9) if isinstance(other, float) else other), field
        assert plain[task].estimand == "questions_population"


def test_clusters_change_nothing_and_are_not_named():
    a, b = answers(3), answers(4)
    clustered, plain = fixed(a, b, clusters=np.arange(40) // 5), fixed(a, b)
    assert clustered == plain
    assert (clustered.cluster, clustered.n_clusters) == (None, 40)


def test_a_question_with_one_answer_borrows_a_variance():
    """Σ c_i s²_i and its df, where the borrowed share goes to the questions that lend it; in compare and arena."""
    a, b = answers(5), answers(6)
    a[:7, 1:] = np.nan
    s2 = a[7:].var(axis=1, ddof=1)
    share = (1 / 4 + 7 / 33) / 40**2
    other = b.var(axis=1, ddof=1) / 4 / 40**2
    V = (share * s2).sum() + other.sum()
    df = V**2 / (((share * s2) ** 2).sum() / 3 + (other**2).sum() / 3)
    d = fixed(a, b)
    assert (d.se**2, d.df) == pytest.approx((V, df), rel=1e-12)
    assert "partly_single_repeat" in d.diagnostics
    keys = Questions(tuple(map(str, range(40))))
    runs = [Run(m, m, "test", scores=(Scores("t", "acc", "none", keys, x),)) for m, x in (("a", a), ("b", b))]
    (pair,) = hn.arena(runs, questions_are="fixed").pairs
    assert (pair.se, pair.df, pair.p_value) == pytest.approx((d.se, d.df, d.p_value), rel=1e-10)


@pytest.mark.simulation
def test_variance_ratios_of_real_runs(shared_data):
    """Against the population's: GPQA (K = 5) 4.6, AIME (K = 4) 3.0 at the median over all pairs."""
    gpqa = hn.read(shared_data / "tables" / "gpqa_diamond_scores.csv")
    plain, only = (hn.compare(*gpqa, questions_are=which).comparisons[0] for which in ("population", "fixed"))
    assert (plain.se / only.se) ** 2 == pytest.approx(4.6, abs=0.05)
    with (shared_data / "tables" / "matharena_aime_II.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    models = [np.array([float(row[name]) for row in rows]).reshape(15, 4) for name in rows[0] if name != "Question"]
    ratios = []
    for i, x in enumerate(models):
        for y in models[i + 1 :]:
            d = fixed(x, y)
            if d.se:
                ratios.append((hn.estimate_difference(x, y).se / d.se) ** 2)
    assert np.median(ratios) == pytest.approx(3.0, abs=0.1)


@pytest.mark.simulation
@pytest.mark.parametrize("R", rest_slow([200, 1200]))
@pytest.mark.parametrize(("n", "limit"), [(15, 0.07), (300, 0.055)])
def test_type_one_error(n, limit, R):
    """Two models with the same chance on each of these questions; the t test over questions rejects far less."""
    rng = np.random.default_rng(n)
    p = rng.beta(0.6, 0.6, (n, 1))
    rejected = sum(fixed(rng.random((n, 4)) < p, rng.random((n, 4)) < p).p_value < 0.05 for _ in range(R))
    assert abs(rejected / R - 0.05) <= limit - 0.05 + 3 * (0.05 * 0.95 / R) ** 0.5


def test_one_answer_has_no_answer():
    with pytest.raises(hn.InputError, match="K > 1 repeats, join several runs with `as_repeats`"):
        fixed(answers(1)[:, :1])
    with pytest.raises(hn.InputError, match="one answer per question cannot say"):
        fixed(answers(1), answers(2)[:, :1])


def test_identical_answers_say_nothing():
    same = np.repeat(answers(1)[:, :1], 3, axis=1)
    for row in (fixed(same), fixed(same, answers(2))):
        assert (row.se, row.ci_low, row.df) == (None, None, None)
        assert "identical_repeats" in row.diagnostics


@pytest.mark.parametrize(
    "choices",
    [{"test": name} for name in ("sign", "permutation", "bootstrap", "wild")]
    + [{"interval": name} for name in ("bootstrap", "korn-graubard", "clopper-pearson")]
    + [{"se": "cr3"}, {"repeats_are": "runs"}, {"unpaired": True}],
)
def test_what_takes_the_questions_for_a_sample_is_refused(choices):
    with pytest.raises(hn.InputError, match="questions"):
        Settings(questions_are="fixed", **choices)


def test_every_renderer_and_the_sentence_name_the_estimand():
    from harness_noise.report import html, terminal, text
    from harness_noise.report.sentences import sentence

    a, b = answers(1), answers(2)
    keys = Questions(tuple(map(str, range(40))))
    runs = [Run(m, m, "test", scores=(Scores("t", "acc", "none", keys, x),)) for m, x in (("a", a), ("b", b))]
    for result in (
        hn.analyze(runs[0], questions_are="fixed"), hn.compare(*runs, questions_are="fixed"),
        hn.arena(runs, questions_are="fixed"),
    ):  # fmt: skip
        for shown in (terminal.text(result), text.markdown(result), text.latex(result), html.fragment(result)):
            assert "stimand: these questions" in " ".join(shown.split())
        assert "these_questions" in text.json(result)
        assert "these_questions" in text.csv(result, details=True)
    difference = fixed(a, b)
    assert "estimand: these questions" in sentence(difference)
    assert "estimand" not in sentence(hn.estimate_difference(a, b))
    assert "estimand: these questions" in html.page(Comparison({}, (difference,)))

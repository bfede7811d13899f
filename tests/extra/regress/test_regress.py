"""`regress`: what goes with a score, question by question."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli.commands import cli
from harness_noise.data.clusters import FieldReader, Fields
from harness_noise.results.schema import json_schema
from support.commands import runner
from support.notes import noted
from support.simulations import simulation
from support.slow import rest_slow

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


def run_of(values, fields, model="a", clusters=None, task="t"):
    values = np.asarray(values, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    keys = tuple(f"q{i}" for i in range(len(values)))
    questions = hn.Questions(keys, fields=Fields(fields, names=tuple(fields)))
    scores = hn.Scores(task, "acc", "none", questions, values, clusters=clusters, cluster_spec=clusters and "c")
    return hn.Run(model=model, name=model, harness="array", scores=(scores,))


def one(field, result, value=None):
    return next(item for item in result.coefficients if item.field == field and item.value == value)


def test_a_slope_and_levels_are_found():
    rng = np.random.default_rng(5)
    number, level = rng.integers(1, 7, 400).astype(float), rng.choice(["easy", "hard", "new"], 400, p=[0.5, 0.3, 0.2])
    p = 0.9 - 0.05 * number - 0.2 * (level == "hard")
    fields = {"digits": list(number), "kind": list(level)}
    a = run_of(rng.random((400, 5)) < p[:, None], fields)
    b = run_of(rng.random((400, 5)) < 0.6, fields, "b")
    result = hn.regress(a, on=["digits", "kind"])
    assert one("digits", result).coefficient == pytest.approx(-0.05, abs=3 * one("digits", result).se)
    hard = one("kind", result, "hard")
    assert (hard.reference, hard.n_value) == ("easy", int((level == "hard").sum()))
    assert hard.coefficient == pytest.approx(-0.2, abs=3 * hard.se)
    both = hn.regress(a, b, on=["digits", "kind"])
    assert both.fits[0].model_b == "b"
    assert one("digits", both).coefficient == pytest.approx(-0.05, abs=3 * one("digits", both).se)
    slopes = [one("digits", hn.regress(run, on=["digits", "kind"])).coefficient for run in (a, b)]
    assert one("digits", both).coefficient == pytest.approx(slopes[0] - slopes[1], abs=1e-12)


def test_a_category_by_name_is_the_regression_on_its_means():
    y = np.array([0.0, 1, 1, 0, 1, 1, 1, 0, 0, 0])
    result = hn.regress(run_of(y, {"k": [1.0] * 5 + [2.0] * 5}), on=["C(k)"])
    assert one("k", result, "2").coefficient == pytest.approx(y[5:].mean() - y[:5].mean())
    assert one("k", result, "2").reference == "1"
    as_number = hn.regress(run_of(y, {"k": [1.0] * 5 + [2.0] * 5}), on=["k"])
    assert one("k", as_number).coefficient == pytest.approx(one("k", result, "2").coefficient)


def test_questions_without_the_field_are_left_out_and_counted():
    y = np.arange(8.0) % 3
    result = hn.regress(run_of(y, {"x": [None, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, None]}), on=["x"])
    assert (result.fits[0].n_questions, result.fits[0].n_left_out) == (6, 2)
    assert any("2 of 8 questions lack" in note for note in noted(result))
    assert one("x", result).coefficient == pytest.approx(np.polyfit(np.arange(1, 7), y[1:7], 1)[0])


@pytest.mark.parametrize(
    ("fields", "on", "words"),
    [
        ({"x": [1.0] * 12}, ["x"], "it is 1 for every question"),
        ({"x": list(np.arange(12.0)), "y": list(3 - 2 * np.arange(12.0))}, ["x", "y"], "cannot be told apart from x"),
        ({"x": ["u", "v"] * 6, "y": ["s", "t"] * 6}, ["x", "y"], "cannot be told apart"),
        ({"x": list(np.arange(12.0))}, ["z"], "no question has it. The fields are x"),
        ({"x": [f"w{i}" for i in range(12)]}, ["x"], "12 questions for 12 coefficients"),
        ({"x": list(np.arange(12.0))}, ["auto"], "by name"),
    ],
    ids=["constant", "collinear", "aliased", "unknown", "as many as questions", "auto"],
)
def test_what_explains_nothing_is_refused(fields, on, words):
    with pytest.raises(hn.InputError, match=words):
        hn.regress(run_of(np.arange(12.0) % 5, fields), on=on)


def test_a_level_in_one_cluster_is_not_identified():
    y = np.random.default_rng(0).random(30)
    labels = tuple(f"c{i // 5}" for i in range(30))
    result = hn.regress(run_of(y, {"k": ["rest"] * 25 + ["last"] * 5}, clusters=labels), on=["k"])
    row = one("k", result, "last")
    assert row.coefficient is not None
    assert row.se is row.p_value is row.ci_low is None
    assert row.diagnostics == ("too_few_clusters",)


def test_few_degrees_of_freedom_are_said():
    y = np.random.default_rng(0).random(30)
    labels = tuple(f"c{i // 6}" for i in range(30))
    x = [float(i // 6 == 1) + i // 6 for i in range(30)]
    row = one("x", hn.regress(run_of(y, {"x": x}, clusters=labels), on=["x"]))
    assert {"few_clusters", "few_df"} <= set(row.diagnostics)


def test_scores_without_variance_have_no_interval():
    row = one("x", hn.regress(run_of(np.ones(20), {"x": list(np.arange(20.0))}), on=["x"]))
    assert row.coefficient == 0
    assert row.p_value is row.ci_low is row.statistic is None
    assert "zero_variance" in row.diagnostics


def test_unequal_repeats_weigh():
    rng = np.random.default_rng(1)
    x = np.arange(200.0) % 10
    values = (rng.random((200, 8)) < (0.2 + 0.06 * x)[:, None]).astype(float)
    values[::2, 1:] = np.nan
    fit = hn.regress(run_of(values, {"x": list(x)}), on=["x"]).fits[0]
    assert fit.weighted
    assert "missing_repeats" in fit.diagnostics
    assert not hn.regress(run_of(values[1::2], {"x": list(x[1::2])}), on=["x"]).fits[0].weighted


def test_questions_with_one_answer_take_the_noise_of_the_others():
    """s² pooled over the questions that show it, and 1/(ω² + s²/k) of their regression."""
    rng = np.random.default_rng(8)
    x = rng.random(40)
    values = (rng.random((40, 3)) < x[:, None]).astype(float)
    values[::2, 1:] = np.nan
    count, means = np.where(np.arange(40) % 2, 3, 1), np.nanmean(values, axis=1)
    design = np.column_stack([np.ones(40), x])
    left = means - design @ np.linalg.lstsq(design, means, rcond=None)[0]
    noise = values[1::2].var(axis=1, ddof=1).mean() / count
    root = np.sqrt(1 / (max(0.0, left @ left / 38 - noise.mean()) + noise))
    want = np.linalg.lstsq(design * root[:, None], means * root, rcond=None)[0][1]
    assert one("x", hn.regress(run_of(values, {"x": list(x)}), on=["x"])).coefficient == pytest.approx(want, rel=1e-9)


def test_p_values_are_adjusted_over_all_but_the_intercept():
    rng = np.random.default_rng(2)
    fields = {"x": list(rng.random(80)), "z": list(rng.random(80))}
    result = hn.regress(run_of(rng.random(80), fields), on=["x", "z"])
    assert one("(intercept)", result).p_adjusted is None
    p = sorted([one("x", result).p_value, one("z", result).p_value])
    shown = sorted([one("x", result).p_adjusted, one("z", result).p_adjusted])
    assert shown == pytest.approx([min(1, 2 * p[0]), max(min(1, 2 * p[0]), p[1])])
    plain = hn.regress(run_of(rng.random(80), fields), on=["x", "z"], adjust="none")
    assert one("x", plain).p_adjusted == one("x", plain).p_value


def test_crossed_clusters_are_refused():
    labels = tuple(f"a{i % 4} ⨯ b{i % 3}" for i in range(24))
    with pytest.raises(hn.InputError, match="two crossed ways"):
        hn.regress(run_of(np.arange(24.0) % 5, {"x": list(np.arange(24.0) % 7)}, clusters=labels), on=["x"])


def test_fields_of_documents():
    reader = FieldReader(["meta.level", "{{kind}}-{{n}}", "auto"], "t")
    for i in range(60):
        reader.add({"kind": "ab"[i % 2], "n": i, "text": f"words {i}", "meta": {"level": i % 3 > 0}, "list": [i]})
    found = reader.fields()
    assert list(found.values["meta.level"])[:3] == ["false", "true", "true"]
    assert found.values["{{kind}}-{{n}}"][3] == "b-3"
    assert found.auto == ("kind", "n", "meta.level")  # the text has too many values, the list is no value
    assert found.names == ("kind", "n", "text", "meta", "list")
    task = FieldReader(["other=x"], "t")
    task.add({"x": 1})
    assert task.fields().values == {}


def test_strange_documents_do_not_stop_a_reader():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    reader = FieldReader(["x", "auto"], "t")
    for value in (float("inf"), 10**400, None, "", deep, float("nan"), "  a  b ", True):
        reader.add({"x": value})
    assert list(reader.fields().values["x"]) == [None, None, None, None, None, None, "a b", "true"]


def write(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(path)


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(3)
    rows = [
        {"question": f"q{i}", "model": model, "score": int(rng.random() < 0.9 - 0.1 * (i % 5)), "digits": i % 5,
         "kind": "xyz"[i % 3], "latency": float(rng.random()), "passage": f"p{i // 6}"}
        for i in range(120) for model in ("one", "two") for _ in range(2)
    ]  # fmt: skip
    return write(tmp_path / "table.jsonl", rows)


def invoke(*arguments):
    return runner().invoke(cli, ["regress", *arguments])


def test_the_command(table):
    found = invoke(table, "--on", "digits", "--on", "kind", "--cluster", "passage", "--format", "json")
    assert found.exit_code == 0, found.output
    out = json.loads(found.stdout)
    jsonschema.validate(out, json_schema())
    assert [row["value"] for row in out["coefficients"]] == [None, None, "y", "z"]
    assert out["fits"][0]["n_clusters"] == 20
    for form in ("table", "markdown", "latex", "csv"):
        shown = invoke(table, "--on", "digits", "--models", "one", "--format", form)
        assert shown.exit_code == 0, shown.output
        assert "digits" in shown.stdout
    shown = invoke(table, "--on", "digits", "--models", "one").stdout
    assert "Per extra unit of digits, one's score" in shown
    assert "coefficients and SE in points" in " ".join(shown.split())
    assert "differences" not in shown


def test_clusters_of_a_task_that_is_not_there_are_refused(table):
    with pytest.raises(hn.InputError, match=r"there is no task nope\. The tasks are"):
        hn.regress(hn.read(table)[0], on=["digits"], cluster="nope=kind")


def test_a_column_of_answers_is_no_property_of_questions(table):
    with pytest.raises(hn.InputError, match="describes an answer, not a question"):
        hn.read(table, fields=("latency",))


def test_in_notebooks_and_frames(table):
    result = hn.regress(*hn.read(table, fields=("digits",)), on=["digits"])
    assert list(result.to_frame()["field"]) == ["(intercept)", "digits"]
    assert "digits" in result._repr_html_()
    json.loads(result.to_json())


def test_a_run_that_was_read_without_fields_is_read_again(table, tmp_path):
    run = hn.read(table)[0]
    assert hn.regress(run, on=["digits"]).fits[0].n_questions == 120
    with pytest.raises(hn.InputError, match="only while a file is read"):
        hn.regress(replace(run, path=""), on=["digits"])


def test_a_real_log_of_inspect():
    path = DATA / "inspect" / "mmlu_gpt-4_285.eval"
    if not path.exists():
        pytest.skip("the shared data are not here")
    pytest.importorskip("inspect_ai")
    result = hn.regress(path, on=["subject"])
    frame = result.to_frame()
    assert len(frame) == 57
    (run,) = hn.read(path, cluster="subject")
    labels = np.array(run.scores[0].clusters)
    means = {name: run.scores[0].values[labels == name].mean() for name in np.unique(labels)}
    reference = frame["reference"].dropna().unique()[0]
    for row in result.coefficients[1:]:
        assert row.coefficient == pytest.approx(means[row.value] - means[reference], abs=1e-10)


def test_a_real_run_of_lm_eval():
    if not (DATA / "lm_eval" / "asdiv").exists():
        pytest.skip("the shared data are not here")
    result = hn.regress(DATA / "lm_eval" / "asdiv", on=["{{ body | length > 100 }}"])
    assert result.fits[0].n_questions == 50
    assert {row.value for row in result.coefficients} <= {None, "True", "False"}


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("m", "p", "covers"), rest_slow([(4, 0.85, 0.48), (10, 0.85, 0.80), (10, 0.5, 0.945), (30, 0.7, 0.947)])
)
def test_a_rare_category_covers_or_says_so(m, p, covers):
    """A category of m of 120 questions that is no harder than the rest."""
    draw, rng = simulation("coverage_weak").rare_category(m, 120, p), np.random.default_rng([8, m])
    rows = [draw(rng)[0] for _ in range(400)]
    covered = np.array([row.ci_low is not None and row.ci_low <= 0 <= row.ci_high for row in rows])
    coded = np.array(["rare_category" in row.diagnostics for row in rows])
    assert abs(covered.mean() - covers) < 4 * (covers * (1 - covers) / 400) ** 0.5
    assert (covered | coded).mean() > 0.95 - 3 * (0.05 * 0.95 / 400) ** 0.5
    assert m < 30 or coded.mean() < 0.03


def test_a_number_with_two_values_and_the_other_side_of_it_may_be_rare():
    y = np.random.default_rng(3).random(60) < 0.6
    y[:3] = True
    clusters = tuple(f"c{i // 2}" for i in range(60))
    for few, many, labels in [(1.0, 0.0, None), (0.0, 1.0, None), (0.0, 1.0, clusters)]:
        row = one("x", hn.regress(run_of(y, {"x": [few] * 3 + [many] * 57}, clusters=labels), on=["x"]))
        assert "rare_category" in row.diagnostics
    even = one("x", hn.regress(run_of(y, {"x": [0.0, 1.0] * 30}), on=["x"]))
    many = one("x", hn.regress(run_of(y, {"x": list(np.arange(60.0))}), on=["x"]))
    assert "rare_category" not in even.diagnostics + many.diagnostics

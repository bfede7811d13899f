"""Inspect logs read: real ones, made ones, and ones that cannot be used."""

from __future__ import annotations

import json
import logging
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.data.questions import Questions, content_hash

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai.log import EvalLog, ProvenanceData, invalidate_samples, read_eval_log, write_eval_log


def coins(canned, n=12, k=3, model="alpha"):
    return np.array([[canned.truth(f"q{i}", j, model=model) for j in range(1, k + 1)] for i in range(n)], float)


def only(analysis):
    (estimate,) = analysis.estimates
    return estimate


def change(source: Path, target: Path, edit) -> Path:
    """A copy of a log with `edit` applied to it."""
    log = read_eval_log(str(source))
    log = edit(log) or log
    write_eval_log(log, str(target))
    return target


# real logs


def test_figures_of_a_real_log(shared_data):
    path = shared_data / "inspect" / "mmlu_gpt-4_285.eval"
    estimate = only(hn.analyze(path))
    assert (estimate.task, estimate.metric, estimate.scorer) == ("mmlu", "accuracy", "choice")
    assert estimate.model == "openai/gpt-4"
    assert estimate.mean == pytest.approx(0.782456, abs=5e-7)
    assert estimate.se == pytest.approx(0.024482, abs=5e-7)
    native = read_eval_log(str(path), header_only=True).results.scores[0].metrics
    assert estimate.se == pytest.approx(native["stderr"].value, rel=1e-12)
    assert estimate.diagnostics == ("single_repeat",)
    clustered = only(hn.analyze(path, cluster="subject"))
    assert clustered.se == pytest.approx(0.0241553, abs=5e-8)
    assert clustered.df == pytest.approx(56)
    assert clustered.n_clusters == 57
    assert clustered.se < clustered.se_naive  # legal
    assert only(hn.analyze(path, cluster="{{subject}}")).se == clustered.se


READ = {
    "2025-02-11T15-18-04-05-00_popularity_mj7khqpMM4GBCfVQozKgzB.eval": (0.8, 0.13333333, 10, 1),
    "2025-05-12T20-28-13-04-00_popularity.json": (0.66666667, 0.33333333, 3, 1),
    "log_formats.json": (0.0, None, 1, 1),
    "log_streaming.eval": (0.75, 0.25, 2, 2),
    "mmlu-summary-choices.eval": (0.0, None, 1, 1),
}
REFUSED = {"2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval": "has no scores"}


def test_every_version_is_read_or_refused_with_a_reason(shared_data):
    files = sorted(path.name for path in (shared_data / "inspect" / "versions").iterdir())
    assert files == sorted({*READ, *REFUSED})
    for name, (mean, se, n, repeats) in READ.items():
        estimate = only(hn.analyze(shared_data / "inspect" / "versions" / name))
        assert estimate.mean == pytest.approx(mean), name
        assert estimate.se == (None if se is None else pytest.approx(se)), name
        assert (estimate.n_questions, estimate.repeats_max) == (n, repeats), name
        assert "mean_mismatch" not in estimate.diagnostics
    for name, reason in REFUSED.items():
        with pytest.raises(hn.InputError, match=reason):
            hn.read(shared_data / "inspect" / "versions" / name)


def test_a_folder_of_them_notes_what_it_leaves_out(shared_data):
    runs = hn.read(shared_data / "inspect" / "versions", apart=True)
    assert len(runs) == len(READ)
    assert len({run.name for run in runs}) == len(READ)
    assert [note for run in runs for note in run.notes if "has no scores" in note]


# agreement with Inspect's own


def test_agreement_with_inspects_own_errors(canned, tmp_path):
    from inspect_ai.scorer import accuracy, match, scorer, stderr

    metrics = {"stderr": stderr(), "clustered": stderr(cluster="passage")}
    try:
        from inspect_ai.scorer import ci
    except ImportError:  # before 0.3.260
        ci = None
    else:
        metrics |= {"ci": ci(0.9, method="t"), "ci_clustered": ci(0.9, method="t", cluster="passage")}
    task = canned.task(canned.samples(20, 4), scorer=match(), metrics=[accuracy(), *metrics.values()])
    log = canned.eval(task, tmp_path, epochs=3)[0]
    values = [metric.value for metric in log.results.scores[0].metrics.values()][1:]
    plain = only(hn.analyze(log.location, level=0.9, interval="t"))
    clustered = only(hn.analyze(log.location, level=0.9, interval="t", cluster="passage", se="cr1"))
    want = [plain.se, clustered.se]
    if ci is not None:
        want += [plain.ci_low, plain.ci_high, clustered.ci_low, clustered.ci_high]
    assert values == pytest.approx(want, rel=1e-9)
    assert scorer is not None


# values


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("C", 1), ("I", 0), ("P", 0.5), ("N", 0), (True, 1), (False, 0), (0.25, 0.25), (3, 3), ("yes", 1), ("No", 0),
        ("TRUE", 1), ("false", 0), ("0.75", 0.75), ("-2", -2), ("1e3", 1000),
    ],
)  # fmt: skip
def test_values_are_read_as_inspect_reads_them(value, number):
    from inspect_ai.scorer import value_to_float

    from harness_noise_adapters.inspect_logs.grid import numbers

    read = numbers([value])
    assert read.values.tolist() == [number]
    assert read.words == 0
    assert value_to_float()(value) == number


@given(
    st.lists(
        st.one_of(
            st.sampled_from(["C", "I", "P", "N", "yes", "No", "blue", "0.5", "-3", ""]),
            st.booleans(), st.integers(-9, 9), st.floats(-9, 9),
        ),
        min_size=1,
    )
)  # fmt: skip
def test_any_mixture_of_values_is_read_as_inspect_reads_it(values):
    from inspect_ai.scorer import value_to_float

    from harness_noise_adapters.inspect_logs.grid import numbers

    read = numbers(values)
    logging.disable(logging.WARNING)  # Inspect's, one for each word
    try:
        assert read.values.tolist() == [value_to_float()(value) for value in values]
    finally:
        logging.disable(logging.NOTSET)
    assert read.words == sum(value in ("blue", "") for value in values)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, unique=True), st.randoms())
def test_the_grid_puts_every_answer_in_its_place(answers, shuffler):
    from harness_noise_adapters.inspect_logs.grid import grid

    shuffler.shuffle(answers)
    values = np.arange(len(answers), dtype=float)
    places = grid([i for i, _ in answers], [j for _, j in answers], order=range(6))
    table = places.fill(values)
    epochs = sorted({j for _, j in answers})
    assert list(places.keys) == sorted({str(i) for i, _ in answers})
    for (i, j), value in zip(answers, values, strict=True):
        assert table[places.keys.index(str(i)), epochs.index(j)] == value
    assert np.isfinite(table).sum() == len(answers)
    assert [answers[k][0] for k in places.first] == [int(key) for key in places.keys]
    unnumbered = grid([i for i, _ in answers]).fill(values)
    for row, key in zip(unnumbered, grid([i for i, _ in answers]).keys, strict=True):
        given_order = [value for (i, _), value in zip(answers, values, strict=True) if str(i) == key]
        assert row[: len(given_order)].tolist() == given_order


def test_values_that_are_no_numbers_are_counted():
    from harness_noise_adapters.inspect_logs.grid import numbers

    read = numbers(["blue", [1, 0], {"a": 1}, "nan", "inf", None, float("nan"), np.float64(0.5)])
    assert read.words == 5
    assert read.example == "blue"
    assert np.array_equal(read.values, [0, 0, 0, 0, 0, np.nan, np.nan, 0.5], equal_nan=True)


def test_letter_grades(canned, tmp_path):
    from inspect_ai.scorer import Score, accuracy, scorer, stderr

    @scorer(metrics=[accuracy(), stderr()])
    def grades():
        async def score(state, target):
            return Score(value="CIPN"[(int(state.sample_id[1:]) * 3 + state.epoch) % 4])

        return score

    log = canned.eval(canned.task(scorer=grades()), tmp_path, epochs=2)[0]
    table = [[{0: 1, 2: 0.5}.get((i * 3 + j) % 4, 0) for j in (1, 2)] for i in range(12)]
    want = hn.estimate(table)
    found = only(hn.analyze(log.location))
    assert (found.mean, found.se, found.se_prediction) == pytest.approx((want.mean, want.se, want.se_prediction))
    assert "mean_mismatch" not in found.diagnostics


def test_a_custom_conversion_is_a_mean_mismatch(canned, tmp_path):
    from inspect_ai.scorer import Score, accuracy, scorer

    @scorer(metrics=[accuracy(to_float=lambda value: float(value) / 4)])
    def quarter():
        async def score(state, target):
            return Score(value=canned.truth(state.sample_id, state.epoch))

        return score

    log = canned.eval(canned.task(scorer=quarter()), tmp_path, epochs=2)[0]
    assert "mean_mismatch" in only(hn.analyze(log.location)).diagnostics


# repeats, questions and clusters


def test_epochs_are_columns_and_samples_are_rows(canned, inspect_logs):
    (run,) = hn.read(inspect_logs.a)
    (scores,) = run.scores
    assert (run.model, run.name, run.harness) == ("mockllm/alpha", str(inspect_logs.a), "inspect")
    order = [scores.questions.keys.index(f"q{i}") for i in range(12)]
    assert np.array_equal(scores.values[order], coins(canned))
    assert scores.questions.kind == "sample id"
    assert scores.questions.inputs[order[4]] == content_hash("Question 4?\nSay yes or no.")
    assert scores.higher_is_better is True
    want = hn.estimate(coins(canned))
    found = only(hn.analyze(run))
    assert (found.se, found.se_data, found.se_prediction) == pytest.approx((want.se, want.se_data, want.se_prediction))


def test_json_and_eval_give_the_same(inspect_logs, tmp_path):
    as_json = change(inspect_logs.a, tmp_path / "a.json", lambda log: None)
    one, other = hn.analyze(inspect_logs.a).to_dict(), hn.analyze(as_json).to_dict()
    for table in (one, other):
        table["estimates"][0].pop("run")
    assert one == other
    assert hn.compare(inspect_logs.a, as_json).differences[0].diff == 0


def test_cluster_specs(inspect_logs):
    def n_clusters(**options):
        return only(hn.analyze(inspect_logs.a, **options)).n_clusters

    assert n_clusters() == 12
    assert n_clusters(cluster="passage") == 4
    assert n_clusters(cluster="coins=passage") == 4
    assert n_clusters(cluster="other=passage") == 12
    assert n_clusters(cluster="{{passage}}{{id}}") == 12
    assert n_clusters(cluster="none") == 12
    assert n_clusters(cluster="auto") == 12
    single = only(hn.analyze(inspect_logs.a, cluster="task"))
    assert single.se is None
    assert "too_few_clusters" in single.diagnostics
    assert "singleton_clusters" in only(hn.analyze(inspect_logs.a, cluster="name")).diagnostics


def test_a_missing_cluster_field_lists_the_fields(inspect_logs):
    with pytest.raises(hn.InputError, match=r"'nope'.*id, name, passage"):
        hn.analyze(inspect_logs.a, cluster="nope")
    with pytest.raises(hn.InputError, match="nope"):
        hn.analyze(inspect_logs.folder, cluster="nope")
    assert hn.analyze(inspect_logs.a, cluster="other=nope").estimates


def test_clusters_that_the_log_carries(canned, inspect_logs, tmp_path):
    def named(log: EvalLog):
        log.eval.metadata = {"noise_cluster": "passage"}

    def missing(log: EvalLog):
        log.eval.metadata = {"noise_cluster": "nope"}

    def own(log: EvalLog):
        for sample in log.samples:
            sample.metadata["cluster"] = sample.metadata["passage"]

    assert only(hn.analyze(change(inspect_logs.a, tmp_path / "named.eval", named))).n_clusters == 4
    assert only(hn.analyze(change(inspect_logs.a, tmp_path / "own.eval", own))).n_clusters == 4
    (run,) = hn.read(change(inspect_logs.a, tmp_path / "missing.eval", missing))
    assert run.scores[0].clusters is None
    assert any("nope" in note for note in run.notes)


def test_natural_clusters_are_hinted_at_and_auto_takes_them(inspect_logs, tmp_path):
    def drop(log: EvalLog):
        log.eval.task = "inspect_evals/drop"
        for sample in log.samples:
            sample.metadata["passage_hash"] = sample.metadata["passage"]

    path = change(inspect_logs.a, tmp_path / "drop.eval", drop)
    (run,) = hn.read(path)
    assert run.scores[0].clusters is None
    assert any("passage_hash" in note and "auto" in note for note in run.notes)
    found = only(hn.analyze(path, cluster="auto"))
    assert (found.n_clusters, found.cluster) == (4, "passage_hash (auto)")


def test_what_summaries_cut_is_read_in_full(inspect_logs, tmp_path):
    """Two clusters, two inputs that differ only far behind where a summary ends."""

    def long(log: EvalLog):
        for sample in log.samples:
            number = int(sample.metadata["name"][1:])
            sample.metadata["context"] = "x" * 3000 + str(number % 2)
            sample.metadata["object"] = {"text": "y" * 3000, "page": number % 3}
            sample.input = "z" * 8000 + f" question {number}"

    path = change(inspect_logs.a, tmp_path / "long.eval", long)
    assert only(hn.analyze(path, cluster="context")).n_clusters == 2
    assert only(hn.analyze(path, cluster="object")).n_clusters == 3
    questions = hn.read(path)[0].scores[0].questions
    assert len(set(questions.inputs)) == 12
    number = questions.keys.index("q7")
    assert questions.inputs[number] == content_hash("z" * 8000 + " question 7")


@pytest.mark.parametrize("start", ["", "See ", "word " * 300])
def test_a_field_that_a_summary_cuts_is_read_in_full(inspect_logs, tmp_path, start):
    """The cut falls before a word that does not fit, so little may be left of a text."""

    def long(log: EvalLog):
        for sample in log.samples:
            number = int(sample.metadata["name"][1:])
            sample.metadata["context"] = start + "x" * 3000 + str(number % 2)
            sample.metadata["key"] = start + "x" * 3000 + str(number)

    path = change(inspect_logs.a, tmp_path / "long.eval", long)
    assert only(hn.analyze(path, cluster="context")).n_clusters == 2
    (run,) = hn.read(path, columns={"question": "key"})
    assert {key.removeprefix(start).strip("x") for key in run.scores[0].questions.keys} == set(map(str, range(12)))
    assert run.notes == ()


def test_white_space_makes_no_cluster(canned, tmp_path):
    """A summary squeezes it; the run itself does not."""
    samples = canned.samples()
    for i, sample in enumerate(samples):
        sample.metadata["text"] = ("one  text", "one\ntext", "another", "another ")[i % 4]
    log = canned.eval(canned.task(samples), tmp_path, metadata={"noise": True, "noise_cluster": "text"}, epochs=2)[0]
    live = log.results.scores[0].metrics["noise_se"]
    found = only(hn.analyze(log.location))
    assert live.metadata["n_clusters"] == found.n_clusters == 2
    assert live.value == pytest.approx(found.se, rel=1e-12)


def test_pictures_tell_questions_apart(canned, tmp_path):
    """A summary shows every picture as the same word."""
    from inspect_ai.model import ChatMessageUser, ContentImage, ContentText

    def picture(i):
        data = f"data:image/png;base64,{'AAAA' * (i + 1)}"
        return [ChatMessageUser(content=[ContentText(text="What is this?"), ContentImage(image=data)])]

    samples = [canned.Sample(id=f"q{i}", input=picture(i), target="yes", metadata={"name": f"q{i}"}) for i in range(4)]
    log = canned.eval(canned.task(samples), tmp_path, epochs=2)[0]
    questions = hn.read(log.location)[0].scores[0].questions
    assert len(set(questions.inputs)) == 4


def test_answers_that_have_no_score(canned, tmp_path):
    def before(state):
        if (state.sample_id, state.epoch) in {("q1", 1), ("q5", 3)}:
            raise RuntimeError("no answer")

    log = canned.eval(canned.task(before=before), tmp_path, model="mockllm/alpha", epochs=3, fail_on_error=False)[0]
    table = coins(canned)
    table[1, 0] = table[5, 2] = np.nan
    found = only(hn.analyze(log.location))
    want = hn.estimate(table)
    assert (found.n_missing, found.repeats_min, found.repeats_max) == (2, 2, 3)
    assert (found.mean, found.se, found.se_total) == pytest.approx((want.mean, want.se, want.se_total), rel=1e-12)
    zero = only(hn.analyze(log.location, missing="zero"))
    want = hn.estimate(np.nan_to_num(table))
    assert (zero.mean, zero.se, zero.n_missing) == (pytest.approx(want.mean), pytest.approx(want.se), 2)
    assert "mean_mismatch" not in {*found.diagnostics, *zero.diagnostics}


def test_invalidated_samples_are_left_out_and_counted(canned, inspect_logs, tmp_path):
    def invalidate(log: EvalLog):
        chosen = [s.uuid for s in log.samples if s.id == "q3" or (s.id, s.epoch) == ("q8", 2)]
        return invalidate_samples(log, chosen, ProvenanceData(author="me", reason="leaked"))

    path = change(inspect_logs.a, tmp_path / "invalid.eval", invalidate)
    table = coins(canned)
    table[3] = table[8, 1] = np.nan
    want = hn.estimate(np.delete(table, 3, axis=0))
    (run,) = hn.read(path)
    found = only(hn.analyze(run))
    assert (found.n_questions, found.n_missing) == (11, 4)
    assert (found.mean, found.se) == pytest.approx((want.mean, want.se), rel=1e-12)
    assert any("4 of 36 answers are invalidated" in note for note in run.notes)
    assert "mean_mismatch" not in found.diagnostics


def test_of_requeued_samples_the_last_counts(canned, inspect_logs, tmp_path):
    log = read_eval_log(str(inspect_logs.a))
    document = json.loads(log.model_dump_json(exclude_none=True))
    stale = [sample | {"scores": {"match": {"value": "C"}}} for sample in document["samples"][:5]]
    (tmp_path / "log.json").write_text(json.dumps(document | {"samples": [*stale, *document["samples"]]}))
    (scores,) = hn.read(tmp_path / "log.json")[0].scores
    order = [scores.questions.keys.index(f"q{i}") for i in range(12)]
    assert np.array_equal(scores.values[order], coins(canned))


def test_a_limited_run_is_paired_with_a_whole_one(canned, inspect_logs, tmp_path):
    log = canned.eval(canned.task(), tmp_path, model="mockllm/beta", epochs=2, limit=7)[0]
    (row,) = hn.compare(inspect_logs.a, log.location).differences
    assert (row.n_questions, row.n_only_a, row.n_only_b) == (7, 5, 0)
    assert "unpaired_questions" in row.diagnostics
    want = hn.estimate_difference(coins(canned, 7), coins(canned, 7, 2, "beta"))
    assert (row.diff, row.se, row.se_data) == pytest.approx((want.diff, want.se, want.se_data), rel=1e-12)


# pairing


def test_pairs_by_id(canned, inspect_logs):
    (row,) = hn.compare(inspect_logs.a, inspect_logs.b, cluster="passage").differences
    want = hn.estimate_difference(coins(canned), coins(canned, model="beta"), [i // 3 for i in range(12)])
    for name in ("diff", "se", "se_data", "se_prediction", "p_value", "correlation"):
        assert getattr(row, name) == pytest.approx(getattr(want, name), rel=1e-9), name
    assert row.n_clusters == 4


def test_automatic_ids_after_a_shuffle_are_paired_by_content(canned, inspect_logs):
    one, other = hn.read(inspect_logs.automatic)[0], hn.read(inspect_logs.shuffled)[0]
    assert set(one.scores[0].questions.keys) == set(other.scores[0].questions.keys)  # the trap
    result = hn.compare(one, other)
    (row,) = result.differences
    want = hn.estimate_difference(coins(canned), coins(canned, model="beta"))
    assert row.n_questions == 12
    assert (row.diff, row.se) == pytest.approx((want.diff, want.se), rel=1e-9)
    assert row.correlation == pytest.approx(want.correlation)
    assert any("not their text" in note for note in result.notes)


def test_choices_tell_questions_apart(canned, tmp_path):
    """After a shuffle: one question text and one letter for all, and the choices in another order."""
    from inspect_ai.log import read_eval_log_sample_summaries

    def run(order, model, turned):
        samples = []
        for i in order:
            choices = [f"right {i}", f"wrong {i}"]
            samples.append(
                canned.Sample(
                    input="Which is true?", choices=choices[::-1] if turned else choices, target="AB"[turned],
                    metadata={"name": f"q{i}"},
                )
            )  # fmt: skip
        task = canned.task(samples, answer=lambda state: answer(state.metadata["name"], state.epoch, model, turned))
        return canned.eval(task, tmp_path / model, model=f"mockllm/{model}", epochs=2)[0].location

    def answer(key, epoch, model, turned):
        right = canned.truth(key, epoch, model=model)
        return "AB"[turned if right else not turned]

    want = hn.estimate_difference(coins(canned, 8, 2), coins(canned, 8, 2, "beta"))
    for turned in (False, True):
        one = run(range(8), "alpha", False)
        other = run([3, 6, 0, 7, 1, 5, 2, 4], "beta", turned)
        (row,) = hn.compare(one, other).differences
        assert row.n_questions == 8
        assert (row.diff, row.se, row.correlation) == pytest.approx((want.diff, want.se, want.correlation))
    assert read_eval_log_sample_summaries(other)[0].choices is not None


def test_old_summaries_without_choices_are_read_in_full(shared_data, tmp_path):
    path = shared_data / "inspect" / "mmlu_gpt-4_285.eval"
    again = change(path, tmp_path / "today.eval", lambda log: None)
    (row,) = hn.compare(path, again).differences
    assert (row.n_questions, row.diff) == (285, 0)
    old, new = (hn.read(item)[0].scores[0].questions for item in (path, again))
    assert old.targets == new.targets
    assert len(set(zip(old.inputs, old.targets, strict=True))) == 284  # one question is asked twice


def test_the_same_questions_of_another_harness_are_matched_by_content(canned, inspect_logs):
    """Another harness has its own keys, and its texts differ in line ends; its order is its own."""
    order = list(range(12))
    random.Random(1).shuffle(order)
    table = coins(canned, model="gamma")[order]
    questions = Questions(
        keys=tuple(f"hash{i}" for i in order),
        kind="doc_hash",
        inputs=tuple(content_hash(f"Question {i}?  \r\nSay yes or no.\n") for i in order),
        targets=tuple("another form" for _ in order),
    )
    other = hn.Run(
        model="gamma", name="lm-eval run", harness="lm-eval",
        scores=(hn.Scores(task="coins", metric="acc", scorer="none", questions=questions, values=table),),
    )  # fmt: skip
    (row,) = hn.compare(hn.read(inspect_logs.a), other).differences
    want = hn.estimate_difference(coins(canned), coins(canned, model="gamma"))
    assert row.n_questions == 12
    assert (row.diff, row.se) == pytest.approx((want.diff, want.se), rel=1e-9)


def test_a_given_key_identifies_the_questions(canned, inspect_logs):
    (run,) = hn.read(inspect_logs.automatic, columns={"question": "name"})
    (scores,) = run.scores
    assert scores.questions.kind == "question"
    assert set(scores.questions.keys) == {f"q{i}" for i in range(12)}
    other = hn.Run(
        model="gamma", name="table", harness="table",
        scores=(
            hn.Scores(
                task="coins", metric="acc", scorer="none", values=coins(canned, model="gamma"),
                questions=Questions(tuple(f"q{i}" for i in range(12)), inputs=tuple("other words" for _ in range(12))),
            ),
        ),
    )  # fmt: skip
    (row,) = hn.compare(run, other).differences
    want = hn.estimate_difference(coins(canned), coins(canned, model="gamma"))
    assert (row.diff, row.se) == pytest.approx((want.diff, want.se), rel=1e-9)
    with pytest.raises(hn.InputError, match=r"'nope' does not exist.*input, name, passage, target"):
        hn.read(inspect_logs.automatic, columns={"question": "nope"})


# folders


def test_tasks_of_one_model_in_a_folder_are_one_run(canned, tmp_path):
    tasks = [canned.task(name="left"), canned.task(canned.samples(9), name="right")]
    canned.eval(tasks, tmp_path, model=["mockllm/alpha", "mockllm/beta"], epochs=2)
    runs = hn.read(tmp_path, groups={"both": "*"})
    assert {run.model for run in runs} == {"mockllm/alpha", "mockllm/beta"}
    for run in runs:
        assert {scores.task for scores in run.scores} == {"left", "right"}
        rows = {item.task: item for item in hn.analyze(run).estimates}
        want = rows["left"].mean * 12 + rows["right"].mean * 9
        assert rows["both"].mean == pytest.approx(want / 21)
    assert {run.name for run in runs} == {str(tmp_path)}
    again = hn.analyze(runs[0], cluster="passage")
    assert {item.model for item in again.estimates} == {runs[0].model}
    assert {item.n_clusters for item in again.estimates if item.task == "left"} == {4}


def test_of_two_runs_of_a_task_in_a_folder_the_newest_counts(canned, inspect_logs, tmp_path):
    shutil.copy(inspect_logs.a, tmp_path / "one.eval")
    second = canned.eval(canned.task(), tmp_path, model="mockllm/alpha", epochs=2)[0]
    (run,) = hn.read(tmp_path)
    assert run.name == str(Path(second.location))
    assert [note for note in run.notes if "older run" in note and "one.eval" in note]
    runs = hn.read(tmp_path, apart=True)
    assert {run.name for run in runs} == {str(tmp_path / "one.eval"), str(Path(second.location))}


def test_logs_that_share_a_task_id_are_copies_only_if_their_answers_are(canned, inspect_logs, tmp_path):
    """Other programs that write such logs give one id to a task, whichever model answers it, and whenever."""

    def of_other_model(log: EvalLog):
        log.eval.model = "other/model"

    scorer = next(iter(read_eval_log(str(inspect_logs.a)).samples[0].scores))
    change(inspect_logs.a, tmp_path / "one.eval", lambda log: None)
    change(inspect_logs.a, tmp_path / "two.eval", of_other_model)
    runs = hn.read(tmp_path)
    assert {run.model for run in runs} == {"mockllm/alpha", "other/model"}
    assert not [note for run in runs for note in run.notes if "has the answers of" in note]

    def rerun(log: EvalLog):
        log.eval.created = "2999-01-01T00:00:00+00:00"
        for sample in log.samples:
            sample.uuid = None
            sample.scores[scorer].value = "I" if sample.scores[scorer].value == "C" else "C"

    change(inspect_logs.a, tmp_path / "three.eval", rerun)
    runs = hn.read(tmp_path)
    assert not [note for run in runs for note in run.notes if "has the answers of" in note]
    assert [note for run in runs for note in run.notes if "older run" in note and "one.eval" in note]


def test_a_copy_and_an_earlier_try_do_not_count_twice(canned, inspect_logs, tmp_path):
    def retried(log: EvalLog):
        log.eval.eval_id, log.eval.created = "later", "2999-01-01T00:00:00+00:00"

    (tmp_path / "augmented").mkdir()
    shutil.copy(inspect_logs.a, tmp_path / "one.eval")
    shutil.copy(inspect_logs.a, tmp_path / "augmented" / "one.eval")
    (run,) = hn.read(tmp_path)
    assert run.name == str(tmp_path / "augmented" / "one.eval")
    assert [note for note in run.notes if "copy" in note and str(tmp_path / "one.eval") in note]
    change(inspect_logs.a, tmp_path / "two.eval", retried)
    (tmp_path / "a_cut.eval").write_bytes(b"not a zip")
    (run,) = hn.read(tmp_path)
    assert run.name == str(tmp_path / "two.eval")
    assert [note.startswith("left out:") for note in run.notes] == [True] * 3


@pytest.mark.parametrize(
    ("created", "date"),
    [
        ("2025-03-01T09:00:00+02:00", "2025-03-01T07:00:00+00:00"),
        ("2025-03-01T09:00:00", "2025-03-01T09:00:00+00:00"),
        ("yesterday", ""),
    ],
)
def test_a_date_is_in_utc_or_there_is_none(inspect_logs, tmp_path, created, date):
    log = read_eval_log(str(inspect_logs.a))
    write_eval_log(log, str(tmp_path / "a.json"))
    data = json.loads((tmp_path / "a.json").read_text())
    data["eval"]["created"] = created
    (tmp_path / "a.json").write_text(json.dumps(data))
    assert hn.read(tmp_path / "a.json")[0].date == date


# input that cannot be used


def refused(capsys, *arguments):
    status = main([str(item) for item in arguments])
    printed = capsys.readouterr()
    assert status == 2
    assert printed.out == ""
    assert "Traceback" not in printed.err
    assert len(printed.err.strip().splitlines()) < 8
    return " ".join(printed.err.split())


def unfinished(log: EvalLog):
    log.status, log.results = "started", None


def unscored(log: EvalLog):
    log.results.scores = []


def failed(log: EvalLog):
    log.status, log.results = "error", None


def only_mode(log: EvalLog):
    log.results.scores[0].reducer = "mode"


def unknown_scorer(log: EvalLog):
    log.results.scores[0].name = log.results.scores[0].scorer = "somebody"


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (unfinished, "has not finished"),
        (unscored, "no scores"),
        (failed, "ended with an error"),
        (only_mode, "no native value is what its reducer mode makes of the scores"),
        (unknown_scorer, "no sample has a score of this scorer"),
    ],
)
def test_logs_that_cannot_be_used(inspect_logs, tmp_path, capsys, edit, reason):
    path = change(inspect_logs.a, tmp_path / "log.eval", edit)
    before = path.read_bytes()
    assert reason in refused(capsys, "analyze", path)
    assert reason in refused(capsys, "compare", path, inspect_logs.b)
    assert reason in refused(capsys, "export", path, "--in-place")
    assert reason in refused(capsys, "export", path, "-o", tmp_path / "out")
    assert path.read_bytes() == before
    assert sorted(item.name for item in tmp_path.iterdir()) == ["log.eval"]


def test_files_that_are_no_logs(inspect_logs, tmp_path, capsys):
    whole = inspect_logs.a.read_bytes()
    files = {
        "cut.eval": whole[: len(whole) // 2],
        "text.eval": b"not a zip",
        "empty.eval": b"",
        "cut.json": b'{"version": 2, "status": "success", "eval": {"task":',
        "wrong.json": b'{"version": 2, "status": "success", "eval": {"task": 1}}',
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        assert "not an Inspect log that can be read" in refused(capsys, "analyze", tmp_path / name), name
    (tmp_path / "other.json").write_text(json.dumps({"status": "success"}))
    assert refused(capsys, "analyze", tmp_path / "other.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*files, "other.json"])
    assert "none of its 5 files can be used" in refused(capsys, "analyze", tmp_path)


def test_an_unknown_scorer_lists_those_there_are(inspect_logs, capsys):
    assert "match" in refused(capsys, "analyze", inspect_logs.a, "--scorer", "nope")


def test_logs_of_different_tasks_say_what_differs(canned, inspect_logs, tmp_path, capsys):
    samples = [canned.Sample(input=f"Other {i}", target="no", id=f"o{i}") for i in range(5)]
    log = canned.eval(canned.task(samples, name="others"), tmp_path, epochs=2)[0]
    text = refused(capsys, "compare", inspect_logs.a, log.location)
    assert "the tasks differ (coins and others)" in text
    assert "no question in common (12 and 5 questions)" in text


def test_a_cluster_that_only_some_samples_have_is_said_and_not_used(canned, tmp_path):
    dataset = canned.samples(12)
    for i, item in enumerate(dataset):
        if i:
            item.metadata["cluster"] = f"c{i // 3}"
    canned.eval(canned.task(dataset), tmp_path)
    (run,) = hn.read(tmp_path)
    assert any("1 of 12 samples have no cluster of their own" in note for note in run.notes)
    assert run.scores[0].clusters is None

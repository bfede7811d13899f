"""Which question is which in Inspect logs: repeats, clusters, pairs by id and by content."""

from __future__ import annotations

import json
import random
from zipfile import ZipFile

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.data.questions import Questions, content_hash
from support.harbor_files import job, trial
from support.notes import noted

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
from inspect_ai.log import EvalLog, ProvenanceData, invalidate_samples, read_eval_log

from support.inspect_evals import PASSAGES, change, coins, only


# repeats, questions and clusters
def test_epochs_are_columns_and_samples_are_rows(canned, inspect_logs):
    (run,) = hn.read(inspect_logs.a)
    (scores,) = run.scores
    assert (run.model, run.name, run.harness) == ("mockllm/alpha", str(inspect_logs.a), "inspect")
    order = [scores.questions.keys.index(f"q{i}") for i in range(12)]
    assert np.array_equal(scores.values[order], coins(canned, model="alpha"))
    assert scores.questions.kind == "sample id"
    assert scores.questions.inputs[order[4]] == content_hash("Question 4?\nSay yes or no.")
    assert scores.higher_is_better is True
    want = hn.estimate(coins(canned, model="alpha"))
    found = only(hn.analyze(run))
    assert (found.se, found.se_data, found.se_prediction) == pytest.approx((want.se, want.se_data, want.se_prediction))


def test_json_and_eval_give_the_same(inspect_logs, tmp_path):
    as_json = change(inspect_logs.a, tmp_path / "a.json", lambda log: None)
    one, other = hn.analyze(inspect_logs.a).to_dict(), hn.analyze(as_json).to_dict()
    for table in (one, other):
        table["estimates"][0].pop("run")
    assert one == other
    assert hn.compare(inspect_logs.a, as_json).comparisons[0].diff == 0


def test_cluster_specs(inspect_logs):
    def n_clusters(**options):
        return only(hn.analyze(inspect_logs.a, **options)).n_clusters

    assert n_clusters() == 12
    assert n_clusters(cluster="passage") == 4
    assert n_clusters(cluster="coins=passage") == 4
    with pytest.raises(hn.InputError, match=r"there is no task other\. The tasks are coins"):
        n_clusters(cluster="other=passage")
    assert n_clusters(cluster="{{passage}}{{id}}") == 12
    assert n_clusters(cluster="none") == 12
    assert n_clusters(cluster="auto") == 12
    single = only(hn.analyze(inspect_logs.a, cluster="task"))
    assert single.se is None
    assert "too_few_clusters" in single.diagnostics
    assert "singleton_clusters" in only(hn.analyze(inspect_logs.a, cluster="name")).diagnostics


def test_a_missing_cluster_field_lists_the_fields(inspect_logs):
    with pytest.raises(hn.InputError, match=r"'nope'.*id, input, name, passage"):
        hn.analyze(inspect_logs.a, cluster="nope")
    with pytest.raises(hn.InputError, match="nope"):
        hn.analyze(inspect_logs.folder, cluster="nope")


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
    assert any("nope" in note for note in noted(run))


def test_natural_clusters_are_hinted_at_and_auto_takes_them(inspect_logs, tmp_path):
    def drop(log: EvalLog):
        log.eval.task = "inspect_evals/drop"
        for sample in log.samples:
            sample.metadata["passage_hash"] = sample.metadata["passage"]

    path = change(inspect_logs.a, tmp_path / "drop.eval", drop)
    (run,) = hn.read(path)
    assert run.scores[0].clusters is None
    assert any("passage_hash" in note and "auto" in note for note in noted(run))
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


def test_samples_that_are_not_those_of_their_names_cost_no_repeats(inspect_logs, tmp_path):
    """The first sample of each question is read for what summaries cut; where it is another, all of them are."""

    def long(log: EvalLog):
        for sample in log.samples:
            sample.metadata["context"] = "x" * 3000 + str(int(sample.metadata["name"][1:]) % 2)

    path = change(inspect_logs.a, tmp_path / "long.eval", long)
    odd = tmp_path / "odd.eval"
    with ZipFile(path) as source, ZipFile(odd, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "samples/q7_epoch_1.json":
                data = json.dumps(json.loads(data) | {"id": "another"}).encode()
            target.writestr(name, data)
    row = only(hn.analyze(odd, cluster="context"))
    assert row.repeats_max == only(hn.analyze(path, cluster="context")).repeats_max > 1
    assert (row.n_questions, row.n_clusters) == (13, 2)


def test_the_cluster_of_a_scorers_own_stderr_is_read_in_full(canned, tmp_path):
    """Its long values begin alike: cut, they would be one cluster."""
    from inspect_ai.scorer import accuracy, match, stderr

    samples = canned.samples()
    for i, sample in enumerate(samples):
        sample.metadata["text"] = "About " + "x" * 3000 + str(i // 3)
    task = canned.task(samples, scorer=match(), metrics=[accuracy(), stderr(cluster="text")])
    log = canned.eval(task, tmp_path, epochs=3, metadata={"noise": True})[0]
    found, live = only(hn.analyze(log.location)), log.results.scores[0].metrics["noise_se"]
    assert found.n_clusters == live.metadata["n_clusters"] == 4
    assert found.se == pytest.approx(live.value, rel=1e-12)


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
    assert noted(run) == ()


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
    table = coins(canned, model="alpha")
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
    table = coins(canned, model="alpha")
    table[3] = table[8, 1] = np.nan
    want = hn.estimate(np.delete(table, 3, axis=0))
    (run,) = hn.read(path)
    found = only(hn.analyze(run))
    assert (found.n_questions, found.n_missing) == (11, 4)
    assert (found.mean, found.se) == pytest.approx((want.mean, want.se), rel=1e-12)
    assert any("4 of 36 answers are invalidated" in note for note in noted(run))
    assert "mean_mismatch" not in found.diagnostics


def test_of_requeued_samples_the_last_counts(canned, inspect_logs, tmp_path):
    log = read_eval_log(str(inspect_logs.a))
    document = json.loads(log.model_dump_json(exclude_none=True))
    stale = [sample | {"scores": {"match": {"value": "C"}}} for sample in document["samples"][:5]]
    (tmp_path / "log.json").write_text(json.dumps(document | {"samples": [*stale, *document["samples"]]}))
    (scores,) = hn.read(tmp_path / "log.json")[0].scores
    order = [scores.questions.keys.index(f"q{i}") for i in range(12)]
    assert np.array_equal(scores.values[order], coins(canned, model="alpha"))


def test_a_limited_run_is_paired_with_a_whole_one(canned, inspect_logs, tmp_path):
    log = canned.eval(canned.task(), tmp_path, model="mockllm/beta", epochs=2, limit=7)[0]
    (row,) = hn.compare(inspect_logs.a, log.location).comparisons
    assert (row.n_questions, row.n_only_a, row.n_only_b) == (7, 5, 0)
    assert "unpaired_questions" in row.diagnostics
    want = hn.estimate_difference(coins(canned, 7, model="alpha"), coins(canned, 7, 2, "beta"))
    assert (row.diff, row.se, row.se_data) == pytest.approx((want.diff, want.se, want.se_data), rel=1e-12)


# pairing
def test_pairs_by_id(canned, inspect_logs):
    (row,) = hn.compare(inspect_logs.a, inspect_logs.b, cluster="passage").comparisons
    want = hn.estimate_difference(coins(canned, model="alpha"), coins(canned, model="beta"), PASSAGES)
    for name in ("diff", "se", "se_data", "se_prediction", "p_value", "correlation"):
        assert getattr(row, name) == pytest.approx(getattr(want, name), rel=1e-9), name
    assert row.n_clusters == 4


def test_automatic_ids_after_a_shuffle_are_paired_by_content(canned, inspect_logs):
    one, other = hn.read(inspect_logs.automatic)[0], hn.read(inspect_logs.shuffled)[0]
    assert set(one.scores[0].questions.keys) == set(other.scores[0].questions.keys)  # the trap
    result = hn.compare(one, other)
    (row,) = result.comparisons
    want = hn.estimate_difference(coins(canned, model="alpha"), coins(canned, model="beta"))
    assert row.n_questions == 12
    assert (row.diff, row.se) == pytest.approx((want.diff, want.se), rel=1e-9)
    assert row.correlation == pytest.approx(want.correlation)
    assert any("not their text" in note for note in noted(result))


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

    want = hn.estimate_difference(coins(canned, 8, 2, model="alpha"), coins(canned, 8, 2, "beta"))
    for turned in (False, True):
        one = run(range(8), "alpha", False)
        other = run([3, 6, 0, 7, 1, 5, 2, 4], "beta", turned)
        (row,) = hn.compare(one, other).comparisons
        assert row.n_questions == 8
        assert (row.diff, row.se, row.correlation) == pytest.approx((want.diff, want.se, want.correlation))
    assert read_eval_log_sample_summaries(other)[0].choices is not None


def test_old_summaries_without_choices_are_read_in_full(shared_data, tmp_path):
    path = shared_data / "inspect" / "mmlu_gpt-4_285.eval"
    again = change(path, tmp_path / "today.eval", lambda log: None)
    (row,) = hn.compare(path, again).comparisons
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
    (row,) = hn.compare(hn.read(inspect_logs.a), other).comparisons
    want = hn.estimate_difference(coins(canned, model="alpha"), coins(canned, model="gamma"))
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
    (row,) = hn.compare(run, other).comparisons
    want = hn.estimate_difference(coins(canned, model="alpha"), coins(canned, model="gamma"))
    assert (row.diff, row.se) == pytest.approx((want.diff, want.se), rel=1e-9)
    with pytest.raises(hn.InputError, match=r"'nope' does not exist.*input, name, passage, target"):
        hn.read(inspect_logs.automatic, columns={"question": "nope"})


def test_a_key_of_the_metadata_that_contains_the_clusters_is_known(shared_data, tmp_path):
    def told(log):
        for i, sample in enumerate(log.samples):
            sample.metadata |= {"passage": f"p{i // 3}", "article": f"a{i // 12}", "text": "x" * 1000}

    path = change(shared_data / "inspect" / "mmlu_gpt-4_285.eval", tmp_path / "log.json", told)
    (run,) = hn.read(path, cluster="passage")
    assert set(run.scores[0].outer) == {"article"}
    assert len(set(run.scores[0].outer["article"].values())) == 24
    assert not hn.read(path, cluster="article")[0].scores[0].outer


def test_a_job_of_harbor_is_compared_with_the_log_of_its_tasks(canned, tmp_path):
    """As inspect-harbor 1.0 makes samples of tasks: with the instruction, which Harbor's results lack, and the name."""
    samples = [
        canned.Sample(input=f"Solve {i}.", target="yes", id=f"task-{i}", metadata={"task_name": f"task-{i}"})
        for i in range(8)
    ]
    task = canned.task(samples, answer=lambda state: "no" if state.sample_id < "task-4" else "yes")
    (log,) = canned.eval(task, tmp_path / "logs")
    folder = job(tmp_path / "job", [trial(f"task-{i}", k, float(i % 2)) for i in range(8) for k in range(3)])
    (row,) = hn.compare(folder, log.location, columns={"question": "task_name"}).comparisons
    assert (row.n_questions, row.mean_b) == (8, 0.5)

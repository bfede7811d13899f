"""Every Eval Ever: samples are answers, results name the metrics, and both are written with error bars."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import InputError
from harness_noise.cli import main
from harness_noise.extra.testing.adapters import check_adapter
from harness_noise_adapters.extra import demo
from harness_noise_adapters.extra.formats.every_eval_ever import adapter
from support.commands import refused
from support.every_eval_ever_files import result, sample, write
from support.harbor_files import job, trial
from support.notes import noted

DEMO = Path(demo.__file__).with_name("runs")
SCORES = np.arange(24).reshape(12, 2) * 7 % 5 / 4


def samples() -> list[dict]:
    found = [sample(i, SCORES[i, k], k=k + 1) for i in range(12) for k in range(2)]
    found[3] |= {"error": "APITimeoutError", "evaluation": {"score": 0.0, "is_correct": False}}
    return found + [sample(i, i / 12, metric="quiz/brevity", k=1) for i in range(12)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    mean = (SCORES.sum() - SCORES[1, 1]) / 23
    return write(tmp_path, samples(), [result("accuracy", mean), result("brevity", 5.5 / 12, lower_is_better=True)])


def test_what_every_adapter_promises(file: Path, tmp_path: Path) -> None:
    expected = {("quiz", "accuracy", "q0"): SCORES[0], ("quiz", "accuracy", "q1"): [SCORES[1, 0], None]}
    check_adapter(
        adapter,
        file.parent,
        tmp_path / "work",
        cluster="metadata.topic",
        question="input.raw",
        factor="metadata.topic",
        models=["org/sim"],
        expected=expected,
    )


@pytest.mark.parametrize("place", ["file", "samples", "folder"])
def test_results_samples_and_their_folder_are_one_run(file: Path, place: str) -> None:
    where = {"file": file, "samples": file.with_name(f"{file.stem}_samples.jsonl"), "folder": file.parent}[place]
    (run,) = hn.read(where)
    assert [(part.task, part.metric, part.higher_is_better) for part in run.scores] == [
        ("quiz", "accuracy", True),
        ("quiz", "brevity", False),
    ]
    assert all(part.diagnostics == () and part.bounds == (0.0, 1.0) for part in run.scores)
    assert run.scores[0].n_missing == 1


def test_samples_alone_and_results_alone(file: Path) -> None:
    alone = file.with_name(f"{file.stem}_samples.jsonl")
    text = file.read_text()
    file.unlink()
    (run,) = hn.read(alone)
    assert [(part.task, part.metric) for part in run.scores] == [("quiz/accuracy", "score"), ("quiz/brevity", "score")]
    file.write_text(text)
    alone.unlink()
    rows = hn.analyze(file).estimates
    assert [(row.metric, row.mean is None or "skipped_metric" in row.diagnostics) for row in rows] == [
        ("accuracy", True),
        ("brevity", True),
    ]


@pytest.mark.parametrize("n", [1, 4])
def test_a_model_that_is_an_object_is_called_by_its_text(tmp_path: Path, n: int) -> None:
    samples = [sample(i, 1.0, **({"model_id": {"a": 1}} if i < n else {})) for i in range(4)]
    models = [run.model for run in hn.read(write(tmp_path, samples, [result("accuracy", 1.0)]))]
    assert models == ['{"a": 1}', "org/sim"][: 1 + (n < 4)]


def test_metrics_that_cannot_be_told_apart_are_not_pooled(tmp_path: Path) -> None:
    """Samples of two results that say only the task's name, which both results have."""
    found = [sample(i, score, evaluation_result_id=None) for score in (0.0, 1.0) for i in range(4)]
    with pytest.raises(InputError, match="several metrics cannot be told from several answers"):
        hn.read(write(tmp_path, found, [result("accuracy", 0.0), result("brevity", 1.0)]))


@pytest.mark.parametrize("where", [0, 3])
def test_a_line_of_no_result_is_a_missing_answer_and_said(tmp_path: Path, where: int) -> None:
    """lm-eval's converter writes such a line, with the score 0, for a sample without a number."""
    found = [sample(i, 1.0) for i in range(4)]
    found[where:where] = [sample(9, 0.0, evaluation_result_id=None)]
    (run,) = hn.read(file := write(tmp_path, found, [result("accuracy", 1.0)]))
    (part,) = run.scores
    assert (part.task, np.nanmean(part.values), part.n_missing, part.diagnostics) == ("quiz", 1.0, 1, ())
    assert any("1 sample belongs to no result" in note for note in noted(run))
    assert hn.analyze(file, missing="zero").estimates[0].mean == 0.8


def test_a_line_of_no_result_is_missing_only_where_its_evaluation_has_no_score_of_it(tmp_path: Path) -> None:
    """Two metrics of one quiz, of which one scored the sample, and another quiz, which never asked it."""
    scored = [sample(i, 1.0, metric=f"quiz/{name}", k=k) for name in ("a", "b") for i in range(3) for k in (1, 2)]
    del scored[-1]
    other = [sample(i, 1.0, metric="else/a", k=1, evaluation_name="else") for i in range(3)]
    lost = [sample(i, 0.0, k=k, evaluation_result_id=None, error="no room") for i, k in ((2, 2), (7, 1))]
    (run,) = hn.read(write(tmp_path, [*scored, *lost, *other], [result("a", 1.0), result("b", 1.0)]))
    assert {(part.task, part.metric): part.n_missing for part in run.scores} == {
        ("quiz", "a"): 1, ("quiz", "b"): 2, ("else/a", "score"): 0,
    }  # fmt: skip


def test_questions_without_words_are_paired_by_their_hash(tmp_path: Path) -> None:
    """The same number of a sample in another version of the data set is another question."""
    files = []
    for name, of in (("a", str), ("b", lambda i: str(i % 2 * 7 + i))):
        lines = [sample(i, 1.0, input={"raw": ""}, sample_hash=f"hash of {of(i)}") for i in range(4)]
        files.append(write(tmp_path / name, lines, [result("accuracy", 1.0)]))
    (row,) = hn.compare(*files).comparisons
    assert row.n_questions == 2
    assert "unpaired_questions" in row.diagnostics


def test_equal_results_of_other_samples_are_no_run_given_twice(tmp_path: Path) -> None:
    scores = [float(i % 2) for i in range(12)]
    lines = [[sample(i, score, input={"raw": f"{word} {i}"}) for i, score in enumerate(scores)] for word in ("a", "b")]
    files = [write(tmp_path / str(k), each, [result("accuracy", 0.5)]) for k, each in enumerate((*lines, lines[0]))]
    said = [noted(hn.compare(files[0], other, columns={"question": "sample_id"})) for other in files[1:]]
    assert [any("nothing to compare" in note for note in notes) for notes in said] == [False, True]


def test_a_damaged_file_of_a_folder_is_a_note(file: Path) -> None:
    other = file.with_name("other.json")
    other.write_text(json.dumps({"schema_version": "0.3.0", "evaluation_id": "x", "evaluation_results": 3}))
    (run,) = hn.read(file.parent)
    assert any("left out" in note and "other.json" in note for note in noted(run))
    with pytest.raises(InputError, match=r"other\.json"):
        hn.read(file.parent, strict=True)


@pytest.mark.parametrize("value", [10**400, float("nan"), float("inf"), [], "x"])
def test_values_of_the_results_that_are_no_numbers_are_none(file: Path, value: object) -> None:
    found = json.loads(file.read_text())
    first = found["evaluation_results"][0]
    first["score_details"]["score"] = first["metric_config"]["min_score"] = value
    found["evaluation_results"][1]["evaluation_result_id"] = [value]
    file.write_text(json.dumps(found))
    assert hn.read(file)[0].scores[0].native is None
    file.with_name(f"{file.stem}_samples.jsonl").unlink()
    json.loads(hn.analyze(file).to_json(), parse_constant=pytest.fail)


def test_a_wrong_value_of_the_results_is_said(tmp_path: Path) -> None:
    file = write(tmp_path, samples(), [result("accuracy", 0.9)])
    assert "mean_mismatch" in hn.analyze(file).estimates[0].diagnostics


def test_export_fills_the_uncertainty_and_changes_nothing_else(file: Path, tmp_path: Path) -> None:
    row = hn.analyze(file).estimates[0]
    hn.export(file, tmp_path / "out")
    old, new = (json.loads(path.read_text()) for path in (file, tmp_path / "out" / file.name))
    filled = [found["score_details"].pop("uncertainty") for found in new["evaluation_results"]]
    assert new == old
    assert filled[0]["standard_error"]["value"] == row.se
    assert (
        filled[0]["confidence_interval"]["lower"],
        filled[0]["confidence_interval"]["upper"],
    ) == row.confidence_interval
    assert filled[0]["num_samples"] == 12


def test_a_folder_of_runs_is_exported_into_one_of_its_form(tmp_path: Path) -> None:
    """As the datastore lies: data / task / developer / model; two models may have files of one name."""
    files = [write(tmp_path / "all" / name, samples(), [result("accuracy", 0.5)]) for name in ("a", "b")]
    hn.export(tmp_path / "all", tmp_path / "out")
    for file in files:
        new = json.loads((tmp_path / "out" / file.relative_to(tmp_path / "all")).read_text())
        assert new["evaluation_results"][0]["score_details"]["uncertainty"]["num_samples"] == 12


USED = {
    "token_usage": {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100, "input_tokens_cache_write": None,
                    "input_tokens_cache_read": 30, "reasoning_tokens": 4},
    "performance": {"latency_ms": 1500.0, "time_to_first_token_ms": None},
}  # fmt: skip


def test_the_usage_of_a_sample_is_a_measure(tmp_path: Path) -> None:
    none = {"token_usage": None, "performance": {"latency_ms": None}}
    file = write(tmp_path, [sample(i, 1.0, **(USED if i else none)) for i in range(4)], [result("accuracy", 1.0)])
    known = {"input_tokens": 90, "output_tokens": 10, "cache_read_tokens": 30, "reasoning_tokens": 4, "time": 1.5}
    rows = hn.analyze(file, measures=[*known], missing="drop").estimates
    assert {row.metric: (row.mean, row.n_questions) for row in rows} == {name: (x, 3) for name, x in known.items()}
    cost = hn.analyze(file, measures=["cost"], prices=["input=1,output=10,cache_read=0.1"]).estimates[0]
    assert cost.mean == pytest.approx((60 + 3 + 100) / 1e6)


def test_the_usage_that_is_read_has_the_names_of_the_schema() -> None:
    module = pytest.importorskip("every_eval_ever", reason="every-eval-ever is not installed (Python ≥ 3.12)")
    schema = json.loads((Path(module.__file__).parent / "schemas" / "instance_level_eval.schema.json").read_text())
    for part, names in USED.items():
        assert names.keys() <= schema["properties"][part]["properties"].keys()


def test_a_run_of_another_harness_is_written_in_this_format_and_read_again(tmp_path: Path) -> None:
    found = [trial(f"task-{i}", k, float((i + k) % 3 == 0)) for i in range(8) for k in range(2)]
    found[5] |= trial("task-2", 1, None, "VerifierTimeoutError")
    source = job(tmp_path / "job", found)
    assert main(["export", str(source), "--as", "every-eval-ever", "-o", str(tmp_path / "out")]) == 0
    (folder,) = {path.parent for path in (tmp_path / "out").rglob("*.json")}
    before = {path: path.read_bytes() for path in folder.iterdir()}
    ours, theirs = hn.analyze(source).estimates[0], hn.analyze(tmp_path / "out").estimates[0]
    assert (theirs.task, theirs.metric, theirs.n_missing) == (ours.task, ours.metric, 1)
    assert (theirs.mean, theirs.se) == pytest.approx((ours.mean, ours.se))
    hn.export(source, tmp_path / "out", form="every-eval-ever")
    assert before == {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InputError, match="runs can be written as every-eval-ever"):
        hn.export(source, tmp_path / "out", form="csv")


def test_repeats_keep_the_names_that_the_run_gives_them(tmp_path: Path) -> None:
    """Labels of single answers name them, whichever of the two files is read."""
    rows = "".join(f"q{i},{repeat},{(i + repeat) % 2}\n" for i in range(8) for repeat in (10, 0, 2))
    (tmp_path / "m.csv").write_text(f"question,repeat,score\n{rows}")
    hn.export(tmp_path / "m.csv", tmp_path / "out", form="every-eval-ever")
    (ours,), (theirs,) = hn.read(tmp_path / "m.csv"), hn.read(tmp_path / "out")
    assert ours.scores[0].repeat_names == theirs.scores[0].repeat_names == ("0", "2", "10")
    assert np.array_equal(ours.scores[0].values, theirs.scores[0].values)


def test_the_value_that_is_written_is_the_mean_of_the_answers_that_are(tmp_path: Path) -> None:
    """Its error bar is that of all answers, even if lm-eval's own value counts the first ones alone."""
    source = DEMO / "lm-eval" / "sim-a"
    (results,) = (one for one in hn.export(source, tmp_path, form="every-eval-ever").written if one.suffix == ".json")
    (written,) = json.loads(results.read_text())["evaluation_results"]
    (ours,), (theirs,) = hn.analyze(source).estimates, hn.analyze(tmp_path).estimates
    assert written["score_details"]["score"] == ours.mean == pytest.approx(0.625)
    assert written["score_details"]["details"]["score_of_first_answers"] == "0.6"
    assert (theirs.mean, theirs.repeats_max) == (pytest.approx(ours.mean), ours.repeats_max)
    assert "mean_mismatch" not in theirs.diagnostics


def test_its_questions_are_shown_and_it_is_written_anew(file: Path, tmp_path: Path) -> None:
    (run,) = hn.read(file)
    for part, answers in zip(run.scores, (2, 1), strict=True):
        assert len(part.questions.log.read([2], "none")[0].answers) == answers
        assert part.questions.shown()[2] == "What is 2 + 2?"
    (anew,) = {path.parent for path in hn.export(file, tmp_path / "out", form="every-eval-ever").written}
    rows, others = hn.analyze(file).estimates, hn.analyze(anew).estimates
    assert [(row.metric, row.mean, row.se) for row in rows] == [(row.metric, row.mean, row.se) for row in others]


def test_the_project_s_own_validator_takes_what_is_written(file: Path, tmp_path: Path) -> None:
    validate = pytest.importorskip(
        "every_eval_ever.validator.validate", reason="every-eval-ever is not installed (Python ≥ 3.12)"
    )
    hn.export(file, in_place=True)
    assert validate.main([str(path) for path in sorted(file.parent.iterdir())]) == 0
    source = job(tmp_path / "job", [trial(f"task-{i}", k, float((i + k) % 3 == 0)) for i in range(8) for k in range(2)])
    written = hn.export(source, tmp_path / "out", form="every-eval-ever").written
    assert validate.main(list(map(str, written))) == 0


HOSTILE = {
    "cut": '{"schema_version": "0.3.0", "evaluation_id": "x", "sample_id": ',
    "a pointer": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n",
    "another's": '{"evaluation_id": 3, "schema_version": 4}',
    "a word": json.dumps(sample(0, "good")),
    "endless": json.dumps(sample(0, 123.5)).replace("123.5", "9" * 100_000),
    "nulls": json.dumps(dict.fromkeys(sample(0, 1.0))),
    "a list": "[1]",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_damaged_samples_are_refused_in_one_paragraph(
    file: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = file.with_name(f"{file.stem}_samples.jsonl")
    place.write_text(json.dumps(sample(1, 1.0)) + "\n" + HOSTILE[what] + "\n" if what != "a pointer" else HOSTILE[what])
    refused(file, capsys, place.name)


@pytest.mark.parametrize("with_results", [True, False])
def test_a_task_that_the_user_names_is_kept_apart(file: Path, with_results: bool) -> None:
    """Each half of the questions is a task; the mean that a result says is that of both."""
    if not with_results:
        file.unlink()
    (run,) = hn.read(file.parent, columns={"task": "metadata.topic"})
    names = {(part.task, part.metric) for part in run.scores}
    metrics = ("accuracy", "brevity") if with_results else ("quiz/accuracy", "quiz/brevity")
    assert names == {(topic, metric) for topic in "ab" for metric in metrics}
    assert all(part.values.shape[0] == 6 and part.diagnostics == () for part in run.scores)


@pytest.mark.parametrize("spec", ["passage", "t=passage", "passage*kind"])
def test_clusters_that_every_task_has_are_read_back(tmp_path: Path, spec: str) -> None:
    lines = [f"{t},q{i},p{i // 4},k{i % 3},{(i // 4 + i % 3) % 2}" for t in "tu" for i in range(40)]
    (tmp_path / "run.csv").write_text("\n".join(["task,question,passage,kind,score", *lines]))
    hn.export(tmp_path / "run.csv", tmp_path / "out", form="every-eval-ever", cluster=spec)
    whole = hn.analyze(tmp_path / "run.csv", cluster="passage" if spec == "passage" else "none")
    back = {row.task: row for row in hn.analyze(tmp_path / "out").rows}
    for row in whole.rows:
        assert (back[row.task].se, back[row.task].n_clusters) == (pytest.approx(row.se), row.n_clusters)

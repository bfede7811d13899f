"""Formats that are tables in disguise: each is read by its preset, and what cannot be known is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import harness_noise as hn
from harness_noise import InputError
from harness_noise.data.scores import ReadOptions
from harness_noise.extra.testing.adapters import check_adapter
from harness_noise_adapters.tables import adapter
from support import helm_files
from support.notes import noted

FILES = Path(__file__).parent / "formats"
NAN = float("nan")
KNOWN: dict[str, dict[str, Any]] = {
    "promptfoo.json": {
        "models": ["openai:gpt-a", "B"], "question": "testIdx", "cluster": "vars.topic", "factor": "testIdx",
    },
    "openai_evals.jsonl": {
        "models": ["gpt-x"], "question": "sample_id", "cluster": "sample_id",
        "expected": {("capitals.dev.v0", "accuracy", "capitals.dev.1"): [1.0],
                     ("capitals.dev.v0", "accuracy", "capitals.dev.6"): [None],
                     ("capitals.dev.v0", "f1_score", "capitals.dev.3"): [0.75]},
    },
    "deepeval.json": {"models": ["gpt-x"], "question": "input", "cluster": "expectedOutput", "factor": "name",
                      "expected": {}},
    "tau2_bench.json": {
        "models": ["gpt-x (llm_agent)"], "question": "task_id", "factor": "user",
        "expected": {("airline", "reward", "1"): [0.0, 0.0, 1.0], ("airline", "reward", "3"): [1.0, 0.0, None]},
    },
    "langsmith.csv": {"models": ["langsmith"], "question": "example_id", "cluster": "inputs.question"},
    "mlflow.json": {"models": ["mlflow"], "question": "inputs", "cluster": "ground_truth"},
    "braintrust.jsonl": {"models": ["gpt-x"], "question": "input", "cluster": "expected"},
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_each_keeps_what_an_adapter_promises(name: str, tmp_path: Path) -> None:
    check_adapter(adapter, FILES / name, tmp_path / "work", **KNOWN[name])


def means(path: Path, **options: Any) -> dict[tuple[str, str], tuple[float | None, int, int]]:
    """(model, metric) → mean, questions and missing answers."""
    rows = hn.analyze(path, **options).estimates
    return {(row.model, row.metric): (row.mean, row.n_questions, row.n_missing) for row in rows}


def test_names_scores_and_causes() -> None:
    found = means(FILES / "promptfoo.json")
    assert found["openai:gpt-a", "score"] == (pytest.approx(0.5), 6, 0)
    assert found["B", "score"][1:] == (6, 1)
    assert {"score", "tone"} == {metric for _, metric in found}
    (row,) = hn.analyze(FILES / "tau2_bench.json", metrics=["reward"]).estimates
    assert (row.missing, row.task) == ({"infrastructure": 1}, "airline")
    run = hn.read(FILES / "deepeval.json")[0]
    assert {part.metric: dict(part.missing) for part in run.scores} == {
        "Answer Relevancy": {}, "Tone [GEval]": {"verifier": 1}, "success": {},
    }  # fmt: skip
    assert run.harness == "deepeval"
    assert means(FILES / "langsmith.csv")["langsmith", "correctness"][2] == 1
    assert [item.metric for item in hn.read(FILES / "langsmith.csv")[0].skipped] == ["note"]
    assert means(FILES / "mlflow.json") == {
        ("mlflow", "correctness"): (pytest.approx(4 / 7), 7, 0),
        ("mlflow", "exact_match"): (pytest.approx(3 / 7), 7, 0),
    }
    assert means(FILES / "braintrust.jsonl")["gpt-x", "Factuality"] == (pytest.approx(11 / 24), 6, 1)


def test_the_format_s_own_mean_is_verified(tmp_path: Path) -> None:
    """An error that promptfoo counts as 0 is no mismatch; another mean is, and OpenAI evals leaves errors out."""
    for name in ("promptfoo.json", "openai_evals.jsonl", "deepeval.json"):
        for options in ({}, {"missing": "zero"}):
            if (name, options) != ("openai_evals.jsonl", {"missing": "zero"}):
                rows = hn.analyze(FILES / name, **options).estimates
                assert not [row for row in rows if "mean_mismatch" in row.diagnostics], name
    natives = {part.metric: part.native for part in hn.read(FILES / "openai_evals.jsonl")[0].scores}
    assert natives == {"accuracy": pytest.approx(5 / 7), "score": None, "f1_score": pytest.approx(2.5 / 7)}
    assert hn.read(FILES / "promptfoo.json", missing="zero")[1].scores[0].native == pytest.approx(6.5 / 12)
    _, b = hn.read(FILES / "promptfoo.json")
    assert b.scores[0].native is None  # it is of other answers than the mean of those that have a score
    assert means(FILES / "promptfoo.json")["B", "score"][0] == pytest.approx(7.5 / 12)
    path = tmp_path / "log.jsonl"
    path.write_text((FILES / "openai_evals.jsonl").read_text().replace('"accuracy": 0.7142', '"accuracy": 0.8142'))
    assert "mean_mismatch" in hn.analyze(path).estimates[0].diagnostics
    run = json.loads((FILES / "deepeval.json").read_text())
    for whole in (run, {"testRunData": run}):  # a saved run, and the latest one
        for passed, odd in ((4, False), (5, True)):
            run |= {"testPassed": passed, "testFailed": 12 - passed}
            path = tmp_path / "run.json"
            path.write_text(json.dumps(whole))
            rows = {row.metric: row for row in hn.analyze(path).estimates}
            assert ("mean_mismatch" in rows["success"].diagnostics) == odd


def changed(tmp_path: Path, name: str, change: Callable[[Any], Any]) -> Path:
    """A file of the folder with its JSON changed."""
    path = tmp_path / name
    if name.endswith(".jsonl"):
        rows = [json.loads(line) for line in (FILES / name).read_text().splitlines()]
        path.write_text("".join(json.dumps(row) + "\n" for row in change(rows) or rows))
    else:
        data = json.loads((FILES / name).read_text())
        path.write_text(json.dumps(change(data) or data))
    return path


def test_promptfoo_without_vars_is_refused(tmp_path: Path) -> None:
    """Tests cannot be told from their repeats; a description does."""

    def stripped(data: Any) -> None:
        for row in data["results"]["results"]:
            row["vars"], row["testCase"]["vars"] = {}, {}

    def described(data: Any) -> None:
        stripped(data)
        for row in data["results"]["results"]:
            row["testCase"]["description"] = row["prompt"]["raw"]

    with pytest.raises(InputError, match=r"entry 1: promptfoo left out the `vars`.*PROMPTFOO_STRIP_TEST_VARS.*testIdx"):
        hn.read(changed(tmp_path, "promptfoo.json", stripped))
    run, _ = hn.read(changed(tmp_path, "promptfoo.json", described))
    assert run.scores[0].values.shape == (6, 2)
    run, _ = hn.read(changed(tmp_path, "promptfoo.json", stripped), columns={"question": "testIdx"})
    assert run.scores[0].values.shape == (12, 1)


def test_promptfoo_prompts_are_conditions_of_one_model(tmp_path: Path) -> None:
    """Two prompts: the answers to a question are repeats that share a prompt; one prompt leaves their order."""

    def two(data: Any) -> None:
        rows = data["results"]["results"]
        data["results"]["results"] = [row | {"promptId": f"p{j}"} for j in range(2) for row in rows]

    run, _ = hn.read(changed(tmp_path, "promptfoo.json", two))
    assert (run.scores[0].values.shape, run.scores[0].repeats_named) == ((6, 4), "promptId")
    assert hn.read(FILES / "promptfoo.json")[0].scores[0].repeats_named is None
    models = hn.read(changed(tmp_path, "promptfoo.json", two), columns={"model": "promptId"})
    assert [run.model for run in models] == ["p0", "p1"]


def test_promptfoo_tests_that_differ_in_what_they_assert_are_two_questions(tmp_path: Path) -> None:
    def other(data: Any) -> None:
        data["results"]["results"][0]["testCase"]["assert"][0]["value"] = "another"

    run, _ = hn.read(changed(tmp_path, "promptfoo.json", other))
    assert len(run.scores[0].questions) == 7


def test_tau2_s_trials_share_their_seed_and_user(tmp_path: Path) -> None:
    analysis = hn.analyze(FILES / "tau2_bench.json", metrics=["reward"])
    assert "shared_repeat_noise" in analysis.estimates[0].diagnostics
    assert any("repeats_are='runs'" in note and "trial" in note for note in noted(analysis))
    runs = hn.analyze(FILES / "tau2_bench.json", metrics=["reward"], repeats_are="runs")
    assert "shared_repeat_noise" not in runs.estimates[0].diagnostics

    def indexed(data: Any) -> None:
        keep = ("id", "task_id", "trial", "termination_reason")
        data["simulation_index"] = [
            {name: row[name] for name in keep} | {"reward": (row["reward_info"] or {}).get("reward")}
            for row in data.pop("simulations")
        ]

    voice = hn.read(changed(tmp_path, "tau2_bench.json", indexed))[0]
    text = hn.read(FILES / "tau2_bench.json")[0]
    assert np.array_equal(voice.scores[0].values, text.scores[0].values, equal_nan=True)
    assert voice.scores[0].missing == text.scores[0].missing


def test_two_runs_in_one_openai_log_are_refused(tmp_path: Path) -> None:
    def twice(rows: Any) -> Any:
        return [*rows, {"spec": rows[0]["spec"] | {"run_id": "OTHER"}}, *rows[1:]]

    with pytest.raises(InputError, match=r"a second 'spec': two runs in one file\. Split it"):
        hn.read(changed(tmp_path, "openai_evals.jsonl", twice))


def test_a_line_that_nobody_asks_for_is_told_by_its_own_kind(tmp_path: Path) -> None:
    """Other keys before `type`, an object before it, blanks: what is read does not depend on how a line is written."""
    whole = hn.read(FILES / "openai_evals.jsonl")[0].scores[0].values

    def written(rows: Any) -> Any:
        pad = {"note": "x" * 600, "nested": {"type": "sampling", "b": [1]}}
        return [rows[0], *({**pad, **row} if i % 2 else {**row, **pad} for i, row in enumerate(rows[1:-1])), rows[-1]]

    path = changed(tmp_path, "openai_evals.jsonl", written)
    assert np.array_equal(hn.read(path)[0].scores[0].values, whole, equal_nan=True)
    for old, new in (('"type": ', '"type":'), ('"type": ', '"type"  :  ')):
        path.write_text((FILES / "openai_evals.jsonl").read_text().replace(old, new))
        assert np.array_equal(hn.read(path)[0].scores[0].values, whole, equal_nan=True)


@pytest.mark.parametrize("lost", [False, True])
def test_a_line_that_nobody_asks_for_needs_no_question(tmp_path: Path, lost: bool) -> None:
    """Alike where all other lines are plain, and where one is not."""
    events: list[dict[str, Any]] = [
        {"sample_id": f"s{i}", "type": "match", "data": {"correct": i < 2}} for i in range(4)
    ]
    events += [
        {"type": "raw_sample", "data": {}},
        *([{"sample_id": "s9", "type": "error", "data": {}}] if lost else []),
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [{"spec": {"eval_name": "sums"}}, *events]))
    (part,) = hn.read(path)[0].scores
    assert (np.nansum(part.values), len(part.questions), part.n_missing) == (2, 4 + lost, lost)


def test_a_folder_of_several_runs(tmp_path: Path) -> None:
    for name in ("a", "b"):
        text = (FILES / "tau2_bench.json").read_text().replace('"gpt-x"', f'"gpt-{name}"')
        (tmp_path / f"{name}.json").write_text(text)
    (tmp_path / "cut.json").write_text((FILES / "tau2_bench.json").read_text()[:3000])
    runs = hn.read(tmp_path)
    assert [run.model for run in runs] == ["gpt-a (llm_agent)", "gpt-b (llm_agent)"]
    assert any("cut.json" in note for run in runs for note in noted(run))
    assert hn.compare(tmp_path / "a.json", tmp_path / "b.json").comparisons[0].diff == 0


def test_tables_in_folders_of_a_folder_are_found(tmp_path: Path) -> None:
    for model, right in (("a", 7), ("b", 3)):
        place = tmp_path / "experiments" / model / "deep"
        place.mkdir(parents=True)
        rows = [f"{model},q{i},{float(i < right)}" for i in range(10)]
        (place / f"{model}.csv").write_text("\n".join(["model,question,score", *rows]))
        (place / "notes.txt").write_text("nothing")
    folder = tmp_path / "experiments"
    helm_files.run(folder / "helm")  # whose files are lists of objects, and no tables
    assert [run.model for run in hn.read(folder)] == ["org/sim", "a", "b"]
    shutil.rmtree(folder / "helm")
    (row,) = hn.compare(folder).comparisons
    assert (row.n_questions, row.diff) == (10, pytest.approx(0.4))
    assert {row.model for row in hn.arena(folder).models} == {"a", "b"}


def test_fields_factors_and_texts(tmp_path: Path) -> None:
    analysis = hn.analyze(FILES / "promptfoo.json", by=["vars.topic"], metrics=["score"])
    assert {row.slice for row in analysis.slices} == {"a", "b"}
    factors = hn.read(FILES / "tau2_bench.json", factors=["user"])[0].scores[0].factors
    assert factors is not None
    assert factors["user"][0][0] == "gpt-u"
    questions = hn.read(FILES / "deepeval.json")[0].scores[0].questions
    assert questions.texts is not None
    assert questions.texts[0] == "question 0"
    assert questions.log is not None
    (told,) = questions.log.read([1], "none")
    assert (told.text, told.target, told.answers) == ("question 1", "target 1", ("answer 0", "answer 1"))


OWN = """
[mine]
reads = "my harness"
rows = "runs.items"
when = ["@tool", "out.verdict"]
question = "ref.key"
model = "@tool.model"
repeat = "try"
score = [{ path = "out.verdict", metric = "verdict" }]
missing = [{ cause = "infrastructure", where = { "out.status" = ["lost", "late"] } }]
"""


def own_file(folder: Path, **change: Any) -> Path:
    items = [
        {"ref": {"key": f"q{i}"}, "try": k, "out": {"verdict": ("pass", "fail")[(i + k) % 2], "status": "done"}}
        for i in range(4) for k in range(2)
    ]  # fmt: skip
    items[3]["out"]["status"] = "late"
    path = folder / "own.json"
    path.write_text(json.dumps({"tool": {"model": "m"}, "runs": {"items": items}} | change))
    return path


def test_a_format_of_one_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    formats, path = tmp_path / "formats.toml", own_file(tmp_path)
    formats.write_text(OWN)
    run = hn.read(path, format_file=formats)[0]
    assert (run.model, run.harness, run.scores[0].metric) == ("m", "mine", "verdict")
    assert np.array_equal(run.scores[0].values, [[1, 0], [0, NAN], [1, 0], [0, 1]], equal_nan=True)
    assert hn.adapters(formats)["mine"] == "my harness"
    assert "mine" not in hn.adapters()
    folder = tmp_path / "config" / "harness-noise"
    folder.mkdir(parents=True)
    formats.rename(folder / "formats.toml")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert hn.read(path)[0].harness == "mine"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[mine", "not TOML"),
        ("mine = 1", r"\[mine\]: is no table"),
        ('[mine]\nquestion = "q"\nscore = "s"', "neither `when`"),
        ('[mine]\nwhen = "a"\nquestion = "q"\nscore = "s"\nrow = "a"', "'row' is not known. There are"),
        ('[mine]\nwhen = "a"\nquestion = "q"', "score"),
        ('[mine]\nwhen = "a"\nquestion = "q"\nscore = [{ metric = "m" }]', "path"),
        ('[mine]\nwhen = "a"\nquestion = "q"\nscore = "s"\nmissing = [{ cause = "sun", where = { a = 1 } }]', "sun"),
        (
            '[mine]\nwhen = "a"\nquestion = "q"\nscore = "s"\nmissing = [{ cause = "agent", where = {} }]',
            "says nothing",
        ),
    ],
)
def test_a_file_of_formats_that_cannot_be_used(tmp_path: Path, text: str, words: str) -> None:
    formats = tmp_path / "formats.toml"
    formats.write_text(text)
    with pytest.raises(InputError, match=words):
        hn.read(own_file(tmp_path), format_file=formats)
    with pytest.raises(InputError, match=r"nowhere\.toml: cannot be read"):
        hn.read(own_file(tmp_path), format_file=tmp_path / "nowhere.toml")


INDEXED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "helm.json": (
        [{"instance_id": f"id{i}", "train_trial_index": i % 2, "stats": [{"mean": 1.0}]} for i in range(9)],
        "no column holds the scores",
    ),
    "prompts.json": ([{"promptIdx": 0, "score": i % 2, "out": f"text {i} of it"} for i in range(30)], "which question"),
    "tries.json": ([{"question": f"q{i}", "try": i % 2, "out": {"verdict": "pass"}} for i in range(9)], "out.verdict"),
    "one.json": ([{"question": "q0", "score": i % 2} for i in range(30)], "hardly names the questions"),
}


@pytest.mark.parametrize("name", INDEXED)
def test_an_index_is_never_the_question_or_the_score(tmp_path: Path, name: str) -> None:
    path, (rows, words) = tmp_path / name, INDEXED[name]
    path.write_text(json.dumps(rows))
    with pytest.raises(InputError, match=words) as raised:
        hn.read(path)
    for index in ("train_trial_index", "event_id", "promptIdx", "try"):
        assert f": '{index}'" not in str(raised.value)


def test_words_that_are_no_verdicts_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text("question,score\nq1,pass\nq2,perhaps\nq3,unclear\nq4,C\n")
    with pytest.raises(InputError, match=r"'perhaps'.*'unclear'"):
        hn.read(path)
    path.write_text("question,score\nq1,resolved\nq2,unresolved\nq3,C\nq4,P\nq5,N\nq6,yes\n")
    assert hn.read(path)[0].scores[0].values.ravel().tolist() == [1, 0, 1, 0.5, 0, 1]


def test_sniff_asks_no_format(tmp_path: Path) -> None:
    assert all(adapter.sniff(FILES / name) for name in KNOWN)
    assert adapter.read(FILES / "mlflow.json", ReadOptions())[0].harness == "mlflow"


def test_scores_of_two_scales_are_told(tmp_path: Path) -> None:
    """A range that a format knows is left out where a score lies beyond it, and not without a word."""
    run = json.loads((FILES / "tau2_bench.json").read_text())
    run["simulations"][0]["reward_info"]["reward"] = 50
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert sum("shares among percentages" in note for note in noted(hn.analyze(tmp_path / "run.json"))) == 1
    assert not [note for note in noted(hn.analyze(FILES / "tau2_bench.json")) if "percentages" in note]
    for scores, odd in (([50, 75, 100, 1], False), ([0.5, 75, 100, 1], True), ([0.5, 0.75, 0, 1], False)):
        frame = pd.DataFrame({"question": ["a", "b", "c", "d"], "accuracy": scores})
        notes = noted(hn.analyze(frame, columns={"score": "accuracy"}))
        assert any("percentages?" in note for note in notes) == odd


def test_a_provider_of_promptfoo_may_be_a_word(tmp_path: Path) -> None:
    run = json.loads((FILES / "promptfoo.json").read_text())
    for row in run["results"]["results"]:
        row["provider"] = row["provider"].get("label") or row["provider"]["id"]
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert means(tmp_path / "run.json") == means(FILES / "promptfoo.json")


def test_rows_of_a_format_without_any_score_are_refused(tmp_path: Path) -> None:
    def bare(rows: Any) -> Any:
        return [row | {"scores": None} for row in rows]

    with pytest.raises(InputError, match="there is no score in it"):
        hn.read(changed(tmp_path, "braintrust.jsonl", bare))

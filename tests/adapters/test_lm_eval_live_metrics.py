"""Live lm-eval runs of tasks whose value is no mean of first answers: votes, pass@k, code of a task's own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from support.notes import noted

pytest.importorskip("lm_eval")
from lm_eval.api import metrics as lm_eval_metrics

from harness_noise_adapters.lm_eval_harness import noise
from support import lm_eval_models as toys
from support.lm_eval_live import estimate, native_part, scores

# ---- tasks whose native value uses all repeats ----
VOTE = [
    {
        "name": "maj",
        "filter": [{"function": "remove_whitespace"}, {"function": "majority_vote"}, {"function": "take_first"}],
    }
]


@pytest.mark.parametrize("own", [1, 4])
def test_majority_vote_keeps_its_native_value(tmp_path: Path, own: int) -> None:
    base = toys.GENERATE | {"filter_list": VOTE}
    toys.write_task(tmp_path, "vote", toys.docs(12), base, repeats=own)
    plain = toys.simple_evaluate(tmp_path, ["vote"])
    with noise(repeats=7) as session:
        noisy = toys.simple_evaluate(tmp_path, ["vote"])
    assert native_part(noisy) == native_part(plain)
    found = estimate(session, "vote", scorer="maj")
    assert found.repeats_max == 7
    assert "mean_mismatch" not in found.diagnostics
    assert noisy["results"]["vote"]["exact_match_avg,maj"] == found.mean
    rows = noisy["samples"]["vote"]
    expected = np.array([[float(a.strip() == row["doc"]["answer"]) for a in row["resps"][0]] for row in rows])
    assert found.mean == pytest.approx(expected.mean())
    first = expected[:, 0].mean()
    native = noisy["results"]["vote"]["exact_match,maj"]
    voted = any("majority vote" in note for note in noted(session.analysis))
    assert voted is (own > 1)
    if voted:
        (note,) = [note for note in noted(session.analysis) if "majority vote" in note]
        assert f"the first {own} of the 7 answers" in note
        assert note.endswith("of all 7 (avg@7)")
    assert bool(native == pytest.approx(first)) is (own == 1)


def test_a_tasks_own_repeats_are_never_lowered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    toys.write_task(tmp_path, "many", toys.docs(12), repeats=6)
    model = toys.HashModel()
    with noise(repeats=2) as session:
        toys.simple_evaluate(tmp_path, ["many"], model)
    assert model.calls == [72]
    assert estimate(session, "many").repeats_max == 6
    assert "the task itself asks 6 times" in caplog.text


PASS_AT = """
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_text: "Q: {{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
unsafe_code: {unsafe}
repeats: {repeats}
generation_kwargs: {{until: ["\\n"], do_sample: true, temperature: 0.7}}
process_results: !function scoring.process
filter_list:
  - name: all
    filter: [{filter}]
metric_list:
  - {{metric: pass@1, aggregation: !function scoring.average, higher_is_better: true}}
  {more}
"""

SCORING = """
import os
RUN = os.path.join(os.path.dirname(__file__), "run.txt")
def average(items):
    return sum(items) / len(items)
def keep(resps, docs):
    return [list(answers) for answers in resps]
def process(doc, results):
    answers = results[0] if isinstance(results[0], list) else results
    with open(RUN, "a") as file:
        file.write(f"{len(answers)}\\n")
    right = sum(answer.strip() == doc["answer"] for answer in answers)
    out = {"pass@1": right / len(answers)}
    if NEEDS_TWO:
        if len(answers) < 2:
            raise ValueError("k > n")
        out["pass@2"] = float(right > 0)
    return out
"""


def pass_at(folder: Path, name: str, own: int, *, unsafe: bool, two: bool = False) -> None:
    data = folder / f"{name}.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in toys.docs(12)))
    more = "- {metric: pass@2, aggregation: !function scoring.average, higher_is_better: true}" if two else ""
    keep = "{function: custom, filter_fn: !function scoring.keep}"
    first = f"{{function: take_first_k, k: {own}}}"
    text = PASS_AT.format(
        name=name, data=data, unsafe=str(unsafe).lower(), repeats=own, more=more, filter=first if two else keep
    )
    (folder / f"{name}.yaml").write_text(text)
    (folder / "scoring.py").write_text(SCORING.replace("NEEDS_TWO", str(two)))


def answers_scored(folder: Path) -> int:
    return sum(map(int, (folder / "run.txt").read_text().split()))


@pytest.mark.parametrize("own", [1, 4])
def test_model_code_is_run_once_for_every_answer(tmp_path: Path, own: int) -> None:
    pass_at(tmp_path, "code", own, unsafe=True)
    with noise(repeats=6) as session:
        results = toys.simple_evaluate(tmp_path, ["code"], confirm_run_unsafe_code=True)
    assert session.problems == []
    assert answers_scored(tmp_path) == 12 * 6
    found = scores(session, "code", "pass@1", "all").values
    expected = np.array(
        [[float(a.strip() == row["doc"]["answer"]) for a in row["resps"][0]] for row in results["samples"]["code"]]
    )
    np.testing.assert_array_equal(found[:, :own].sum(axis=1), expected[:, :own].sum(axis=1))
    np.testing.assert_array_equal(found[:, own:], expected[:, own:])
    assert "mean_mismatch" not in estimate(session, "code", "pass@1", "all").diagnostics


def test_pass_at_k_is_taken_from_the_native_list(tmp_path: Path) -> None:
    pass_at(tmp_path, "code", 4, unsafe=False, two=True)
    with noise(repeats=6) as session:
        results = toys.simple_evaluate(tmp_path, ["code"])
    one = scores(session, "code", "pass@1", "all")
    assert one.values.shape == (12, 4)
    assert one.values.mean() == pytest.approx(results["results"]["code"]["pass@1,all"])
    two = estimate(session, "code", "pass@2", "all")
    assert "uses_all_repeats" in two.diagnostics
    assert "single_repeat" not in two.diagnostics
    assert two.se_prediction is None
    assert two.mean == pytest.approx(results["results"]["code"]["pass@2,all"])
    assert any("cannot be scored answer by answer" in note for note in noted(session.analysis))


# ---- metrics that are not means, and missing scores ----
ODD = """
task: odd
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_text: "Q: {{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n"], do_sample: true, temperature: 0.7}}
process_results: !function odd_scoring.process
metric_list:
  - {{metric: right, aggregation: !function odd_scoring.average, higher_is_better: true}}
  - {{metric: pair, aggregation: !function odd_scoring.pairs, higher_is_better: true}}
  - {{metric: middle, aggregation: median, higher_is_better: true}}
  - {{metric: word, aggregation: !function odd_scoring.longest, higher_is_better: true}}
  - {{metric: holes, aggregation: nanmean, higher_is_better: true}}
  - {{metric: some, aggregation: mean, higher_is_better: false}}
  - {{metric: flag, aggregation: mean, higher_is_better: true}}
"""

ODD_SCORING = """
def average(items):
    return sum(items) / len(items)
def pairs(items):
    return sum(a == b for a, b in items) / len(items)
def longest(items):
    return max(map(len, items))
def process(doc, results):
    right = float(results[0].strip() == doc["answer"])
    out = {"right": right, "pair": (doc["answer"], results[0]), "middle": right, "word": results[0],
           "holes": float("nan") if doc["label"] and doc["question"].startswith("Item 3 ") else right,
           "flag": bool(right)}
    if not doc["question"].startswith("Item 4 "):
        out["some"] = right
    return out
"""


def test_metrics_of_all_kinds(tmp_path: Path) -> None:
    data = tmp_path / "odd.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in toys.docs(12)))
    (tmp_path / "odd.yaml").write_text(ODD.format(data=data))
    (tmp_path / "odd_scoring.py").write_text(ODD_SCORING)
    with noise(repeats=3) as session:
        results = toys.simple_evaluate(tmp_path, ["odd"])
    assert session.problems == []
    run = session.collected.run
    of_values = lm_eval_metrics.median([3, 1, 2]) == 2  # before 0.4.12 it is the middle row of the file
    assert [item.metric for item in run.corpus] == (["pair", "middle", "word"] if of_values else ["pair", "word"])
    assert ["another order" in item.reason for item in run.skipped] == [True] * (not of_values)
    for item in run.corpus:
        whole = estimate(session, "odd", item.metric, "none")
        by_hand = [item.aggregate([doc[k] for doc in item.records]) for k in range(3)]
        assert whole.mean == pytest.approx(np.mean(by_hand))
        assert by_hand[0] == results["results"]["odd"][f"{item.metric},none"]
        assert "mean_mismatch" not in whole.diagnostics
    right = scores(session, "odd", "right", "none").values
    assert right.shape == (12, 3)
    np.testing.assert_array_equal(scores(session, "odd", "flag", "none").values, right)
    holes = scores(session, "odd", "holes", "none")
    assert np.isnan(holes.values[3]).all()
    assert holes.n_missing == 3
    some = scores(session, "odd", "some", "none")
    assert np.isnan(some.values[4]).all()
    assert some.higher_is_better is False
    assert estimate(session, "odd", "some", "none").mean == pytest.approx(np.delete(right, 4, axis=0).mean())
    # what is not a mean keeps its values per repeat within reach
    raw = session.collected.tasks["odd"].filters["none"].values["pair"]
    assert [len(doc) for doc in raw] == [3] * 12
    assert raw[0][1] == ("5", results["samples"]["odd"][0]["resps"][0][1])
    third = results["samples"]["odd"][3]["scores_per_repeat"]
    assert third["holes"] == [None] * 3
    assert set(third) == {"right", "holes", "some", "flag"} | {item.metric for item in run.corpus}
    json.dumps(results["noise"], allow_nan=False)


def test_a_first_repeat_that_is_scored_otherwise_is_reported(tmp_path: Path) -> None:
    data = tmp_path / "odd.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in toys.docs(12)))
    (tmp_path / "odd.yaml").write_text(
        ODD.format(data=data).split("metric_list:")[0].replace("odd_scoring", "moody")
        + "metric_list:\n  - {metric: right, aggregation: mean, higher_is_better: true}\n"
    )
    (tmp_path / "moody.py").write_text(
        "calls = []\ndef process(doc, results):\n    calls.append(1)\n    return {'right': float(len(calls) <= 12)}\n"
    )
    with noise(repeats=2) as session:
        results = toys.simple_evaluate(tmp_path, ["odd"])
    assert results["results"]["odd"]["right,none"] == 1.0
    assert "mean_mismatch" in estimate(session, "odd", "right", "none").diagnostics
    assert any("the first repeat is not what lm-eval scored (right)" in note for note in noted(session.analysis))


TWO_REQUESTS = '''
from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask

class Task(ConfigurableTask):
    """Like squadv2: an answer, and the likelihood of another, for every question."""
    def __init__(self, config=None):
        super().__init__(config={key: value for key, value in config.items() if key != "class"})
    def construct_requests(self, doc, ctx, **kwargs):
        for name in ("apply_chat_template", "chat_template"):
            kwargs.pop(name, None)
        return [
            Instance("generate_until", doc, (ctx, dict(self.config.generation_kwargs)), 0, **kwargs),
            Instance("loglikelihood", doc, (ctx, " unanswerable"), 0, **kwargs),
        ]
    def process_results(self, doc, results):
        answer, (likelihood, _) = results
        return {"right": float(answer.strip() == doc["answer"]), "likelihood": likelihood}
    def aggregation(self):
        return {name: lambda items: sum(items) / len(items) for name in ("right", "likelihood")}
    def higher_is_better(self):
        return {"right": True, "likelihood": False}
'''


def test_a_class_task_with_two_kinds_of_requests(tmp_path: Path) -> None:
    data = tmp_path / "two.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in toys.docs(12)))
    text = ODD.format(data=data).split("process_results:")[0]
    (tmp_path / "two.yaml").write_text(text.replace("task: odd", "task: two\nclass: !function twofold.Task"))
    (tmp_path / "twofold.py").write_text(TWO_REQUESTS)
    plain = toys.simple_evaluate(tmp_path, ["two"])
    with noise(repeats=4, cluster="template") as session:
        noisy = toys.simple_evaluate(tmp_path, ["two"])
    assert session.problems == []
    assert native_part(noisy) == native_part(plain)
    rows = noisy["samples"]["two"]
    assert [[len(answers) for answers in row["resps"]] for row in rows] == [[4, 1]] * 12
    expected = [[float(answer.strip() == row["doc"]["answer"]) for answer in row["resps"][0]] for row in rows]
    np.testing.assert_array_equal(scores(session, "two", "right", "none").values, expected)
    likelihood = scores(session, "two", "likelihood", "none").values
    np.testing.assert_array_equal(likelihood, np.repeat([[row["resps"][1][0][0]] for row in rows], 4, axis=1))
    assert "identical_scores_only" in estimate(session, "two", "likelihood", "none").diagnostics
    assert "identical_repeats" not in estimate(session, "two", "right", "none").diagnostics

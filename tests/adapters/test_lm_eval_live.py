"""Live lm-eval runs with the noise on: real lm-eval, simulated models, local tasks."""

from __future__ import annotations

import copy
import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lm_eval")
sys.path.insert(0, str(Path(__file__).parent))

import lm_eval_models as toys
from lm_eval import evaluator
from lm_eval.utils import make_table

import harness_noise as hn
import harness_noise.analysis.mean
import harness_noise.data.scores
from harness_noise.errors import InputError
from harness_noise.results.schema import json_schema
from harness_noise_adapters.lm_eval_harness import noise
from harness_noise_adapters.lm_eval_harness.files import native_block as inject
from harness_noise_adapters.lm_eval_harness.live import collect, hook, repeats
from harness_noise_adapters.lm_eval_harness.scoring import rescore

K = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks")
    toys.write_task(path, "gen", toys.docs(12))
    toys.write_task(path, "gen_large", toys.docs(24, per_template=4, start=100))
    toys.write_task(path, "choice", toys.docs(12), toys.CHOICE)
    by_size = {"metric": "exact_match", "weight_by_size": True, "filter_list": ["strict", "flexible"]}
    toys.write_group(path, "inner", ["gen", "gen_large"], [by_size])
    toys.write_group(path, "outer", ["inner", "choice"], [by_size | {"weight_by_size": False}])
    toys.write_group(path, "plain", ["gen", "gen_large"], [{"metric": "exact_match", "filter_list": ["strict"]}])
    return path


def estimate(session: hook.Session, task: str, metric: str = "exact_match", scorer: str = "strict") -> Any:
    assert session.analysis is not None, session.problems
    (found,) = [
        item for item in session.analysis.estimates if (item.task, item.metric, item.scorer) == (task, metric, scorer)
    ]
    return found


def scores(session: hook.Session, task: str, metric: str = "exact_match", scorer: str = "strict") -> Any:
    assert session.collected is not None, session.problems
    (found,) = [
        item for item in session.collected.run.scores if (item.task, item.metric, item.scorer) == (task, metric, scorer)
    ]
    return found


def native_part(results: dict[str, Any]) -> dict[str, Any]:
    """What lm-eval itself said, without times and without what K changes in the record of the run."""
    out = {
        key: copy.deepcopy(value)
        for key, value in results.items()
        if key not in ("date", "git_hash", "samples", "noise")
    }
    for table in ("results", "groups"):
        for row in out.get(table, {}).values():
            for key in [k for k in row if re.search(r"_(total|data|prediction|clustered)_stderr,|_avg(_stderr)?,", k)]:
                del row[key]
    for arrows in out["higher_is_better"].values():
        for key in [key for key in arrows if key.endswith("_avg")]:
            del arrows[key]
    for config in out["configs"].values():
        config.pop("repeats", None)
    for name, rows in results.get("samples", {}).items():
        out.setdefault("samples", {})[name] = [
            {key: value for key, value in row.items() if key not in ("resps", "scores_per_repeat", "cluster")}
            | {"first": [answers[0] for answers in row["resps"]]}
            for row in rows
        ]
    return out


@pytest.mark.parametrize("model", [toys.HashModel, toys.StatefulModel])
def test_native_values_stay_to_the_last_digit(folder: Path, model: type) -> None:
    tasks = ["outer"]
    plain = toys.simple_evaluate(folder, tasks, model())
    with noise(repeats=K, cluster="template") as session:
        noisy = toys.simple_evaluate(folder, tasks, model())
    assert session.problems == []
    assert native_part(noisy) == native_part(plain)
    assert [len(row["resps"][0]) for row in noisy["samples"]["gen"]] == [K] * 24
    assert noisy["configs"]["gen"]["repeats"] == K


def test_off_means_off(folder: Path) -> None:
    before = evaluator.evaluate
    with noise(repeats=2):
        assert evaluator.evaluate is not before
        with noise() as inner:
            toys.simple_evaluate(folder, ["gen"])
        assert inner.analysis is not None
    assert evaluator.evaluate is before
    results = toys.simple_evaluate(folder, ["gen"], log_samples=False)
    assert "noise" not in results
    assert "samples" not in results


def test_samples_are_not_added_when_they_were_not_asked_for(folder: Path) -> None:
    with noise(repeats=3) as session:
        results = toys.simple_evaluate(folder, ["gen"], log_samples=False)
    assert "samples" not in results
    assert estimate(session, "gen").repeats_max == 3


def right(answer: str, truth: str, scorer: str) -> float:
    """The two filters of the toy task, in other words than lm-eval's."""
    if scorer == "strict":
        found = re.fullmatch(r" ?(-?\d+)", answer)
        return float(found is not None and found[1] == truth)
    numbers = re.findall(r"-?\d+", answer)
    return float(bool(numbers) and numbers[-1] == truth)


@pytest.mark.parametrize("scorer", ["strict", "flexible"])
def test_scores_per_repeat_are_right(folder: Path, scorer: str) -> None:
    with noise(repeats=K, cluster="template") as session:
        results = toys.simple_evaluate(folder, ["gen"])
    rows = [row for row in results["samples"]["gen"] if row["filter"] == scorer]
    expected = np.array([[right(answer, row["doc"]["answer"], scorer) for answer in row["resps"][0]] for row in rows])
    found = scores(session, "gen", scorer=scorer)
    np.testing.assert_array_equal(found.values, expected)
    assert [row["scores_per_repeat"] for row in rows] == [{"exact_match": list(line)} for line in expected]
    assert [row["cluster"] for row in rows] == [row["doc"]["template"] for row in rows]
    ours = estimate(session, "gen", scorer=scorer)
    theirs = hn.estimate(expected, clusters=[row["doc"]["template"] for row in rows])
    assert (ours.mean, ours.se, ours.se_data, ours.se_prediction) == pytest.approx(
        (theirs.mean, theirs.se, theirs.se_data, theirs.se_prediction), abs=1e-15
    )
    assert "mean_mismatch" not in ours.diagnostics
    row = results["results"]["gen"]
    assert row[f"exact_match_avg,{scorer}"] == expected.mean()
    assert row[f"exact_match_avg_stderr,{scorer}"] == ours.se == row[f"exact_match_clustered_stderr,{scorer}"]
    assert row[f"exact_match_total_stderr,{scorer}"] == ours.se_total
    assert row[f"exact_match_data_stderr,{scorer}"] == ours.se_data
    assert row[f"exact_match_prediction_stderr,{scorer}"] == ours.se_prediction


def test_filters_differ(folder: Path) -> None:
    """The two filters must not be merged: some answers are right for one only."""
    with noise(repeats=K) as session:
        toys.simple_evaluate(folder, ["gen_large"], toys.HashModel(seed=1))
    strict, flexible = (scores(session, "gen_large", scorer=name).values for name in ("strict", "flexible"))
    assert (flexible >= strict).all()
    assert flexible.sum() > strict.sum()


def test_groups_nested_and_both_weightings(folder: Path) -> None:
    with noise(repeats=K, groups={"asked": "gen*"}) as session:
        results = toys.simple_evaluate(folder, ["outer"])
    small, large = scores(session, "gen").values, scores(session, "gen_large").values
    inner = estimate(session, "inner")
    assert inner.mean == pytest.approx(np.concatenate([small, large]).mean(), abs=1e-12)
    outer = estimate(session, "outer")
    assert outer.mean == pytest.approx((small.mean() + large.mean()) / 2, abs=1e-12)
    for name in ("inner", "outer"):
        assert not {"mean_mismatch", "skipped_metric"} & set(estimate(session, name).diagnostics)
        for table in ("results", "groups"):
            assert results[table][name]["exact_match_avg,strict"] == estimate(session, name).mean
            assert results[table][name]["exact_match_avg_stderr,strict"] == estimate(session, name).se
    assert inner.se == pytest.approx(
        np.sqrt(12**2 * estimate(session, "gen").se ** 2 + 24**2 * estimate(session, "gen_large").se ** 2) / 36,
        rel=1e-6,
    )
    assert estimate(session, "asked").mean == pytest.approx(inner.mean, abs=1e-12)
    assert results["results"]["asked"]["exact_match_avg,strict"] == estimate(session, "asked").mean


def test_the_versions_default_weighting(folder: Path) -> None:
    with noise(repeats=2) as session:
        results = toys.simple_evaluate(folder, ["plain"], toys.HashModel(seed=3))
    assert "mean_mismatch" not in estimate(session, "plain").diagnostics
    sizes, means = (12, 24), [results["results"][name]["exact_match,strict"] for name in ("gen", "gen_large")]
    assert means[0] != pytest.approx(means[1])
    by_size = results["results"]["plain"]["exact_match,strict"] == pytest.approx(np.average(means, weights=sizes))
    (group,) = [item for item in session.collected.run.groups if item.name == "plain"]
    assert group.weighting == ("size" if by_size else "equal")


def test_choice_tasks_are_asked_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with noise(repeats=K) as session:
        results = toys.simple_evaluate(folder, ["choice"])
    found = estimate(session, "choice", "acc", "none")
    assert (found.repeats_max, found.se_data, found.se_prediction) == (1, None, None)
    assert "single_repeat" in found.diagnostics
    assert found.se == pytest.approx(results["results"]["choice"]["acc_stderr,none"], rel=1e-9)
    assert "asked once" in caplog.text
    assert "acc_avg,none" not in results["results"]["choice"]
    assert results["results"]["choice"]["acc_total_stderr,none"] == found.se_total


def test_no_rows(folder: Path) -> None:
    with noise(repeats=2, rows=False):
        results = toys.simple_evaluate(folder, ["gen"])
    assert not [key for key in results["results"]["gen"] if "_avg" in key]
    assert "exact_match_total_stderr,strict" in results["results"]["gen"]
    assert "_avg" not in make_table(results)


def test_identical_answers_are_not_zero_noise(folder: Path) -> None:
    with noise(repeats=K) as session:
        results = toys.simple_evaluate(folder, ["gen"], toys.HashModel(same=True))
    found = estimate(session, "gen")
    assert "identical_repeats" in found.diagnostics
    assert found.se_prediction is None
    assert found.se_data is None
    assert "exact_match_prediction_stderr,strict" not in results["results"]["gen"]


def test_identical_answers_with_one_exception() -> None:
    rows = [{"resps": [["a", "a", "b"]]}, {"resps": [["c", "c"]]}]
    assert rescore.identical_answers(rows, 2)  # the third is another rank's padding
    assert not rescore.identical_answers(rows, 3)
    assert not rescore.identical_answers([{"resps": [["a"]]}], 1)


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
    voted = any("majority vote" in note for note in session.analysis.notes)
    assert voted is (own > 1)
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
    assert any("cannot be scored answer by answer" in note for note in session.analysis.notes)


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
    assert run.skipped == ()
    assert [item.metric for item in run.corpus] == ["pair", "middle", "word"]
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
    assert set(third) == {"right", "holes", "some", "flag"}
    json.dumps(results["noise"], allow_nan=False)


# ---- clusters ----


def test_a_missing_cluster_field_stops_the_run_before_it_starts(folder: Path) -> None:
    model = toys.HashModel()
    with noise(cluster="templat"), pytest.raises(InputError, match="answer, choices, label, meta, question, template"):
        toys.simple_evaluate(folder, ["gen"], model)
    assert model.calls == []


def test_a_field_that_only_some_documents_have(tmp_path: Path) -> None:
    rows = toys.docs(6)
    rows[3]["template"] = None
    toys.write_task(tmp_path, "gen", rows)
    with noise(repeats=2, cluster="template") as session:
        toys.simple_evaluate(tmp_path, ["gen"])
    assert estimate(session, "gen").cluster is None
    assert any("not clustered" in note for note in session.analysis.notes)


def test_clusters_by_task_path_and_template(folder: Path) -> None:
    spec = ["gen=meta.source", "gen_large={{template}}-{{label}}", "choice=none"]
    with noise(repeats=2, cluster=spec) as session:
        toys.simple_evaluate(folder, ["gen", "gen_large", "choice"])
    assert estimate(session, "gen").n_clusters == 4
    assert scores(session, "gen_large").clusters[5] == "t1-1"
    assert estimate(session, "choice", "acc", "none").cluster is None


def test_auto_knows_drop_and_parallel_tasks(tmp_path: Path) -> None:
    rows = [row | {"passage": row["template"]} for row in toys.docs(12)]
    toys.write_task(tmp_path, "drop", rows)
    toys.write_task(tmp_path, "mgsm_direct_de", rows)
    toys.write_task(tmp_path, "mgsm_direct_en", [row | {"question": "Again: " + row["question"]} for row in rows])
    with noise(repeats=2) as session:
        toys.simple_evaluate(tmp_path, ["drop"])
    assert any("natural clusters, passage (auto)" in note for note in session.analysis.notes)
    with noise(repeats=3, cluster="auto", groups={"mgsm": "mgsm_direct_*"}) as session:
        toys.simple_evaluate(tmp_path, ["drop", "mgsm_direct_de", "mgsm_direct_en"])
    assert estimate(session, "drop").n_clusters == 4
    assert estimate(session, "drop").cluster == "passage (auto)"
    both = estimate(session, "mgsm")
    assert (both.n_questions, both.n_clusters) == (24, 12)


# ---- guests: caches, failing servers, faults of our own ----


def test_the_response_cache_is_used_for_the_native_answers_only(folder: Path, tmp_path: Path) -> None:
    base = toys.GENERATE | {"generation_kwargs": {"until": ["\n"], "do_sample": False, "temperature": 0.7}}
    toys.write_task(tmp_path, "cached", toys.docs(12), base)
    cache = str(tmp_path / "answers")
    plain = toys.simple_evaluate(tmp_path, ["cached"], "sim-hash", use_cache=cache)
    with noise(repeats=4) as session:
        noisy = toys.simple_evaluate(tmp_path, ["cached"], "sim-hash", model_args={"seed": 9}, use_cache=cache)
    after = toys.simple_evaluate(tmp_path, ["cached"], "sim-hash", model_args={"seed": 8}, use_cache=cache)
    native = plain["results"]["cached"]
    assert native.items() <= noisy["results"]["cached"].items()
    assert after["results"]["cached"] == native
    assert "identical_repeats" not in estimate(session, "cached").diagnostics
    assert any("--use_cache" in note for note in session.analysis.notes)


def test_the_request_cache_is_not_poisoned(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_eval.caching import cache

    monkeypatch.setattr(cache, "PATH", str(tmp_path))
    models = [toys.HashModel() for _ in range(3)]
    with noise(repeats=3):
        toys.simple_evaluate(folder, ["gen"], models[0], cache_requests=True)
    toys.simple_evaluate(folder, ["gen"], models[1], cache_requests=True)
    with noise(repeats=5) as session:
        toys.simple_evaluate(folder, ["gen"], models[2], cache_requests=True)
    assert [model.calls for model in models] == [[12, 24], [12], [12, 48]]
    assert estimate(session, "gen").repeats_max == 5


def test_further_answers_that_fail_do_not_lose_the_run(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    plain = toys.simple_evaluate(folder, ["gen"])
    model = toys.HashModel()
    model.fail_after = 1
    with noise(repeats=K) as session:
        noisy = toys.simple_evaluate(folder, ["gen"], model)
    assert native_part(noisy) == native_part(plain)
    assert "the server is gone" in caplog.text
    found = estimate(session, "gen")
    assert (found.repeats_max, found.n_missing) == (1, 12 * (K - 1))
    assert "single_repeat" in found.diagnostics
    assert found.se_prediction is None


def test_a_model_that_fails_at_once_fails_as_without_us(folder: Path) -> None:
    model = toys.HashModel()
    model.fail_after = 0
    with noise(repeats=K), pytest.raises(ConnectionError, match="the server is gone"):
        toys.simple_evaluate(folder, ["gen"], model)
    assert "generate_until" not in vars(model)


BREAKABLE = [
    (collect, "flat_tasks"), (collect, "native_groups"), (collect, "first_missing"), (collect, "collect"),
    (collect, "by_filter"), (collect, "rescore"), (collect, "gather"), (collect, "columns_of"),
    (collect.presets, "resolve"), (hook, "silent_zeros"), (hook, "per_sample"), (hook, "model_name"),
    (inject, "inject"), (inject, "annotate"), (inject, "copy_of"), (repeats, "same_random_state"),
    (repeats.Repeats, "__init__"), (repeats.Repeats, "installed"), (repeats.Repeats, "_rounds"),
    (repeats.Repeats, "_put"), (repeats.Repeats, "_filter"), (repeats.Repeats, "record"), (repeats, "native_repeats"),
]  # fmt: skip


@pytest.fixture(scope="module")
def plain_run(folder: Path) -> dict[str, Any]:
    return native_part(toys.simple_evaluate(folder, ["inner"]))


@pytest.mark.parametrize(("place", "name"), BREAKABLE, ids=lambda value: getattr(value, "__name__", value))
def test_a_fault_of_ours_anywhere_keeps_the_native_result(
    folder: Path, plain_run: dict[str, Any], place: Any, name: str, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("injected fault")

    monkeypatch.setattr(place, name, broken)
    with noise(repeats=3, cluster="template") as session:
        results = toys.simple_evaluate(folder, ["inner"])
    assert native_part(results) == plain_run
    warnings = [item for item in caplog.records if item.name == "harness_noise" and item.levelno == logging.WARNING]
    assert warnings
    assert all("injected fault" in item.getMessage() for item in warnings)
    if session.analysis is None:
        assert "noise" not in results
        assert not [key for key in results["results"]["gen"] if "avg" in key]
        assert not [row for row in results["samples"]["gen"] if "scores_per_repeat" in row]
    assert evaluator.evaluate.__module__ == "lm_eval.utils" or not hasattr(evaluator.evaluate, hook._MARK)


def test_a_setting_that_does_not_fit_the_scores_costs_a_warning(folder: Path) -> None:
    with noise(repeats=3, interval="clopper-pearson") as session:
        results = toys.simple_evaluate(folder, ["gen"])
    assert session.analysis is None
    assert "clopper-pearson is exact only" in session.problems[0]
    assert "noise" not in results


# ---- what reads the results ----


def test_native_consumers_and_strict_parsers(folder: Path, tmp_path: Path) -> None:
    import jsonschema
    from datasets import load_dataset
    from lm_eval.loggers import EvaluationTracker

    tracker = EvaluationTracker(output_path=str(tmp_path))
    with noise(repeats=3, cluster="template", groups={"asked": "gen*"}):
        results = toys.simple_evaluate(folder, ["outer"], evaluation_tracker=tracker)
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for name in results["configs"]:
        tracker.save_results_samples(task_name=name, samples=samples[name])
    (file,) = tmp_path.glob("**/results_*.json")

    def no_constant(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    saved = json.loads(file.read_text(), parse_constant=no_constant)
    jsonschema.validate(saved["noise"], json_schema())
    for row in saved["results"].values():
        for key, value in row.items():
            assert "_stderr," not in key or isinstance(value, float)
    table = make_table(saved)
    assert re.search(r"gen +\|.*exact_match +\|↑", table)
    assert re.search(r"exact_match_avg\|↑ +\|0\.\d{4}\|±  \|0\.\d{4}", table)
    assert "total" not in table
    assert "asked" in make_table(saved, "groups")
    (lines,) = tmp_path.glob("**/samples_gen_2*.jsonl")
    data = load_dataset("json", data_files=str(lines), split="train")
    assert data[0]["cluster"] == "t0"
    assert len(data[0]["scores_per_repeat"]["exact_match"]) == 3


def test_injecting_twice_is_injecting_once(folder: Path) -> None:
    with noise(repeats=3, cluster="template", groups={"asked": "gen*"}) as session:
        results = toys.simple_evaluate(folder, ["outer"])
    once = copy.deepcopy(results)
    inject.inject(results, session.analysis)
    assert results == once
    plain = toys.simple_evaluate(folder, ["outer"])
    inject.remove(results)
    assert native_part(results) == native_part(plain)
    assert set(results["results"]) == set(plain["results"])
    assert results["results"]["gen"] == plain["results"]["gen"]
    assert results["groups"] == plain["groups"]
    assert results["higher_is_better"] == plain["higher_is_better"]


def test_a_native_metric_with_our_name_is_kept() -> None:
    scored = {"acc": [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]], "acc_avg": [[3.0, 3.5], [2.0, 2.0], [4.0, 1.0]]}
    parts = tuple(
        hn.analysis.mean.as_scores(values, task="t", metric=metric, scorer="none") for metric, values in scored.items()
    )
    run = hn.data.scores.Run(model="m", name="m", harness="lm-eval", scores=parts)
    results = {
        "results": {"t": {"acc,none": 2 / 3, "acc_avg,none": 3.0, "acc_avg_stderr,none": 0.5}},
        "configs": {"t": {}},
        "higher_is_better": {"t": {"acc": True, "acc_avg": False}},
    }
    before = copy.deepcopy(results)
    analysis = hn.analyze(run)
    for _ in range(2):
        inject.inject(results, analysis)
        row = results["results"]["t"]
        assert (row["acc_avg,none"], row["acc_avg_stderr,none"]) == (3.0, 0.5)
        assert row["acc_avg_avg,none"] == pytest.approx(np.mean(scored["acc_avg"]))
        assert "acc_total_stderr,none" in row
    inject.remove(results)
    assert results == before


def test_limit_and_samples(folder: Path) -> None:
    with noise(repeats=3) as session:
        toys.simple_evaluate(folder, ["gen"], limit=5)
    assert estimate(session, "gen").n_questions == 5
    with noise(repeats=3, cluster="template") as session:
        results = toys.simple_evaluate(folder, ["gen"], samples={"gen": [9, 2, 5]})
    rows = [row for row in results["samples"]["gen"] if row["filter"] == "strict"]
    assert estimate(session, "gen").n_questions == 3
    for row in rows:
        # lm-eval's doc_id is wrong here (its documents come in the dataset's order): the document counts
        assert row["cluster"] == row["doc"]["template"]
        assert row["scores_per_repeat"]["exact_match"] == [
            right(answer, row["doc"]["answer"], "strict") for answer in row["resps"][0]
        ]


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
    assert any("the first repeat is not what lm-eval scored (right)" in note for note in session.analysis.notes)


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

"""lm-eval files that are damaged, that change, or that carry code: refused, or read without running it."""

import json
import math
import random

import pytest

from harness_noise.analysis.mean import analyze_run
from harness_noise.data.scores import ReadOptions
from harness_noise.errors import InputError
from harness_noise.settings import Settings
from harness_noise_adapters.lm_eval_harness import adapter
from support.lm_eval_files import edit, edit_results, one, results_file, samples_file, score
from support.notes import noted
from support.slow import rest_slow


# bad input
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], r"samples_mc_.*line \d+: not JSON"),
        (lambda text: text + "[1, 2]\n", r"line 13: not a sample of lm-eval"),
        (lambda text: "", r"the file is empty"),
        (lambda text: text.replace("{", "{,", 1), r"line 1: not JSON"),
        (lambda text: "[" * 200_000 + "\n", r"line 1: not JSON|nested too deeply"),  # with orjson, and without
    ],
)
def test_damaged_samples_name_the_line(run_a, damage, message):
    path = samples_file(run_a, "mc")
    path.write_text(damage(path.read_text()))
    with pytest.raises(InputError, match=message):
        one(run_a)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"results": {"a": {"acc,none": 1', r"results_.*line 1: not JSON"),
        ('{"results": []}', r"not a results file of lm-eval"),
        ('{"results": {"a": 1}}', r"not a results file of lm-eval"),
        ('{"results": {}}', r"no metric in it"),
        ('{"results": {"mc": {"acc,none": 1}}, "groups": true}', r"`groups` is not what lm-eval writes"),
        ('{"results": {"mc": {"acc,none": 1}}, "higher_is_better": {"mc": 1}}', r"`higher_is_better` is not"),
    ],
)
def test_damaged_results(run_a, text, message):
    results_file(run_a).write_text(text)
    with pytest.raises(InputError, match=message):
        one(results_file(run_a))


def test_a_folder_without_a_run(tmp_path):
    assert not adapter.sniff(tmp_path)
    (tmp_path / "results_x.json").write_text("{}")
    (tmp_path / "notes.json").write_text('{"results": {}}')
    assert not adapter.sniff(tmp_path)
    with pytest.raises(InputError, match="no lm-eval results"):
        adapter.read(tmp_path, ReadOptions())


# nothing of a log is run
@pytest.mark.parametrize(
    "change",
    [
        {"doc_to_target": "{{ cycler.__init__.__globals__.os.system('touch TRAP') }}"},
        {"doc_to_target": "{{question}}"},
        {"doc_to_target": "def f(doc):\n    return 1\n"},
        {"filter_list": [{"name": "strict", "filter": [{"function": "custom", "filter_fn": "x"}]}]},
        {"filter_list": [{"name": "strict", "filter": 1}]},
        {"filter_list": {"name": "strict"}},
        {"metric_list": -1},
        {"process_results": "def process_results(doc, results): ..."},
    ],
)
def test_a_log_with_one_score_for_k_answers_is_read_as_one_answer(run_a, tmp_path, monkeypatch, change):
    def runs(*_args, **_kwargs):
        raise AssertionError("a filter or a task of lm-eval was made")

    monkeypatch.setattr("lm_eval.api.task.ConfigurableTask.__init__", runs)
    monkeypatch.setattr("lm_eval.api.filter.FilterEnsemble.apply", runs)
    trap = tmp_path / "trap"
    told = json.loads(json.dumps(change).replace("TRAP", str(trap)))
    edit_results(run_a, lambda results: results["configs"]["gen"].update(told))
    run = one(run_a)
    assert not trap.exists()
    part = score(run, "gen", "exact_match", "strict")
    assert part.values.shape == (24, 1)
    assert part.values[:, 0].mean() == pytest.approx(part.native)
    (said,) = [note for note in noted(run) if "4 answers per question" in note and "gen" in note]
    assert "single_repeat" in said
    assert "--noise keeps the score of every answer" in said


VALUES = [None, True, [], {}, "x", -1, 1e308, math.nan, math.inf, 10**400, "\ud800", [[1]], {"a": {"b": None}}]


def mutated(value, draw):
    """A JSON value with one place in it changed, added or gone."""
    if isinstance(value, dict) and value and draw.random() < 0.85:
        key = draw.choice(list(value))
        if draw.random() < 0.15:
            return {k: v for k, v in value.items() if k != key}
        if draw.random() < 0.15:
            return value | {draw.choice(["cluster", "filter", "scores_per_repeat", "metrics"]): draw.choice(VALUES)}
        return value | {key: mutated(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.85:
        i = draw.randrange(len(value))
        return [*value[:i], mutated(value[i], draw), *value[i + 1 :]]
    return draw.choice(VALUES)


@pytest.mark.parametrize("seed", rest_slow(range(40), quick=6))
def test_a_mutated_run_is_read_and_written_or_refused(run_a, tmp_path, seed):
    """Never a traceback, never a result that is not strict JSON."""
    draw = random.Random(seed)
    for task in ("mc", "gen"):
        edit(
            samples_file(run_a, task), lambda rows: [mutated(row, draw) if draw.random() < 0.1 else row for row in rows]
        )
    results = results_file(run_a)
    if seed % 2:
        results.write_text(json.dumps(mutated(mutated(json.loads(results.read_text()), draw), draw)))
    cluster = draw.choice([None, "template", "auto", "{{meta.source}}"])
    try:
        for run in adapter.read(run_a, ReadOptions(cluster=cluster)):
            analyze_run(run, Settings()).to_json()
        adapter.write(run_a, tmp_path / "out", lambda run: analyze_run(run, Settings()), ReadOptions())
    except InputError as error:
        said = str(error)
    else:
        said = str(run_a)
        assert list((tmp_path / "out").rglob("*.jsonl"))
    assert str(run_a) in said

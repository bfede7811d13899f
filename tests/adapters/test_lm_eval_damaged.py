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
from harness_noise_adapters.lm_eval_harness.files import rebuild, samples
from support.lm_eval_files import edit, edit_results, one, results_file, samples_file, score
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
def test_templates_of_a_log_are_rendered_in_a_sandbox(run_a, tmp_path):
    trap = tmp_path / "trap"
    template = "{{ cycler.__init__.__globals__.os.system('touch " + str(trap) + "') }}"

    edit_results(run_a, lambda results: results["configs"]["gen"].update({"doc_to_target": template}))
    run = one(run_a)
    assert not trap.exists()
    assert score(run, "gen", "exact_match", "strict").values.shape == (24, 1)
    assert any("it cannot be scored (" in note for note in run.notes)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"doc_to_target": "{{question}}"}, "targets do not come out"),
        ({"doc_to_target": "def f(doc):\n    return 1\n"}, "doc_to_target is a function"),
        ({"output_type": "multiple_choice"}, "do not vary"),
        ({"filter_list": [{"name": "strict", "filter": [{"function": "custom", "filter_fn": "x"}]}]}, "filter"),
        ({"filter_list": [{"name": "strict", "filter": [{"function": {"x": 1}}]}]}, "filter"),
        ({"filter_list": [{"name": "strict", "filter": 1}]}, "filter"),
        ({"filter_list": {"name": "strict"}}, "filter"),
        ({"filter_list": [{"name": "other", "filter": [{"function": "take_first"}]}]}, "no filter 'strict'"),
        ({"metric_list": [{"metric": "exact_match", "hf_evaluate": True}]}, "loaded from the hub"),
        ({"metric_list": [{"metric": "other"}]}, "not those of its configuration"),
        ({"metric_list": -1}, "not those of its configuration"),
        ({"process_results": "def process_results(doc, results): ..."}, "code of its own"),
    ],
)
def test_tasks_that_cannot_be_rebuilt_say_why(run_a, change, why):
    edit_results(run_a, lambda results: results["configs"]["gen"].update(change))
    run = one(run_a)
    assert score(run, "gen", "exact_match", "strict").values.shape == (24, 1)
    assert any(why in note for note in run.notes), run.notes


def test_scores_that_do_not_agree_with_the_log_are_not_used(run_a):
    edit(samples_file(run_a, "gen"), lambda rows: [row | {"exact_match": 1 - row["exact_match"]} for row in rows])
    run = one(run_a)
    assert score(run, "gen", "exact_match", "strict").values.shape == (24, 1)
    assert any("scores the first answers differently" in note for note in run.notes)


def test_a_file_that_changes_before_its_answers_are_scored_is_refused(run_a, monkeypatch):
    path = samples_file(run_a, "gen")
    read = samples.read_samples

    def then_it_grows(path, wanted):
        found = read(path, wanted)
        with path.open("a") as file:
            file.write(path.read_text().splitlines()[0].replace('"doc_hash": "', '"doc_hash": "f') + "\n")
        return found

    monkeypatch.setattr("harness_noise_adapters.lm_eval_harness.files.read.read_samples", then_it_grows)
    with pytest.raises(InputError, match=f"{path.name}: the file changed while it was read"):
        one(path)


def test_without_lm_eval_the_first_answer_is_read(run_a, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "lm_eval", None)
    run = one(run_a)
    assert score(run, "gen", "exact_match", "strict").values.shape == (24, 1)
    assert any("lm-eval is not installed" in note for note in run.notes)
    assert rebuild.FILTERS


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

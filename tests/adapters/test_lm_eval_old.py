"""Outputs as lm-eval 0.4.0 to 0.4.2 wrote them: results without a date, samples in one array, named after the model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import harness_noise as hn
from harness_noise_adapters.lm_eval_harness.files import outputs

KEPT = ("results", "groups", "configs", "versions", "n-shot", "config", "git_hash")
NEW = frozenset(("doc_hash", "prompt_hash", "target_hash", "filter", "metrics"))


def old_row(row: dict) -> dict:
    arguments = row["arguments"]
    if isinstance(arguments, dict):
        arguments = [list(item.values()) for item in arguments.values()]
    return {key: value for key, value in row.items() if key not in NEW} | {"arguments": arguments}


def as_it_was(folder: Path, target: Path) -> Path:
    """The one run in a folder, laid out as it was before 0.4.3."""
    target.mkdir(parents=True)
    (results,) = folder.rglob("results_*.json")
    content = {key: value for key, value in json.loads(results.read_text()).items() if key in KEPT}
    content["config"] = {"model": "hf", "model_args": "pretrained=sim/model-1,dtype=float", "batch_size": 1}
    (target / "results.json").write_text(json.dumps(content, indent=2))
    for file in results.parent.glob("samples_*.jsonl"):
        task = file.name.removeprefix("samples_").rsplit("_", 1)[0]
        rows = [old_row(json.loads(line)) for line in file.read_text().splitlines()]
        named = target / f"pretrained__sim__model-1,dtype__float_{task}.jsonl"
        named.write_text(json.dumps(rows, indent=2, ensure_ascii=False))
    return target


def figures(path: Path) -> dict[tuple[str, str, str], tuple[object, ...]]:
    return {
        (item.task, item.metric, item.scorer): (item.n_questions, item.mean, item.se)
        for item in hn.analyze(path).estimates
        if "skipped_metric" not in item.diagnostics
    }


@pytest.mark.parametrize("name", ["asdiv", "asdiv_cot"])
def test_the_old_layout_gives_the_same_figures(shared_data, tmp_path, name):
    new = shared_data / "lm_eval" / name
    old = as_it_was(new, tmp_path / "old")
    want = figures(new)
    assert want
    assert figures(old) == want
    assert figures(old / "results.json") == want


def test_several_tasks_and_filters(lm_eval_runs, tmp_path):
    old = as_it_was(lm_eval_runs / "a", tmp_path / "old")
    want, found = figures(lm_eval_runs / "a"), figures(old)
    assert {
        ("gen", "exact_match", "strict"),
        ("mc", "acc", "none"),
        ("mc2", "acc", "none"),
    } <= found.keys() & want.keys()
    for key in found.keys() & want.keys():
        assert found[key] == want[key], key


def test_a_samples_file_by_itself(lm_eval_runs, tmp_path):
    old = as_it_was(lm_eval_runs / "a", tmp_path / "old")
    (file,) = old.glob("*_mc.jsonl")
    assert outputs.sniff(file)
    assert set(figures(file)) == {key for key in figures(old) if key[0] == "mc"}
    (old / "results.json").unlink()
    assert {round(mean, 9) for _, mean, _ in figures(file).values()} >= {
        round(figures(lm_eval_runs / "a")["mc", "acc", "none"][1], 9)
    }


def test_the_files_of_another_model_are_left_alone(lm_eval_runs, tmp_path):
    old = as_it_was(lm_eval_runs / "a", tmp_path / "old")
    (file,) = old.glob("*_mc.jsonl")
    file.rename(old / "pretrained__sim__other_mc.jsonl")
    assert "mc" not in {task for task, _, _ in figures(old)}


@pytest.mark.parametrize(
    ("text", "reason"),
    [('[{"doc_id": 0, "doc": {"a": 1}, "acc": 1.0}, {"doc_id"', "not JSON that can be read"),
     ('[{"doc_id": 0, "doc": {"a": 1}, "acc": 1.0}, 5]', "not a sample of lm-eval")],
)  # fmt: skip
def test_an_array_that_is_cut_or_holds_something_else_is_refused(tmp_path, text, reason):
    (tmp_path / "old.jsonl").write_text(text)
    with pytest.raises(hn.InputError, match=reason):
        hn.read(tmp_path / "old.jsonl")


def test_the_lines_of_mid_2024_are_read_under_the_name_that_they_had(shared_data, tmp_path):
    new = shared_data / "lm_eval" / "asdiv"
    for file in new.glob("*/*"):
        shutil.copy(file, tmp_path / file.name.replace(".jsonl", ".json"))
    (samples,) = tmp_path.glob("samples_asdiv_*.json")
    (results,) = tmp_path.glob("results_*.json")
    for place in (tmp_path, results, samples):
        assert figures(place) == figures(new)
    for file in (results, samples):
        (run,) = hn.read(file)
        assert run.scores[0].native is not None
    results.unlink()
    for place in (tmp_path, samples):
        assert figures(place) == figures(new)


def test_a_results_file_may_be_called_samples(shared_data, tmp_path):
    new = shared_data / "lm_eval" / "asdiv"
    for file in new.glob("*/*"):
        shutil.copy(file, tmp_path / file.name.replace("results_", "samples_x_"))
    (run,) = hn.read(tmp_path)
    assert run.scores[0].native is not None


def two_filters(folder: Path, *, results: bool) -> Path:
    """150 documents under two filters that the rows do not name; the second is wrong more often."""
    folder.mkdir()
    rows = [
        {
            "doc_id": i,
            "doc": {"question": f"Question {i}?"},
            "target": "x",
            "resps": [["x"]],
            "exact_match": float(right),
        }
        for share in (7, 5)
        for i in range(150)
        for right in (i % 10 < share,)
    ]
    file = folder / ("samples_t_2024-10-01T00-00-00.jsonl")
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if results:
        table = {"t": {"exact_match,strict": 0.7, "exact_match,loose": 0.5}}
        content = {"results": table, "configs": {"t": {}}, "config": {"model": "hf"}, "versions": {"t": 1}}
        (folder / "results_2024-10-01T00-00-00.json").write_text(json.dumps(content))
    return folder


def test_two_filters_without_a_name_are_split_by_the_results_file(tmp_path):
    found = figures(two_filters(tmp_path / "run", results=True))
    assert {key[2]: (n, mean) for key, (n, mean, _) in found.items()} == {
        "strict": (150, pytest.approx(0.7)),
        "loose": (150, pytest.approx(0.5)),
    }


def test_two_filters_without_a_name_and_results_are_refused(tmp_path):
    with pytest.raises(hn.InputError, match="document 0 has 2 rows that do not name their filter"):
        hn.analyze(two_filters(tmp_path / "run", results=False))

"""A file of an lm-eval run that Git LFS has not fetched is said to be one, and is no reason for another story."""

import json

import pytest

import harness_noise as hn

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
DATE = "2025-01-01T10-00-00.000000"
ROWS = "".join(
    json.dumps({"doc_id": i, "doc": {"q": i}, "doc_hash": f"h{i}", "filter": "none", "metrics": ["acc"], "acc": 1.0})
    + "\n"
    for i in range(3)
)
RESULTS = json.dumps({"results": {"t": {"acc,none": 1.0}}, "configs": {"t": {}}, "model_name": "m"})


@pytest.mark.parametrize(
    ("results", "samples"), [(POINTER, ROWS), (RESULTS, POINTER), (POINTER, POINTER), (POINTER, None)]
)
def test_a_pointer_in_the_place_of_a_file_is_named(tmp_path, results, samples):
    (tmp_path / f"results_{DATE}.json").write_text(results)
    if samples is not None:
        (tmp_path / f"samples_t_{DATE}.jsonl").write_text(samples)
    with pytest.raises(hn.InputError, match="git lfs pull") as caught:
        hn.read(tmp_path)
    assert "not JSON" not in str(caught.value)


def test_a_pointer_of_another_name_is_not_taken_for_a_run(tmp_path):
    (tmp_path / "results.json").write_text(POINTER)
    (tmp_path / f"results_{DATE}.json").write_text(RESULTS)
    (tmp_path / f"samples_t_{DATE}.jsonl").write_text(ROWS)
    (run,) = hn.read(tmp_path)
    assert run.model == "m"

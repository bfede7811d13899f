"""Two versions of an lm-eval task: the second scores the same answers without regard to case."""

import json

import pytest

from support.notes import noted

pytest.importorskip("lm_eval", reason="lm-eval is not installed")

from lm_eval.api import metrics

import harness_noise as hn

N = 60


def answer(i):
    return f"Yes {i}" if i % 3 == 0 else f"yes {i}" if i % 3 == 1 else f"no {i}"


def write(folder, version, ignore_case, repeats=1, answers=answer, output_type="generate_until"):
    """A run with its results file, scored by lm-eval's own exact_match."""
    folder.mkdir()
    score = metrics.exact_match_fn
    lines = []
    for i in range(N):
        texts = [answers(i)] * repeats
        each = [
            float(score(references=[f"yes {i}"], predictions=[text], ignore_case=ignore_case)["exact_match"])
            for text in texts
        ]
        lines.append({
            "doc_id": i, "doc": {"id": i, "question": f"Question {i}?"}, "target": f"yes {i}",
            "arguments": {"gen_args_0": {"arg_0": f"Q: {i}?", "arg_1": {"until": []}}}, "resps": [texts],
            "filtered_resps": texts[:1], "filter": "none", "metrics": ["exact_match"], "doc_hash": f"{i:064x}",
            "prompt_hash": f"{i:064x}", "target_hash": f"{i:064x}", "exact_match": each[0],
            **({"scores_per_repeat": {"exact_match": each}} if repeats > 1 else {}),
        })  # fmt: skip
    (folder / "samples_t_2026-01-01T00-00-00.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    metric = {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True, "ignore_case": ignore_case}
    results = {
        "results": {"t": {"alias": "t", "exact_match,none": sum(row["exact_match"] for row in lines) / N}},
        "configs": {"t": {"task": "t", "output_type": output_type, "repeats": repeats, "metric_list": [metric]}},
        "n-samples": {"t": {"original": N, "effective": N}}, "versions": {"t": version},
        "config": {"model": "toy", "model_args": f"pretrained=v{version}-{folder.name}"},
        "higher_is_better": {"t": {"exact_match": True}}, "lm_eval_version": "0.4.13",
    }  # fmt: skip
    (folder / "results_2026-01-01T00-00-00.json").write_text(json.dumps(results))
    return folder


def test_two_task_versions_have_no_verdict(tmp_path):
    a, b = write(tmp_path / "a", 1, False), write(tmp_path / "b", 2, True)
    table = hn.compare(a, b)
    (row,) = table.comparisons
    assert row.verdict == "scored differently"
    assert {"scored_differently", "other_version"} <= set(row.diagnostics)
    assert (row.equal_answers.n_equal, row.equal_answers.n_differ) == (N, N // 3)
    assert row.p_value < 0.05
    (note,) = [str(note) for note in noted(table) if "other versions" in str(note)]
    assert "task version 1 and 2" in note
    assert "options of exact_match" in note
    assert hn.gate(a, b).outcome == "cannot judge"
    (board,) = hn.arena([a, b]).boards
    assert board.pairs[0].verdict == "scored differently"
    assert {"scored_differently", "other_version"} <= set(board.pairs[0].diagnostics)


def test_equal_options_and_answers_are_silent(tmp_path):
    table = hn.compare(write(tmp_path / "a", 1, False), write(tmp_path / "b", 1, False))
    assert table.comparisons[0].equal_answers is None
    assert not {"scored_differently", "other_version"} & set(table.comparisons[0].diagnostics)


def test_another_version_alone_withholds_nothing(tmp_path):
    """The answers differ, too, so that nothing shows what the versions change."""
    other = write(tmp_path / "b", 2, True, answers=lambda i: f"{answer(i)} " if i % 2 else f"{answer(i)}!")
    (row,) = hn.compare(write(tmp_path / "a", 1, False), other).comparisons
    assert "other_version" in row.diagnostics
    assert row.verdict != "scored differently"


def test_repeats_count_one_by_one(tmp_path):
    a, b = write(tmp_path / "a", 1, False, repeats=3), write(tmp_path / "b", 2, True, repeats=3)
    (row,) = hn.compare(a, b).comparisons
    assert (row.equal_answers.n_equal, row.equal_answers.n_differ) == (3 * N, N)


def test_likelihoods_are_no_texts(tmp_path):
    a, b = (
        write(tmp_path / name, 1, case, output_type="multiple_choice") for name, case in (("a", False), ("b", True))
    )
    assert hn.compare(a, b).comparisons[0].equal_answers is None


def test_a_file_that_is_gone_is_no_error(tmp_path):
    a, b = write(tmp_path / "a", 1, False), write(tmp_path / "b", 2, True)
    runs = [hn.read(path)[0] for path in (a, b)]
    next(a.glob("samples*")).unlink()
    (row,) = hn.compare(*runs).comparisons
    assert row.equal_answers is None

"""lm-eval tasks whose own code asks a judge: verdicts that differ on one answer, in samples files."""

import json
import random

import numpy as np
import pytest

import harness_noise as hn
from harness_noise_adapters.lm_eval_harness.scoring.gather import own_code

N, K = 60, 4


def rows(metric="judged", answer=lambda i, k: "yes" if k < 2 or i % 2 else f"no {k}", filters=("none",)):
    """Samples as a run with repeats writes them; the judge flips one verdict in five."""
    for scorer in filters:
        for i in range(N):
            draw = random.Random(f"{scorer} {i}")
            answers = [answer(i, k) for k in range(K)]
            scores = [float(("yes" in text) != (draw.random() < 0.2)) for text in answers]
            yield {
                "doc_id": i, "doc": {"id": i, "question": f"Question {i}?"}, "target": "yes",
                "arguments": {"gen_args_0": {"arg_0": f"Q: {i}?", "arg_1": {"until": []}}}, "resps": [answers],
                "filtered_resps": answers[:1], "filter": scorer, "metrics": [metric], "doc_hash": f"{i:064x}",
                "prompt_hash": f"{i:064x}", "target_hash": "0" * 64, metric: scores[0],
                "scores_per_repeat": {metric: scores},
            }  # fmt: skip


def write(folder, config=None, **options):
    """A run with its results file, whose task has this configuration."""
    lines, metric = list(rows(**options)), options.get("metric", "judged")
    (folder / "samples_t_2026-01-01T00-00-00.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    filters = dict.fromkeys(row["filter"] for row in lines)
    means = {}
    for name in filters:
        scores = [row["scores_per_repeat"][metric] for row in lines if row["filter"] == name]
        means[f"{metric},{name}"] = float(np.mean(scores))
    results = {
        "results": {"t": {"alias": "t"} | means},
        "configs": {"t": {"task": "t", "repeats": K} | (config or {})},
        "n-samples": {"t": {"original": N, "effective": N}}, "versions": {"t": 1}, "config": {"model": "toy"},
        "higher_is_better": {"t": {metric: True}},
    }  # fmt: skip
    (folder / "results_2026-01-01T00-00-00.json").write_text(json.dumps(results))
    return lines


OWN = {"process_results": "def process(doc, results):\n    ...\n"}


def test_identical_answers_with_different_scores(tmp_path):
    lines = write(tmp_path, OWN)
    (row,) = hn.analyze(tmp_path).estimates
    by_text = {}
    for line in lines:
        for text, score in zip(line["resps"][0], line["scores_per_repeat"]["judged"], strict=True):
            by_text.setdefault((line["doc_id"], text), []).append(score)
    groups = [group for group in by_text.values() if len(group) > 1]
    variance = sum(len(group) * np.var(group, ddof=1) for group in groups) / sum(map(len, groups))
    assert row.judge_flips.n_same_text == sum(len(group) * (len(group) - 1) // 2 for group in groups)
    assert row.judge_flips.variance == pytest.approx(variance)
    assert row.judge_flips.share == pytest.approx(min(1.0, variance / N / row.var_prediction))


def test_two_filters_are_two_graders_of_the_same_texts(tmp_path):
    write(tmp_path, OWN, filters=("strict", "loose"))
    strict, loose = hn.analyze(tmp_path).estimates
    assert strict.judge_flips.n_same_text == loose.judge_flips.n_same_text
    assert strict.judge_flips.n_flips != loose.judge_flips.n_flips


def test_one_answer_for_all(tmp_path):
    write(tmp_path, OWN, answer=lambda i, k: f"yes, {i}")
    (row,) = hn.analyze(tmp_path).estimates
    assert "identical_repeats" in row.diagnostics
    assert (row.se_prediction, row.judge_flips.share) == (None, None)


@pytest.mark.parametrize("answer", ["", " \n"])
def test_empty_answers(tmp_path, answer):
    write(tmp_path, OWN, answer=lambda i, k: answer)
    (row,) = hn.analyze(tmp_path).estimates
    assert row.judge_flips is None


def test_the_metrics_of_lm_eval_do_not_change_their_mind(tmp_path, monkeypatch):
    """Their answers are not read a second time."""
    from harness_noise_adapters.lm_eval_harness.files import samples

    write(tmp_path, {"metric_list": [{"metric": "exact_match"}]}, metric="exact_match")
    monkeypatch.setattr(samples, "text_hash", None)
    (row,) = hn.analyze(tmp_path).estimates
    assert row.judge_flips is None


@pytest.mark.parametrize(
    ("config", "own"),
    [
        ({}, True),
        ({"metric_list": [{"metric": "exact_match"}]}, False),
        ({"metric_list": [{"metric": "exact_match"}], "process_results": "def f(): ..."}, True),
        ({"metric_list": [{"metric": "def judge(items):\n    ..."}]}, True),
        ({"metric_list": [{"metric": "acc"}, {"aggregation": "mean"}]}, True),
    ],
)
def test_own_code(config, own):
    assert own_code(config) is own

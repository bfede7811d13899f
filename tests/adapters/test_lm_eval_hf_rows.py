"""Rows as lm-eval's real models log them, numpy's numbers and arrays included: live and after the fact agree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lm_eval")

from harness_noise.analysis.mean import analyze_run
from harness_noise.settings import Settings
from harness_noise_adapters.lm_eval_harness import noise
from harness_noise_adapters.lm_eval_harness.scoring import choices
from support import lm_eval_models as toys
from support.lm_eval_files import one
from support.lm_eval_live import save

N = 30


def metrics(*names: str) -> list[dict[str, Any]]:
    return [{"metric": name} for name in names]


ROLLING = {
    "output_type": "loglikelihood_rolling",
    "doc_to_text": "",
    "doc_to_target": "{{question}}",
    "metric_list": metrics("word_perplexity", "byte_perplexity", "bits_per_byte"),
}
LAST_WORD = {
    "output_type": "loglikelihood",
    "doc_to_text": "{{question}}",
    "doc_to_target": " {{answer}}",
    "metric_list": metrics("perplexity", "acc"),
}
SEVERAL = metrics("acc", "acc_norm", "mcc", "exact_match", "brier_score")
TASKS = {
    "choice": toys.CHOICE | {"metric_list": SEVERAL},
    "pairs": toys.CHOICE | {"doc_to_choice": "{{choices[:2]}}", "metric_list": metrics("f1", "mcc", "brier_score")},
    "mutual": toys.CHOICE | {"metric_list": metrics("acc", "acc_mutual_info", "brier_score")},
    "brier_only": toys.CHOICE | {"metric_list": metrics("brier_score")},
    "rolling": ROLLING,
    "last_word": LAST_WORD,
    "generate": toys.GENERATE | {"metric_list": metrics("exact_match", "bleu", "chrf", "ter")},
}


class LikeHf(toys.HashModel):
    """The types that the hf model gives: floats of torch's, truth values of numpy's."""

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        found = [toys.uniform(self.seed, *request.args) for request in requests]
        return [(float(np.float32(-3 * u)), np.bool_(u < 0.4)) for u in found]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, dict[str, Any], Path]]:
    """With our flag, with it and K answers, and without: (live analysis or None, results, folder)."""
    folder = tmp_path_factory.mktemp("hf")
    for name, base in TASKS.items():
        toys.write_task(folder, name, [doc | {"label": i % 2} for i, doc in enumerate(toys.docs(N))], base)
    out: dict[str, tuple[Any, dict[str, Any], Path]] = {}
    for name, K in (("one", None), ("three", 3)):
        with noise(repeats=K) as session:
            results = save(folder, folder / name, list(TASKS), LikeHf())
        assert session.problems == []
        out[name] = session.analysis, results, folder / name
    out["native"] = None, save(folder, folder / "native", list(TASKS), LikeHf()), folder / "native"
    return out


def numbers(row: Any) -> list[float | None]:
    return [row.mean, row.se, row.ci_low, row.ci_high, row.se_total, row.se_data, row.se_prediction]


@pytest.mark.filterwarnings("ignore::UserWarning")  # sklearn's, on a resample without a class
@pytest.mark.parametrize("name", ["one", "three", "native"])
def test_every_metric_of_every_output_type_is_read_back(runs: Any, name: str) -> None:
    shown = runs["one" if name == "native" else name][0].estimates
    again = {(row.task, row.metric, row.scorer): row for row in analyze_run(one(runs[name][2]), Settings()).estimates}
    assert set(again) == {(row.task, row.metric, row.scorer) for row in shown}
    for row in shown:
        found = again[row.task, row.metric, row.scorer]
        for ours, theirs in zip(numbers(found), numbers(row), strict=True):
            assert ours == theirs is None or ours == pytest.approx(theirs, rel=1e-9), (row.task, row.metric)
        assert (found.diagnostics, found.n_questions, found.repeats_max, found.interval) == (
            row.diagnostics, row.n_questions, row.repeats_max, row.interval
        )  # fmt: skip
        assert "skipped_metric" not in found.diagnostics
        assert "mean_mismatch" not in found.diagnostics


def test_brier_scores_of_a_log_are_lm_evals_own_to_the_last_digits(runs: Any) -> None:
    _, results, path = runs["native"]
    (file,) = path.glob("**/samples_choice_*.jsonl")
    logged = [json.loads(line) for line in file.read_text().splitlines()]
    assert {type(row["brier_score"][1]) for row in logged} == {str}  # words, and few digits
    for task in ("choice", "mutual", "brier_only"):
        (row,) = [
            item for item in analyze_run(one(path), Settings(), ).estimates
            if (item.task, item.metric) == (task, "brier_score")
        ]  # fmt: skip
        assert row.mean == pytest.approx(results["results"][task]["brier_score,none"], abs=1e-14)
        assert row.se > 0


@pytest.mark.parametrize(
    "row",
    [
        {"brier_score": 0.5, "filtered_resps": [["-1", "False"]]},
        {"brier_score": [1, "[0.1 0.9]"]},
        {"brier_score": [7, "[0.1 0.9]"], "filtered_resps": [["-1", "False"], ["-2", "False"]]},
        {"brier_score": [1, "[0.1 0.9]"], "filtered_resps": [["x", "False"], ["-2", "False"]]},
        {"brier_score": None},
    ],
)
def test_what_cannot_be_made_again_stays_as_it_is(row: dict[str, Any]) -> None:
    assert choices.brier_score(row, doubled=False) == row["brier_score"]

"""Small runs of lm-eval, written by hand: lm-eval itself is not needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import harness_noise as hn
from harness_noise_adapters.lm_eval_harness.scoring.gather import Aggregation, Gathered, Scored, TaskFacts, gather
from harness_noise_adapters.lm_eval_harness.scoring.rescore import copied_answers


def lm_eval(
    folder: Path, name: str, *, said: float | None = None, version: int = 1, samples: bool = True, right: int = 1
) -> Path:
    """The files of a run of lm-eval, which scored an answer in words to each of 60 questions."""
    out = folder / name
    out.mkdir()
    scores = [float(i % 3 <= right) for i in range(60)]
    rows = [
        {"doc_id": i, "doc": {"id": i, "question": f"Question {i}?"}, "target": f"yes {i}", "resps": [[f"yes {i}"]],
         "arguments": {"gen_args_0": {"arg_0": f"Q: {i}?", "arg_1": {"until": []}}}, "filtered_resps": [f"yes {i}"],
         "filter": "none", "metrics": ["exact_match"], "doc_hash": f"{i:064x}", "prompt_hash": f"{i:064x}",
         "target_hash": f"{i:064x}", "exact_match": score}
        for i, score in enumerate(scores)
    ]  # fmt: skip
    _write(out, rows if samples else [], "exact_match", float(np.mean(scores)) if said is None else said, version)
    return out


def _write(
    out: Path, rows: list[dict[str, Any]], metric: str, value: float, version: int, kind: str = "generate_until"
) -> None:
    if rows:
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (out / "samples_t_2026-01-01T00-00-00.jsonl").write_text(lines)
    (out / "results_2026-01-01T00-00-00.json").write_text(json.dumps({
        "results": {"t": {"alias": "t", f"{metric},none": value}}, "versions": {"t": version},
        "configs": {"t": {"task": "t", "output_type": kind, "repeats": 1,
                          "metric_list": [{"metric": metric, "aggregation": "mean", "higher_is_better": True}]}},
        "n-samples": {"t": {"original": 60, "effective": 60}}, "config": {"model": "toy", "model_args": out.name},
        "higher_is_better": {"t": {metric: True}}, "lm_eval_version": "0.4.13",
    }))  # fmt: skip


def choices(folder: Path, name: str, *, scores: bool) -> Path:
    """The files of a multiple-choice task of lm-eval, with the choices' log-likelihoods or without."""
    out = folder / name
    out.mkdir()
    rows: list[dict[str, Any]] = []
    for i in range(60):
        pairs = [[f"{-1.0 - (i + j) % 3}", "False"] for j in range(3)]
        best = int(np.argmax([float(pair[0]) for pair in pairs]))
        gold = best if i % 3 else (best + 1) % 3
        rows.append({
            "doc_id": i, "doc": {"question": f"Question {i}?", "choices": ["a", "b", "c"], "gold": gold},
            "target": str(gold),
            "arguments": {f"gen_args_{j}": {"arg_0": f"Q: {i}?", "arg_1": f" {c}"} for j, c in enumerate("abc")},
            "resps": [[pair] for pair in pairs] if scores else [], "filtered_resps": pairs if scores else [],
            "filter": "none", "metrics": ["acc"], "doc_hash": f"{i:064x}", "prompt_hash": f"{i:064x}",
            "target_hash": f"{i:064x}", "acc": float(best == gold),
        })  # fmt: skip
    _write(out, rows, "acc", float(np.mean([row["acc"] for row in rows])), 1, "multiple_choice")
    return out


def seeded(*, copies: bool) -> dict[str, list[str]]:
    """The codes of lm-eval's three own answers, and a fourth with a seed of its own, to each of 40 questions."""
    rng = np.random.default_rng(2)
    table = rng.integers(0, 2, (40, 4)).astype(float)
    if copies:
        table[:, 1:3] = table[:, :1]
    column, out = Scored(), Gathered()
    for i, row in enumerate(table.tolist()):
        column.add(i, row[0], row)
    rows = [{"doc_id": i, "resps": [[f"answer {value}" for value in row]]} for i, row in enumerate(table.tolist())]
    facts = TaskFacts(
        name="t", questions=hn.Questions(tuple(map(str, range(40)))), higher_is_better={"acc": True},
        reported={("acc", "none"): float(table[:, 0].mean())}, aggregations={"acc": Aggregation("mean")},
        copied=copied_answers(rows, 3, 4) > 0,
    )  # fmt: skip
    gather(facts, {("acc", "none"): column}, out)
    return {"diagnostics": [code for scores in out.scores for code in scores.diagnostics]}

"""A few answers in the format of each harness, as `harness_noise.extra.testing.adapters.Write` asks for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness_noise.extra.testing.adapters import Answer
from support import every_eval_ever_files
from support.tables import table

DATE = "2025-01-31T12-00-00.000001"


def by_question(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = {}
    for answer in answers:
        found.setdefault(answer.question, []).append(answer)
    return found


def mean(columns: Sequence[Sequence[Any]]) -> float:
    """The mean over questions of their means over answers, from the raw values."""
    scored = [[float(min(x, 10**300)) for x in row if x is not None and x == x] for row in columns]
    means = [sum(row) / len(row) for row in scored if row]
    return sum(means) / len(means)


def has_two_documents(answers: Sequence[Answer]) -> bool:
    """True if a question's answers name two clusters, where a format has one document for each question."""
    return any(len({answer.cluster for answer in of_one}) > 1 for of_one in by_question(answers).values())


def of_table(folder: Path, answers: Sequence[Answer], native: float | None) -> Path | None:
    """A CSV, which holds no mean."""
    if native is not None:
        return None
    folder.mkdir(parents=True)
    path, names = folder / "scores.csv", ["question", "repeat", "score"]
    clustered = any(answer.cluster is not None for answer in answers)
    rows = [
        (x.question, x.repeat, "" if x.score is None else x.score, *([x.cluster or ""] if clustered else []))
        for x in answers
    ]
    table(path, names + ["cluster"] * clustered, *rows)
    return path


def of_lm_eval(folder: Path, answers: Sequence[Answer], native: float | None) -> Path | None:
    """A folder with results and samples of one task, with the scores per repeat that the flag logs."""
    if has_two_documents(answers):
        return None
    folder.mkdir(parents=True)
    rows, grouped = [], by_question(answers)
    for i, (question, of_one) in enumerate(grouped.items()):
        scores, own = [answer.score for answer in of_one], {"cluster": of_one[0].cluster}
        own = {} if own["cluster"] is None else own
        rows.append(
            {
                "doc_id": i, "doc": {"question": f"What is {question}?", **own}, "target": "a",
                "arguments": {"gen_args_0": {"arg_0": question}}, "resps": [["a"] * len(scores)],
                "filtered_resps": ["a"] * len(scores), "filter": "none", "metrics": ["acc"], "acc": scores[0],
                "scores_per_repeat": {"acc": scores}, "doc_hash": f"h{i}", "prompt_hash": f"p{i}",
                "target_hash": f"t{i}", **own,
            }
        )  # fmt: skip
    value = mean([[of_one[0].score] for of_one in grouped.values()]) if native is None else native
    results = {
        "results": {"t": {"alias": "t", "acc,none": value}}, "configs": {"t": {"repeats": 2}}, "versions": {"t": 1},
        "n-samples": {"t": {"original": len(rows), "effective": len(rows)}}, "config": {"model": "m"},
        "higher_is_better": {"t": {"acc": True}},
    }  # fmt: skip
    (folder / f"samples_t_{DATE}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / f"results_{DATE}.json").write_text(json.dumps(results))
    return folder


def of_inspect(folder: Path, answers: Sequence[Answer], native: float | None) -> Path | None:
    """A log in JSON with one scorer. The metadata of a question are those of its first epoch."""
    if has_two_documents(answers):
        return None
    folder.mkdir(parents=True)
    grouped = by_question(answers)
    value = mean([[x.score for x in of_one] for of_one in grouped.values()]) if native is None else native
    samples = [
        {
            "id": x.question, "epoch": x.repeat + 1, "input": f"What is {x.question}?", "target": "a",
            "scores": {"s": {"value": x.score}}, "metadata": {} if x.cluster is None else {"cluster": x.cluster},
        }
        for x in answers
    ]  # fmt: skip
    metric = {"name": "mean", "value": value, "params": {}}
    log = {
        "version": 2, "status": "success",
        "eval": {
            "task": "t", "model": "m", "task_id": "x", "created": "2025-01-31T12:00:00+00:00", "config": {"epochs": 2},
            "dataset": {"name": "d", "samples": len(grouped), "sample_ids": [*grouped]},
        },
        "results": {
            "total_samples": len(samples), "completed_samples": len(samples),
            "scores": [{"name": "s", "scorer": "s", "reducer": "mean", "metrics": {"mean": metric}}],
        },
        "samples": samples,
    }  # fmt: skip
    path = folder / "2025-01-31T12-00-00+00-00_t_abc.json"
    path.write_text(json.dumps(log))
    return path


def of_every_eval_ever(folder: Path, answers: Sequence[Answer], native: float | None) -> Path | None:
    """Results and samples, which have no clusters."""
    if any(answer.cluster is not None for answer in answers):
        return None
    value = mean([[x.score for x in of_one] for of_one in by_question(answers).values()]) if native is None else native
    samples = [
        every_eval_ever_files.sample(int(x.question[1:]), x.score, k=x.repeat + 1)
        | ({"error": "none"} if x.score is None else {})
        for x in answers
    ]
    return every_eval_ever_files.write(folder, samples, [every_eval_ever_files.result("accuracy", value)]).parent


def of_trials(folder: Path, answers: Sequence[Answer], native: float | None) -> Path | None:
    """The trials of the adapter template, which is read by `Answers`."""
    if native is not None:
        return None
    folder.mkdir(parents=True)
    trials = [
        {"task": "t", "id": x.question, "trial": x.repeat, "question": f"What is {x.question}?", "score": x.score}
        | ({} if x.cluster is None else {"cluster": x.cluster})
        for x in answers
    ]
    path = folder / "m.trials.json"
    path.write_text(json.dumps({"model": "m", "trials": trials}))
    return path

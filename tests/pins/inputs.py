"""The generated score tables: every shape of data that has a way of its own through the package."""

from __future__ import annotations

import csv
import json
import math
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]

PAIRS = (
    "plain", "ragged", "clustered", "unequal", "crossed", "grouped", "few", "ties", "zero", "all_right", "missing",
    "missing_all", "k1", "identical", "percent", "signed", "continuous", "near_one", "one_flip", "same", "tiny",
    "single", "tasks57", "runs", "metrics", "template",
)  # fmt: skip
"""Tables of two models, a and b."""


def write(folder: Path) -> None:
    """Write all tables into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PAIRS:
        _csv(folder / f"{name}.csv", _TABLES[name](random.Random(f"pins {name}")))
    _csv(folder / "many.csv", _many(random.Random("pins many")))
    _csv(folder / "factors.csv", _factors(random.Random("pins factors")))
    _csv(folder / "arena_counts.csv", _counted(random.Random("pins counts")))
    plain = _plain(random.Random("pins split"))
    for model in "ab":
        own = [{k: v for k, v in row.items() if k != "model"} for row in plain if row["model"] == model]
        _csv(folder / f"side_{model}.csv", own)
        _csv(folder / f"other_{model}.csv", [row | {"question": f"{model}{row['question']}"} for row in own])
        (folder / f"side_{model}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in own))
    (folder / "list.json").write_text(json.dumps(plain))
    for part in range(3):  # three files of one model: its repeats
        _csv(folder / "repeats" / f"run{part}.csv", _plain(random.Random(f"pins repeats {part}"), k=1, models="a"))
    _damaged(folder)


def write_real(folder: Path, data: Path) -> None:
    """Two real files that are no score tables, as tables: code in 10 answers, contest problems of 19 models."""
    for side in ("in", "out"):
        graded = json.loads((data / f"cruxeval_{side}put_codellama-7b_T0.2.json").read_text())["raw_scored_generations"]
        rows = [
            {"question": key, "repeat": j + 1, "score": int(right)}
            for key, answers in graded.items()
            for j, right in enumerate(answers)
        ]
        _csv(folder / f"cruxeval_{side}.csv", rows)
    with (data / "matharena_aime_II.csv").open(newline="") as file:
        wide = list(csv.DictReader(file))
    long = [
        {"model": model, "question": problem, "repeat": int(again or 0) + 1, "score": score}
        for row in wide
        for problem, _, again in [row["Question"].partition(".")]
        for model, score in row.items()
        if model != "Question" and problem.isdigit()
    ]
    _csv(folder / "matharena.csv", long)


def _damaged(folder: Path) -> None:
    """What has to be refused, each in a file of its own."""
    texts = {
        "empty": "",
        "header": "question,score\n",
        "words": "question,score\nq1,1\nq2,maybe\n",
        "infinite": "question,score\nq1,1\nq2,inf\n",
        "huge": "question,score\nq1,1\nq2,1e200\nq3,2\n",
        "columns": "name,outcome\nx,1\ny,0\n",
        "twice": "question,repeat,score\nq1,1,1\nq1,1,0\nq2,1,1\n",
        "short": "question,score\nq1,1\nq2\n",
        "broken": '{"question": "q1", "score": 1}\n{"question": "q2", "sco\n',
    }
    (folder / "damaged").mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / "damaged" / f"{name}.{'jsonl' if name == 'broken' else 'csv'}").write_text(text)
    (folder / "damaged" / "results_2026-01-01T00-00-00.000000.json").write_text('{"results": {}')
    (folder / "damaged" / "log.eval").write_bytes(b"PK no archive")


def _csv(path: Path, rows: Iterable[Row]) -> None:
    rows = list(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def _answers(
    r: random.Random,
    n: int = 40,
    k: int | Callable[[int], int] = 3,
    score: Callable[[float], Any] | None = None,
    cluster: Callable[[int], Any] | None = None,
    spread: float = 1.0,
    models: str = "ab",
    **same: Any,
) -> list[Row]:
    """Rows of models that are 0.4 apart on the logit scale, on n questions with an ease of their own."""
    score = score or (lambda p: int(r.random() < p))
    shared: dict[Any, float] = {}
    ease = []
    for i in range(n):
        label = None if cluster is None else cluster(i)
        ease.append(r.gauss(0.3, spread) + (shared.setdefault(label, r.gauss(0, 1)) if label is not None else 0))
    rows = []
    for m, model in enumerate(models):
        for i in range(n):
            p = 1 / (1 + math.exp(-ease[i] + 0.4 * m - r.gauss(0, 0.5)))
            for j in range(k if isinstance(k, int) else k(i + m)):
                row = {"model": model, "question": f"q{i}", "repeat": j + 1, "score": score(p), **same}
                rows.append(row | ({} if cluster is None else {"cluster": cluster(i)}))
    return rows


def _plain(r: random.Random, k: int = 3, models: str = "ab") -> list[Row]:
    return _answers(r, k=k, models=models)


def _crossed(r: random.Random) -> list[Row]:
    rows = _answers(r, n=60, k=2, cluster=lambda i: f"t{i // 5}")
    for row in rows:
        i = int(row["question"][1:])
        row |= {"template": row.pop("cluster"), "language": f"l{i % 5}"}
    return rows


def _grouped(r: random.Random) -> list[Row]:
    sizes = {"sum_add": 30, "sum_sub": 12, "sum_mul": 7, "word_a": 20, "word_b": 20, "alone": 15}
    return [row for task, n in sizes.items() for row in _answers(r, n=n, k=2, cluster=lambda i: i // 3, task=task)]


def _missing(r: random.Random) -> list[Row]:
    rows = _answers(r, n=30, k=3)
    for row in rows:
        i, j = int(row["question"][1:]), row["repeat"]
        if (i % 7 == 0 and j == 2) or i == 4 or (row["model"] == "b" and i % 11 == 0):
            row["score"] = ""
    return rows


def _fixed(r: random.Random, right: Callable[[str, int, int], Any], n: int = 40, k: int = 1) -> list[Row]:
    """Scores that are a function of (model, question, repeat)."""
    return [
        {"model": model, "question": f"q{i}", "repeat": j + 1, "score": right(model, i, j)}
        for model in "ab"
        for i in range(n)
        for j in range(k)
    ]


def _tasks57(r: random.Random) -> list[Row]:
    return [row for t in range(57) for row in _answers(r, n=4 + t % 9, k=1, task=f"subject_{t:02}")]


def _runs(r: random.Random) -> list[Row]:
    """Every run moves all questions together."""
    shift = {(model, j): r.gauss(0, 0.6) for model in "ab" for j in range(5)}
    ease = [r.gauss(0.2, 1) for _ in range(50)]
    return [
        row | {"score": int(r.random() < 1 / (1 + math.exp(-ease[i] - shift[row["model"], j])))}
        for row in _fixed(r, lambda *_: 0, n=50, k=5)
        for i, j in [(int(row["question"][1:]), row["repeat"] - 1)]
    ]


def _metrics(r: random.Random) -> list[Row]:
    """Two metrics of two scorers in one task."""
    rows: list[Row] = []
    for metric, scorer in (("acc", "strict"), ("acc", "loose"), ("f1", "strict")):
        score = (lambda p: round(min(1, max(0, r.gauss(p, 0.2))), 3)) if metric == "f1" else None
        rows += _answers(r, n=25, k=2, score=score, task="qa", metric=metric, scorer=scorer)
    return rows


def _many(r: random.Random) -> list[Row]:
    rows = []
    for task, n, groups in (("easy", 40, 10), ("hard", 25, 25)):
        rows += _answers(r, n=n, k=2, cluster=lambda i, g=groups: i % g, models="abcdefg", task=task)
    return rows


def _factors(r: random.Random) -> list[Row]:
    effect = {(name, i): r.gauss(0, 0.3) for name in ("prompt", "judge", "question") for i in range(40)}
    return [
        {
            "model": "a", "question": f"q{q}", "prompt": f"p{p}", "judge": f"j{j}", "rep": s,
            "score": round(0.5 + effect["prompt", p] + effect["judge", j] + effect["question", q] + r.gauss(0, 0.2), 6),
        }
        for q in range(30) for p in range(5) for j in range(3) for s in range(2)
    ]  # fmt: skip


def _counted(r: random.Random) -> list[Row]:
    """eval-arena's form: the share of N answers that was right."""
    return [
        {"benchmark_id": "code", "model": model, "example_id": f"e{i}", "pass1": right / 10, "count": 10}
        for model in "abc"
        for i in range(30)
        for right in [r.randint(0, 10)]
    ]


_TABLES: dict[str, Callable[[random.Random], list[Row]]] = {
    "plain": _plain,
    "ragged": lambda r: _answers(r, k=lambda i: 1 + i % 6),
    "clustered": lambda r: _answers(r, n=60, cluster=lambda i: f"c{i // 4}"),
    "unequal": lambda r: _answers(r, n=60, cluster=lambda i: f"c{int(math.sqrt(i))}"),
    "crossed": _crossed,
    "grouped": _grouped,
    "few": lambda r: _answers(r, n=40, cluster=lambda i: f"c{i % 4}"),
    "ties": lambda r: _fixed(r, lambda m, i, j: int(i % 3 == 0 or (m == "a" and i % 8 == 1) or (m == "b" and i == 5))),
    "zero": lambda r: _fixed(r, lambda m, i, j: int(m == "a"), k=2),
    "all_right": lambda r: _fixed(r, lambda m, i, j: 1, k=3),
    "missing": _missing,
    "missing_all": lambda r: _fixed(r, lambda m, i, j: "" if m == "b" else i % 2, n=12, k=2),
    "k1": lambda r: _answers(r, n=50, k=1),
    "identical": lambda r: [
        row | {"repeat": j + 1} for row in _answers(r, n=30, k=1) for j in range(4)
    ],
    "percent": lambda r: _answers(r, score=lambda p: round(100 * min(1, max(0, r.gauss(p, 0.2))), 2)),
    "signed": lambda r: _answers(r, score=lambda p: round(2 * min(1, max(0, r.gauss(p, 0.2))) - 1, 4)),
    "continuous": lambda r: _answers(r, score=lambda p: round(r.gauss(5 * p, 2), 5)),
    "near_one": lambda r: _fixed(r, lambda m, i, j: int((i, j) not in ((3, 0), (9, 1)) or m == "a"), n=80, k=2),
    "one_flip": lambda r: _fixed(r, lambda m, i, j: int(i % 2 == 0 or (i == 1 and m == "a")), n=30),
    "same": lambda r: _fixed(r, lambda m, i, j: int((i * 7 + j * 3) % 4 < 2), n=30, k=3),
    "tiny": lambda r: _fixed(r, lambda m, i, j: int((i + j + (m == "b")) % 3 > 0), n=2, k=2),
    "single": lambda r: _fixed(r, lambda m, i, j: int((j + (m == "b")) % 3 > 0), n=1, k=4),
    "tasks57": _tasks57,
    "runs": _runs,
    "metrics": _metrics,
    "template": lambda r: _answers(r, n=36, k=2, cluster=lambda i: i // 6, spread=2.5),
}  # fmt: skip

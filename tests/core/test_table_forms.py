"""One table in five forms (CSV, JSON, JSON lines, Parquet, a DataFrame) says the same, or is refused in each."""

from __future__ import annotations

import csv
import json
import math
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import harness_noise as hn
from harness_noise import InputError
from support.slow import rest_slow

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
Rows = list[dict[str, Any]]
SCORES = {
    "truth values": (True, False),
    "ones": (1, 0, 1),
    "shares": (0.25, 0.5, 1.0, 0.125),
    "words": ("correct", "incorrect"),
    "marks": (1, 2, 3, 4, 5),
    "lists": ([1, 0, 1], [0, 0, 0], [1, 1, 0]),
    "mixed": (1, 0, "1", True, None, "n/a", " 0 ", 1, 0, 1, 0, 1, 0),
    "faulty": (1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, "oops", 1e300),
}
WIDE = ("gpt-4_correct", "claude_correct", "llama_correct")


def table(draw: random.Random) -> tuple[Rows, dict[str, Any]]:
    """Draw a table, and options that its columns allow."""
    kind, questions, K = draw.choice([*SCORES, "wide"]), draw.choice((3, 8, 40, 90)), draw.choice((1, 1, 2, 3))
    models, tasks = draw.choice(((None,), ("a", "b"))), draw.choice(((None,), ("t1", "t2")))
    repeat = draw.choice((None, "repeat", "seed")) if K > 1 else None
    named, holes = draw.random() < 0.5, draw.choice((0.0, 0.0, 0.1))
    more = draw.sample(("latency", "cost", "story", "answer", "target", "error", "condition"), draw.randint(0, 4))
    cells = {
        "latency": lambda q, row: round(draw.random(), 3),
        "cost": lambda q, row: draw.choice((None, 0.25, 0)),
        "story": lambda q, row: f"s{q // 3}",
        "answer": lambda q, row: draw.choice("ABCD"),
        "target": lambda q, row: "ABCD"[q % 4],
        "error": lambda q, row: "boom" if row.get("score", 1) is None else None,
        "condition": lambda q, row: draw.choice("uv"),
    }
    rows: Rows = []
    for model, task, q, k in [(m, t, q, k) for m in models for t in tasks for q in range(questions) for k in range(K)]:
        row: dict[str, Any] = {"model": model, "task": task, "question": f"q{q}" if named else q, repeat or "": k}
        row = {name: cell for name, cell in row.items() if name and cell is not None}
        for name in WIDE if kind == "wide" else ("score",):
            row[name] = None if draw.random() < holes else draw.choice(SCORES.get(kind, (1, 0)))
        rows.append(row | {name: cells[name](q, row) for name in more})
    if draw.random() < 0.3:
        draw.shuffle(rows)
    options: dict[str, Any] = {
        "cluster": "story" if "story" in more else None,
        "measures": ["score", draw.choice([name for name in more if name in ("latency", "cost")] or ["score"])],
        "missing": draw.choice(("drop", "zero")),
    }
    return rows, options | ({"factors": ("answer",)} if "answer" in more and draw.random() < 0.5 else {})


def outcome(source: Any, options: dict[str, Any]) -> Any:
    """Return everything that is read, or the kind of the refusal."""
    try:
        runs = hn.read(source, **options)
    except InputError as error:
        return type(error)
    return [
        (part.task, part.metric, part.questions.keys, part.clusters, part.n_missing, part.n_zero, part.bounds,
         part.factors, part.values.shape, [None if math.isnan(x) else x for x in part.values.ravel().tolist()],
         {name: [None if math.isnan(x) else x for x in used.values.ravel()] for name, used in part.usage.items()})
        for run in runs for part in run.scores
    ]  # fmt: skip


@pytest.mark.parametrize("seed", rest_slow(range(300), 25))
def test_five_forms_of_one_table_say_the_same(seed: int, tmp_path: Path) -> None:
    rows, options = table(random.Random(seed))
    names = list(dict.fromkeys(name for row in rows for name in row))
    frame = pd.DataFrame(rows, columns=names)
    (tmp_path / "t.json").write_text(json.dumps(rows))
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows({name: "" if cell is None else cell for name, cell in row.items()} for row in rows)
    with suppress(pa.ArrowException):  # a column of numbers and texts
        frame.to_parquet(tmp_path / "t.parquet")
    wanted = outcome(tmp_path / "t.json", options)
    for path in sorted(tmp_path.iterdir()):
        assert outcome(path, options) == wanted, path.name
    assert outcome(frame, options) == wanted

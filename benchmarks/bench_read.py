"""Reading lm-eval's samples files: three runs, a third of the bytes each, with the rows that lm-eval writes.

Multiple choice with four choices and the context in each (12 kB a row, `acc_prob` made of it), generation with one
answer (5 kB) and with ten and their scores (10 kB). Each is read by `harness_noise.read`, results file and all, in a
process of its own that has read a small run before, so that imports do not count. Time is CPU time, the least of
several rounds in which all readers take turns; memory is the peak of the process (Linux). Against pandas both count
from the time and the memory after the small run. Then a million questions in short rows: what each takes of memory.
Last, plain tables beside pandas (`read_tables.py`).
"""

from __future__ import annotations

import hashlib
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import read_tables
from table import Row, parser, show, size

KINDS = ("choice", "generation", "ten answers")
STEM = "2026-01-01T00-00-00.000000"
OURS, CLUSTERED, WITHOUT, PLAIN, PANDAS = "ours", "ours by cluster", "ours without orjson", "json", "pandas"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Text:
    """Words of a made language, with a line break here and there."""

    def __init__(self) -> None:
        self.draw = random.Random(1)
        letters = "abcdefghijklmnopqrstuvwxyz"
        words = ("".join(self.draw.choices(letters, k=self.draw.randint(2, 9))) for _ in range(size(100_000, 3000)))
        self.all = " ".join(word + (".\n" if self.draw.random() < 0.03 else "") for word in words)

    def __call__(self, n: int) -> str:
        start = self.draw.randrange(len(self.all) - n)
        return self.all[start : start + n]


def row(kind: str, i: int, text: Text) -> dict[str, Any]:
    """One line of a samples file, its keys in lm-eval's order."""
    draw = text.draw
    context, question = text(2400), " ".join(f"Question {i}: {text(240)}?".split())
    doc: dict[str, Any] = {"id": f"q{i}", "passage": f"p{i // 5}", "question": question}
    scores = [float(draw.random() < 0.6) for _ in range(10)]
    metrics: dict[str, Any]
    more: dict[str, Any] = {}
    if kind == "choice":
        texts, gold = [text(30) for _ in range(4)], draw.randrange(4)
        doc |= {"choices": texts, "answer": gold}
        asked = [{"arg_0": f"{context}\n{question}\nAnswer:", "arg_1": f" {choice}"} for choice in texts]
        likely = [-9 * draw.random() for _ in texts]
        resps = [[[str(value), "False"]] for value in likely]
        filtered, target = [item[0] for item in resps], gold
        metrics = {"acc": float(likely.index(max(likely)) == gold), "acc_norm": scores[0]}
    else:
        doc["answer"] = target = text(200)
        asked = [{"arg_0": f"{context}\n{question}", "arg_1": {"until": ["\n\n"], "do_sample": True}}]
        resps = [[text(600) for _ in range(10 if kind == "ten answers" else 1)]]
        filtered, metrics = resps[0][:1], {"exact_match": scores[0]}
        more = {"scores_per_repeat": {"exact_match": scores}} if kind == "ten answers" else {}
    return {
        "doc_id": i, "doc": doc, "target": target, "arguments": {f"gen_args_{j}": item for j, item in enumerate(asked)},
        "resps": resps, "filtered_resps": filtered, "filter": "none", "metrics": list(metrics),
        "doc_hash": digest(json.dumps(doc)), "prompt_hash": digest(asked[0]["arg_0"]),
        "target_hash": digest(str(target)), **metrics, **more,
    }  # fmt: skip


def lines(kind: str, megabytes: float) -> Iterator[str]:
    text, written, i = Text(), 0, 0
    while written < megabytes * 1e6:
        line = json.dumps(row(kind, i, text), ensure_ascii=False) + "\n"
        yield line
        written, i = written + len(line), i + 1


def short_lines(n: int) -> Iterator[str]:
    line = json.dumps(row("generation", 0, Text()) | {
        "doc_id": 123, "doc": {"question": "QUESTION" + 70 * "?"}, "target": "1", "resps": [["1"]],
        "filtered_resps": ["1"], "arguments": {"gen_args_0": {"arg_0": "?", "arg_1": {}}}, "doc_hash": "DOC",
        "target_hash": "TARGET", "prompt_hash": "PROMPT", "exact_match": 0.25,
    }) + "\n"  # fmt: skip
    for i in range(n):
        found = line.replace("123", str(i)).replace("QUESTION", f"Question {i}").replace("0.25", f"{i % 2}.0")
        for name in ("DOC", "TARGET", "PROMPT"):
            found = found.replace(name, digest(f"{name} {i}"))
        yield found


def write_run(folder: Path, kind: str, source: Iterator[str]) -> None:
    """A run's samples file, and a results file that describes it."""
    folder.mkdir()
    with (folder / f"samples_bench_{STEM}.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(source)
    metrics = ("acc", "acc_norm") if kind == "choice" else ("exact_match",)
    config = {
        "task": "bench", "output_type": "multiple_choice" if kind == "choice" else "generate_until",
        "metric_list": [{"metric": name, "aggregation": "mean", "higher_is_better": True} for name in metrics],
        "repeats": 10 if kind == "ten answers" else 1,
    }  # fmt: skip
    results = {
        "results": {"bench": {"alias": "bench"}}, "configs": {"bench": config}, "n-shot": {"bench": 0},
        "higher_is_better": {"bench": dict.fromkeys(metrics, True)}, "model_name": "bench",
        "config": {"model": "bench"},
    }  # fmt: skip
    (folder / f"results_{STEM}.json").write_text(json.dumps(results))


def samples(folder: Path) -> Path:
    return folder / f"samples_bench_{STEM}.jsonl"


def peak() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(reader: str, small: Path, folder: Path) -> None:
    """Run in a process of its own: prints CPU seconds, the peak of memory, what of it came with the work, and rows."""

    def read(path: Path) -> int:
        if reader == PLAIN:
            with samples(path).open("rb") as file:
                return sum(json.loads(line) is not None for line in file)
        if reader == PANDAS:
            return len(pandas.read_json(samples(path), lines=True))
        (run,) = harness_noise.read(path, cluster="passage" if reader == CLUSTERED else None)
        assert {part.metric for part in run.scores} >= {"acc_prob"} or "choice" not in path.name
        return len(run.scores[0].questions)

    if reader == PANDAS:
        import pandas
    elif reader != PLAIN:
        if reader == WITHOUT:
            sys.modules["orjson"] = None  # type: ignore[assignment]
        import harness_noise
    read(small)
    before, start = peak(), time.process_time()
    n = read(folder)
    print(time.process_time() - start, peak(), peak() - before, n)


def measured(reader: str, small: Path, folder: Path) -> list[float]:
    command = [sys.executable, __file__, "--measure", reader, str(small), str(folder)]
    return list(map(float, subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()))


def reading(folder: Path, megabytes: int, rounds: int) -> list[Row]:
    found: dict[tuple[str, str], list[list[float]]] = {}
    for kind in KINDS:
        small, large = folder / f"small {kind}", folder / kind
        write_run(small, kind, lines(kind, 0.5))
        write_run(large, kind, lines(kind, megabytes / len(KINDS)))
        for i in range(rounds):
            for reader in (PLAIN, OURS, CLUSTERED, WITHOUT, PANDAS):
                if reader != PANDAS or i == 0:  # it takes a minute and gigabytes
                    found.setdefault((reader, kind), []).append(measured(reader, small, large))
        samples(large).unlink()
    best = {key: [min(column) for column in zip(*items, strict=True)] for key, items in found.items()}
    for (reader, kind), (seconds, _, _, n) in best.items():
        ratio = seconds / best[PLAIN, kind][0]
        print(f"{kind}, {n:.0f} rows: {reader} {seconds:.2f} s, {ratio:.2f} × json", file=sys.stderr)

    def total(reader: str, column: int) -> float:
        return sum(best[reader, kind][column] for kind in KINDS)

    size = f"{megabytes / 1000:g} GB of samples"
    beside = "json.loads on each line"
    more = {reader: max(best[reader, kind][2] for kind in KINDS) for reader in (OURS, PANDAS)}
    n = max(best[OURS, kind][3] for kind in KINDS)
    return [
        Row(f"read {size}, orjson", total(OURS, 0), beside, total(PLAIN, 0), 0.6),
        Row(f"read {size} with --cluster, orjson", total(CLUSTERED, 0), beside, total(PLAIN, 0), 0.6),
        Row(f"read {size}, standard library", total(WITHOUT, 0), beside, total(PLAIN, 0), 1.2),
        Row(f"read {size}, orjson", total(OURS, 0), "pandas read_json(lines=True)", total(PANDAS, 0), 10, faster=True),
        Row("memory for the largest", max(more[OURS], 1), "pandas", more[PANDAS], 20, unit="MB", faster=True),
        Row("whole memory", max(best[OURS, kind][1] for kind in KINDS), "200 MB + 300 bytes a question",
            200 + 300 * n / 2**20, 1, unit="MB"),
    ]  # fmt: skip


def growing(folder: Path, questions: int) -> list[Row]:
    """Memory by the number of questions, in short rows and in long ones."""
    small, peaks = folder / "small short", {}
    write_run(small, "generation", short_lines(100))
    for n in (questions // 4, questions):
        write_run(folder / f"{n}", "generation", short_lines(n))
        peaks[n] = measured(OURS, small, folder / f"{n}")[1]
        samples(folder / f"{n}").unlink()
    low, high = peaks
    slope = (peaks[high] - peaks[low]) * 2**20 / (high - low)
    n = questions // 50
    write_run(folder / "long", "ten answers", islice(lines("ten answers", 1e9), n))
    write_run(folder / "short", "generation", short_lines(n))
    long, short = (measured(OURS, small, folder / name)[1] for name in ("long", "short"))
    return [
        Row(f"memory for {questions} questions", peaks[high], "200 MB + 300 bytes each", 200 + 300 * questions / 2**20,
            1, unit="MB"),
        Row("bytes for each further question", slope, "300", 300, 1, unit=""),
        Row(f"memory for {n} rows of 10 kB", long, "as many of 600 bytes", short, 1.2, unit="MB"),
    ]  # fmt: skip


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--megabytes", type=int, default=size(1000, 3), help="of samples files; default: 1 GB")
    options.add_argument(
        "--questions", type=int, default=size(1_000_000, 2000), help="short rows for the memory by question"
    )
    options.add_argument("--rounds", type=int, default=size(3, 1))
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return show([
            *reading(Path(folder), chosen.megabytes, chosen.rounds), *growing(Path(folder), chosen.questions),
            *read_tables.rows(Path(folder), chosen.rounds),
        ])  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        sys.exit(main())

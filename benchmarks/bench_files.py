"""Many files read by two processes (`arena --jobs 2`) beside one. They are Inspect logs and lm-eval outputs. The time
runs from the first look into the folder to the runs in memory. It includes the start of the processes and imports.

    python benchmarks/bench_files.py [--logs 32] [--outputs 128] [--rounds 2]
    python benchmarks/bench_files.py --thousandth FOLDER

The second form makes a thousandth of ten thousand logs with a billion answers, and prints what
docs/how/many-files.md says they cost: seconds, bytes on the wire and in memory. FOLDER keeps the files (2 GB).
"""

from __future__ import annotations

import json
import os
import pickle
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from table import Row, parser, show, size

DATE = "2025-01-01T00-00-00.000000"


def write_logs(folder: Path, count: int, questions: int, repeats: int) -> None:
    """Logs of that many models: the one sample of a real eval, with other ids and scores."""
    from zipfile import ZIP_DEFLATED, ZipFile

    from bench_inspect import write_log

    folder.mkdir(parents=True, exist_ok=True)
    template = folder / "template.eval"
    write_log(template, 1, 1)
    with ZipFile(template) as source:
        header = json.loads(source.read("header.json"))
        (name,) = (name for name in source.namelist() if name.startswith("samples/"))
        sample = json.loads(source.read(name))
        (summary,) = json.loads(source.read("summaries.json"))
        start = source.read("_journal/start.json")
    ids = [f"q{i}" for i in range(questions)]
    asked = [(i, key, epoch) for epoch in range(1, repeats + 1) for i, key in enumerate(ids)]
    with ZipFile(template, "w", ZIP_DEFLATED, compresslevel=1) as target:  # whose samples nobody reads
        target.writestr("_journal/start.json", start)
        for _, key, epoch in asked:
            target.writestr(f"samples/{key}_epoch_{epoch}.json", json.dumps(sample | {"id": key, "epoch": epoch}))
    for m in range(count):
        draw, summaries, total = random.Random(m), [], 0
        for i, key, epoch in asked:
            right = draw.random() < (i * 7919 % 1000) / 1000 * (0.8 + 0.02 * m)
            total += right
            new = {
                "id": key, "epoch": epoch, "uuid": f"{i}-{epoch}", "input": f"{sample['input']} {i}?",
                "metadata": {"passage": f"p{i // 4}", "source": "made"},
                "scores": {"match": sample["scores"]["match"] | {"value": "C" if right else "I"}},
            }  # fmt: skip
            summaries.append(summary | new)
        header["eval"] |= {"model": f"made/model-{m}", "task_id": f"task-{m}", "run_id": f"run-{m}"}
        header["eval"]["config"]["epochs"] = repeats
        header["eval"]["dataset"] |= {"samples": questions, "sample_ids": ids}
        header["results"] |= {"total_samples": len(summaries), "completed_samples": len(summaries)}
        header["results"]["scores"][0]["metrics"]["accuracy"]["value"] = total / len(summaries)
        path = folder / f"model-{m}.eval"
        shutil.copyfile(template, path)
        with ZipFile(path, "a", ZIP_DEFLATED, compresslevel=1) as target:
            target.writestr("summaries.json", json.dumps(summaries))
            target.writestr("reductions.json", "[]")
            target.writestr("header.json", json.dumps(header))
    template.unlink()


def row(i: int) -> dict[str, Any]:
    """A line of a samples file: a question of 60 words, a prompt of 400, ten answers of 60."""
    draw = random.Random(i)

    def text(n: int) -> str:
        return " ".join(hex(draw.getrandbits(24))[2:] for _ in range(n))

    doc = {"id": f"q{i}", "question": text(60), "answer": text(5)}
    scores = [float(draw.random() < 0.6) for _ in range(10)]
    resps = [[text(60) for _ in range(10)]]
    return {
        "doc_id": i, "doc": doc, "target": doc["answer"],
        "arguments": {"gen_args_0": {"arg_0": text(400), "arg_1": {"until": ["\n\n"]}}}, "resps": resps,
        "filtered_resps": resps[0][:1], "filter": "none", "metrics": ["exact_match"], "doc_hash": f"{i:064x}",
        "prompt_hash": f"{i + 1:064x}", "target_hash": f"{i + 2:064x}", "exact_match": scores[0],
        "scores_per_repeat": {"exact_match": scores},
    }  # fmt: skip


def write_outputs(folder: Path, count: int, questions: int) -> None:
    """lm-eval outputs of that many models with ten answers a question; their samples are links to one file."""
    first = None
    for m in range(count):
        run = folder / f"model-{m}"
        run.mkdir(parents=True)
        samples = run / f"samples_bench_{DATE}.jsonl"
        if first is None:
            first = samples
            with samples.open("w") as file:
                file.writelines(json.dumps(row(i)) + "\n" for i in range(questions))
        else:
            os.link(first, samples)
        task = {"metric_list": [{"metric": "exact_match", "aggregation": "mean"}], "repeats": 10}
        results = {
            "results": {"bench": {"alias": "bench", "exact_match,none": 0.6}},
            "configs": {"bench": task},
            "n-samples": {"bench": {"original": questions, "effective": questions}},
            "model_name": f"made/model-{m}",
        }
        (run / f"results_{DATE}.json").write_text(json.dumps(results))


def read(paths: list[str], jobs: int, compute: bool) -> dict[str, float]:
    """Run in a process of its own."""
    from functools import partial

    from harness_noise.extra.arena import workers
    from harness_noise.extra.arena.build import arena
    from harness_noise.io import registry as adapters
    from harness_noise.settings import Settings

    def cpu(who: int) -> float:
        used = resource.getrusage(who)
        return used.ru_utime + used.ru_stime

    before, own = peak(), cpu(resource.RUSAGE_SELF)
    start = time.perf_counter()
    runs, errors = adapters.read_what_can_be(paths, None, partial(workers.read_units, jobs=jobs))
    assert not errors, errors[0]
    found = {
        "seconds": time.perf_counter() - start,
        "own": cpu(resource.RUSAGE_SELF) - own,
        "workers": cpu(resource.RUSAGE_CHILDREN),
        "megabytes": peak() - before,
        "answers": float(sum(item.values.size for run in runs for item in run.scores)),
    }
    if compute:
        wire = [pickle.dumps(workers.travelling(run), 5) for run in runs]
        found["wire"] = float(sum(map(len, wire)))
        found["scores"] = float(sum(item.values.nbytes for run in runs for item in run.scores))
        start = time.perf_counter()
        arena(runs, Settings())
        found["arena"] = time.perf_counter() - start
    return found


def peak() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(paths: list[Path], jobs: int, *, compute: bool = False) -> dict[str, float]:
    command = [sys.executable, __file__, "--read", str(jobs), str(int(compute)), *map(str, paths)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    out: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return out


def in_turns(what: str, paths: list[Path], rounds: int, target: float) -> Row:
    found: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for jobs, seconds in found.items():
            seconds.append(measured(paths, jobs)["seconds"])
    return Row(what, min(found[2]), "--jobs 1", min(found[1]), target, faster=True)


def thousandth(folder: Path) -> None:
    """What a thousandth of ten thousand logs costs, and the arena of one benchmark of a hundred models."""
    logs, outputs = folder / "logs", folder / "outputs"
    if not logs.exists():
        write_logs(logs, 10, 10_000, 10)
    if not outputs.exists():
        write_outputs(outputs, 10, 10_000)
    for name, path in (("Inspect", logs), ("lm-eval", outputs)):
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        for jobs in (1, 2):
            found = measured([path], jobs, compute=True)
            print(
                f"{name}, {size / 1e6:.0f} MB, --jobs {jobs}: " + ", ".join(f"{k} {v:,.4g}" for k, v in found.items())
            )
    print("arena of 100 models × 10,000 questions × 10 answers: {seconds:.1f} s, {megabytes:.0f} MB".format(**board()))


def board() -> dict[str, float]:
    """One benchmark of a hundred models, from what a thousandth of the whole has been read to."""
    import numpy as np

    from harness_noise.data.questions import Questions
    from harness_noise.data.scores import Run, Scores
    from harness_noise.extra.arena.build import arena
    from harness_noise.settings import Settings

    draw = np.random.default_rng(0)
    questions = Questions(tuple(f"{i:064x}" for i in range(10_000)))
    ease = draw.random((10_000, 1))
    runs = []
    for m in range(100):
        values = (draw.random((10_000, 10)) < ease * (0.8 + 0.002 * m)).astype(np.float64)
        scores = Scores("t", "acc", "none", questions, values, higher_is_better=True)
        runs.append(Run(f"m{m}", f"m{m}", "made", scores=(scores,)))
    arena(runs[:2], Settings())  # imports
    before, start = peak(), time.perf_counter()
    arena(runs, Settings())
    return {"seconds": time.perf_counter() - start, "megabytes": peak() - before}


def main() -> int:
    if sys.argv[1:2] == ["--read"]:
        print(json.dumps(read(sys.argv[4:], int(sys.argv[2]), sys.argv[3] == "1")))
        return 0
    options = parser(__doc__)
    options.add_argument("--logs", type=int, default=size(32, 2))
    options.add_argument("--outputs", type=int, default=size(128, 2))
    options.add_argument("--rounds", type=int, default=size(2, 1))
    options.add_argument("--thousandth", type=Path, metavar="FOLDER")
    chosen = options.parse_args()
    if chosen.thousandth is not None:
        thousandth(chosen.thousandth)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_logs(folder / "logs", chosen.logs, size(2000, 20), 5)
        write_outputs(folder / "outputs", chosen.outputs, size(10_000, 20))
        rows = [
            in_turns(
                f"read {chosen.logs} Inspect logs of 10,000 answers, --jobs 2", [folder / "logs"], chosen.rounds, 1.7
            ),
            in_turns(
                f"read {chosen.outputs} lm-eval outputs of 100,000 answers, --jobs 2",
                [folder / "outputs"],
                chosen.rounds,
                1.7,
            ),
        ]
    return show(rows)


if __name__ == "__main__":
    sys.exit(main())

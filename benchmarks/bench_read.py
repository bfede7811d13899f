"""Reading lm-eval samples files against a plain pass with the standard library's json.

Rows as lm-eval writes them: multiple choice (the context once per choice) and generation with ten
answers. Each figure is CPU time over that of `for line in file: json.loads(line)` in the same run;
imports are not counted. Memory is the peak of a process of its own, less what it had before.
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
from pathlib import Path
from typing import Any

MEGABYTES = 150
ROUNDS = 3


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def rows(kind: str) -> Iterator[dict[str, Any]]:
    draw = random.Random(1)
    words = [hex(draw.getrandbits(24))[2:] for _ in range(4000)]

    def text(n: int) -> str:
        return " ".join(draw.choices(words, k=n))

    i = 0
    while True:
        question, context = text(60), text(350)
        doc: dict[str, Any] = {"id": f"q{i}", "question": question, "answer": text(40)}
        scores = [float(draw.random() < 0.6) for _ in range(10)]
        if kind == "choice":
            doc["choices"] = [text(5) for _ in range(4)]
            arguments = {f"gen_args_{j}": {"arg_0": context + question, "arg_1": doc["choices"][j]} for j in range(4)}
            resps = [[[str(-9 * draw.random()), "False"]] for _ in range(4)]
            metrics: dict[str, Any] = {"acc": scores[0], "acc_norm": scores[1]}
        else:
            arguments = {"gen_args_0": {"arg_0": context + question, "arg_1": {"until": ["\n\n"]}}}  # type: ignore[dict-item]
            resps = [[text(60) for _ in range(10)]]  # type: ignore[misc]
            metrics = {"exact_match": scores[0]}
        more = {} if kind == "choice" else {"scores_per_repeat": {"exact_match": scores}}
        yield {
            "doc_id": i, "doc": doc, "target": doc["answer"], "arguments": arguments, "resps": resps,
            "filtered_resps": resps[0][:1], "filter": "none", "metrics": list(metrics), "doc_hash": digest(question),
            "prompt_hash": digest(context), "target_hash": digest(doc["answer"]), **metrics, **more,
        }  # fmt: skip
        i += 1


def measure(reader: str, path: Path) -> None:
    """Run in a process of its own: prints CPU seconds, questions and megabytes."""
    from harness_noise_adapters.lm_eval_harness import samples

    if reader == "standard library":
        samples._decoder = lambda: json.loads  # type: ignore[assignment]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, n = time.process_time(), 0
    if reader == "plain json":
        with path.open("rb") as file:
            for line in file:
                json.loads(line)
    else:
        n = len(samples.read_samples(path, samples.Wanted("bench")).keys)
    seconds = time.process_time() - start
    print(seconds, n, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def best(reader: str, path: Path) -> tuple[float, int, float]:
    done = [
        subprocess.run([sys.executable, __file__, reader, path], capture_output=True, text=True, check=True).stdout
        for _ in range(ROUNDS)
    ]
    seconds, n, megabytes = min((tuple(map(float, line.split())) for line in done), key=lambda item: item[0])
    return seconds, int(n), megabytes


def main() -> None:
    readers = ["standard library"]
    try:
        import orjson  # noqa: F401

        readers.append("orjson")
    except ImportError:
        print("orjson is not installed: only the standard library is measured")
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("choice", "generation"):
            path = Path(folder) / f"samples_{kind}.jsonl"
            with path.open("w") as file:
                for row in rows(kind):
                    file.write(json.dumps(row) + "\n")
                    if file.tell() > MEGABYTES << 20:
                        break
            plain, _, _ = best("plain json", path)
            print(f"{kind}: {path.stat().st_size / 1e6:.0f} MB, plain json {plain:.2f} s")
            for reader in readers:
                seconds, n, megabytes = best(reader, path)
                print(
                    f"  {reader:16}  {seconds:.2f} s  {seconds / plain:.2f} × plain json  "
                    f"{megabytes:.0f} MB for {n} questions ({megabytes * 2**20 / n:.0f} bytes each)"
                )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        measure(sys.argv[1], Path(sys.argv[2]))
    else:
        main()

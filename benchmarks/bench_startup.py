"""The cost of starting: each command beside what it cannot do without, in processor time of whole processes.

Both run in turns and the medians are compared. `analyze` and `compare` are measured on runs of 200 questions,
beside the imports that they need; a log of Inspect needs no more than a table.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from table import Row, parser, show, size

COMMAND = str(Path(sys.executable).parent / "harness-noise")
ARRAYS = "import numpy, scipy.special"
SHOWN = "import click, rich.console, rich.table, importlib.metadata"


def seconds(command: list[str], cwd: str) -> float:
    """User and system time of one run."""
    # compiled modules as an installation has them, whatever the environment says
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = f"{cwd}/compiled"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, cwd=cwd, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def beside(what: str, ours: list[str], named: str, peer: str, target: float, cwd: str, rounds: int) -> Row:
    """Medians over runs in turns, after one of each that does not count."""
    python = [sys.executable, "-c", peer]
    seconds(ours, cwd), seconds(python, cwd)
    pairs = [(seconds(ours, cwd), seconds(python, cwd)) for _ in range(rounds)]
    a, b = (statistics.median(side) for side in zip(*pairs, strict=True))
    return Row(what, a, named, b, target)


def write_table(path: Path, right: int = 6) -> None:
    rows = [f"q{i},{int(i * 7 % 10 < right)},{i // 10}" for i in range(200)]
    path.write_text("question,score,cluster\n" + "\n".join(rows) + "\n")


def write_lm_eval(folder: Path, questions: int = 200, model: str = "toy") -> None:
    """An output folder as lm-eval writes it: a results file and the samples."""
    date = "2025-01-01T00-00-00.000000"
    scores = [float(i * 7 % 10 < 6) for i in range(questions)]
    results = {
        "results": {"toy": {"alias": "toy", "acc,none": sum(scores) / questions, "acc_stderr,none": 0.03}},
        "group_subtasks": {"toy": []}, "versions": {"toy": 1.0}, "n-shot": {"toy": 0},
        "configs": {"toy": {"task": "toy", "output_type": "multiple_choice",
                            "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}]}},
        "higher_is_better": {"toy": {"acc": True}},
        "n-samples": {"toy": {"original": questions, "effective": questions}},
        "config": {"model": "dummy", "model_args": ""}, "model_name": model, "lm_eval_version": "0.4.13",
    }  # fmt: skip
    lines = [
        {"doc_id": i, "doc": {"question": f"{i}?", "cluster": i // 10}, "target": "0",
         "arguments": {f"gen_args_{j}": {"arg_0": f"{i}?", "arg_1": f" {j}"} for j in range(2)},
         "resps": [[["-1.0", "False"]], [["-2.0", "False"]]], "filtered_resps": [["-1.0", "False"], ["-2.0", "False"]],
         "filter": "none", "metrics": ["acc"], "doc_hash": f"{i:064x}", "prompt_hash": f"{i:064x}",
         "target_hash": f"{0:064x}", "acc": score}
        for i, score in enumerate(scores)
    ]  # fmt: skip
    folder.mkdir()
    (folder / f"results_{date}.json").write_text(json.dumps(results))
    (folder / f"samples_toy_{date}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=size(15, 1))
    rounds = options.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder) / "scores.csv")
        write_table(Path(folder) / "others.csv", right=7)
        write_lm_eval(Path(folder) / "lm_eval")
        analyze = [COMMAND, "analyze", "-q"]
        needed = f"{ARRAYS}\n{SHOWN}"
        rows = [
            beside("import harness_noise", [sys.executable, "-c", "import harness_noise"], "python -c pass", "pass",
                   3.0, folder, rounds),
            beside("harness-noise --help", [COMMAND, "--help"], "import click", "import click", 1.6, folder, rounds),
            beside("analyze, table of 200 questions", [*analyze, "scores.csv"],
                   "importing numpy, scipy.special, click, rich", needed, 1.5, folder, rounds),
            beside("compare, two tables of 200 questions", [COMMAND, "compare", "-q", "scores.csv", "others.csv"],
                   "importing numpy, scipy.special, click, rich", needed, 1.5, folder, rounds),
            beside("analyze, lm-eval run of 200 questions", [*analyze, "lm_eval"],
                   "importing numpy, scipy.special, click, rich", needed, 1.5, folder, rounds),
        ]  # fmt: skip
        try:
            import inspect_ai  # noqa: F401
        except ImportError:
            print("inspect-ai is not installed: its logs are not measured", file=sys.stderr)
        else:
            from bench_inspect import write_log

            write_log(Path(folder) / "log.eval", 200, 1)
            rows.append(
                beside("analyze, Inspect log of 200 questions", [*analyze, "log.eval"],
                       "importing numpy, scipy.special, click, rich", needed, 1.5, folder, rounds)
            )  # fmt: skip
    return show(rows)


if __name__ == "__main__":
    sys.exit(main())

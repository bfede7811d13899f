"""What other programs say of the same four comparisons, into `docs/neighbours.md`.

    python benchmarks/neighbours.py --python PYTHON [--out docs/neighbours.md]

PYTHON is that of an environment into which `pip install 'errorbars[inspect]' evalstats claimeval` went; this program
runs where harness-noise and both harnesses are installed. Each neighbour is given what its own documentation asks for:
the harness's files if it reads them, the column of clusters if it takes one, else a table in its own layout.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import harness_noise as hn

NAMES = ("errorbars", "evalstats", "claimeval")
ERRORBARS = """
import json, subprocess, sys, shutil, os
program = os.path.join(os.path.dirname(sys.executable), "errorbars")
done = subprocess.run([program, "compare", *json.loads(sys.argv[1]), "--json"], capture_output=True, text=True)
if done.returncode:
    print(json.dumps({"said": "asks: " + done.stderr.strip().splitlines()[-1].rpartition(": ")[2]}))
else:
    row = json.loads(done.stdout)
    print(json.dumps({"diff": row["mean_diff"], "se": row["se_paired"], "low": row["ci_low"], "high": row["ci_high"]}))
"""
EVALSTATS = """
import contextlib, json, sys, warnings
warnings.simplefilter("ignore")
import pandas as pd
frame = pd.read_csv(json.loads(sys.argv[1])[0])
with contextlib.redirect_stdout(sys.stderr):
    import evalstats as es
    found = es.compare(es.load_from(frame), factors="model").to_dict()
(pair,) = found["pairwise"]
diff, low, high = pair["diff"], pair["ci_low"], pair["ci_high"]
if pair["a"] != "A":
    diff, low, high = -diff, -high, -low
print(json.dumps({"diff": diff, "se": None, "low": low, "high": high}))
"""
CLAIMEVAL = """
import csv, json, sys
from claimeval import Claim, Rollout, RolloutSet, evaluate_claims
rows = list(csv.DictReader(open(json.loads(sys.argv[1])[0])))
rollouts = [Rollout(r["model"], r["item"], seed=int(r["run"]), success=float(r["score"]), cost=0.0,
                    group=r.get("cluster") or None) for r in rows]
(found,) = evaluate_claims(RolloutSet(rollouts), [Claim("pairwise", subject="A", comparators=["B"])])
print(json.dumps({"said": f"P(A better) = {found['probability']:.3f}, by {found['mode']}"}))
"""


def draws(seed: int, clusters: int, size: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, K) right answers of A and of B on clustered questions; A is better by 0.06."""
    rng = np.random.default_rng(seed)
    u = np.repeat(rng.normal(0.5, 0.3, clusters), size) + rng.normal(0, 0.1, clusters * size)
    return tuple(
        (rng.uniform(size=(len(u), K)) < np.clip(u + gain, 0, 1)[:, None]).astype(float) for gain in (0.06, 0.0)
    )  # type: ignore[return-value]


def table(path: Path, a: np.ndarray, b: np.ndarray, clusters: list[str] | None = None) -> Path:
    """Long: model, item, run, score, and the cluster."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["model", "item", "run", "score", *(["cluster"] if clusters else [])])
        for model, scores in (("A", a), ("B", b)):
            for i, row in enumerate(scores):
                for k, score in enumerate(row):
                    writer.writerow([model, f"q{i}", k, score, *([clusters[i]] if clusters else [])])
    return path


def lm_eval_folder(path: Path, model: str, filters: dict[str, np.ndarray]) -> Path:
    """A run of lm-eval 0.4.13 whose task has two filters: a results file and its samples."""
    path.mkdir()
    stamp = "2026-01-01T00-00-00.000000"
    rows = {f"exact_match,{name}": float(scores.mean()) for name, scores in filters.items()}
    results = {
        "results": {"math": {"alias": "math", **rows}}, "configs": {"math": {"task": "math", "repeats": 1}},
        "higher_is_better": {"math": {"exact_match": True}}, "n-shot": {"math": 0}, "model_name": model,
        "n-samples": {"math": {"original": 200, "effective": 200}}, "versions": {"math": 1}, "date": 1767225600.0,
    }  # fmt: skip
    (path / f"results_{stamp}.json").write_text(json.dumps(results))
    with (path / f"samples_math_{stamp}.jsonl").open("w") as stream:
        for name, scores in filters.items():
            for i, score in enumerate(scores):
                line = {
                    "doc_id": i, "doc": {"question": f"question {i}"}, "target": "1", "arguments": {}, "filter": name,
                    "resps": [["1"]], "filtered_resps": ["1"], "metrics": ["exact_match"], "exact_match": float(score),
                    "doc_hash": f"d{i}", "prompt_hash": f"p{i}", "target_hash": f"t{i}",
                }  # fmt: skip
                stream.write(json.dumps(line) + "\n")
    return path


def inspect_log(folder: Path, model: str, scores: np.ndarray) -> Path:
    """A real log of Inspect's own run, with K epochs."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import Score, Target, accuracy, scorer, stderr
    from inspect_ai.solver import Generate, Solver, TaskState, solver

    @solver
    def silent() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            return state

        return solve

    @scorer(metrics=[accuracy(), stderr()])
    def known() -> Callable[[TaskState, Target], Any]:
        async def score(state: TaskState, target: Target) -> Score:
            return Score(value=float(scores[int(str(state.sample_id)[1:]), state.epoch - 1]))

        return score

    task = Task(
        [Sample(id=f"q{i}", input=f"question {i}", target="1") for i in range(len(scores))],
        solver=silent(),
        scorer=known(),
    )
    (log,) = eval(
        task, model=f"mockllm/{model}", epochs=scores.shape[1], log_dir=str(folder), display="none", log_format="eval"
    )
    return Path(log.location.removeprefix("file://"))


def ask(python: str, code: str, words: list[str]) -> dict[str, Any]:
    done = subprocess.run([python, "-c", code, json.dumps(words)], capture_output=True, text=True)
    if done.returncode:
        return {"said": f"error: {done.stderr.strip().splitlines()[-1]}"}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def cell(found: dict[str, Any] | str) -> str:
    if isinstance(found, str) or "said" in found:
        return (found if isinstance(found, str) else found["said"]).replace("|", "/")
    se = "" if found["se"] is None else f" ± {found['se']:.3f}"
    return f"{found['diff']:.3f}{se} [{found['low']:.3f}, {found['high']:.3f}]"


def ours(a: Path, b: Path | None = None, **choices: Any) -> str:
    runs = hn.read(a) if b is None else [hn.read(a), hn.read(b)]
    rows = hn.compare(runs[0], runs[1], **choices).comparisons  # type: ignore[index]
    (row,) = [row for row in rows if row.scorer != "flexible"]
    return cell({"diff": row.diff, "se": row.se, "low": row.ci_low, "high": row.ci_high})


def rows_of(python: str, folder: Path) -> list[list[str]]:
    """One row for each comparison: what it is, and what each program says."""

    def errorbars(*words: str) -> str:
        return cell(ask(python, ERRORBARS, list(words)))

    def evalstats(path: Path) -> str:
        return cell(ask(python, EVALSTATS, [str(path)]))

    def claimeval(path: Path) -> str:
        return cell(ask(python, CLAIMEVAL, [str(path)]))

    a, b = draws(1, 200, 1, 1)
    rng = np.random.default_rng(9)
    runs, words = [], []
    for model, scores in (("A", a[:, 0]), ("B", b[:, 0])):
        filters = {"strict": scores, "flexible": np.maximum(scores, rng.uniform(size=200) < 0.3)}
        runs.append(lm_eval_folder(folder / f"lm-eval-{model}", model, filters))
        words.append(f"{model}={next(runs[-1].glob('samples_*'))}")
    one = table(folder / "one.csv", a, b)
    both = f"{errorbars(*words)}; with `--filter strict`: {errorbars(*words, '--filter', 'strict')}"
    table_only = "as a table: "
    what = "one task of lm-eval with two filters, the filter `strict`"
    out = [[what, ours(*runs), both, table_only + evalstats(one), table_only + claimeval(one)]]
    a, b = draws(2, 20, 10, 1)
    path = table(folder / "clustered.csv", a, b, [f"c{i // 10}" for i in range(200)])
    theirs = errorbars(str(path), "--cluster-col", "cluster", "--question-col", "item")
    what = "a table of 20 clusters × 10 questions"
    out.append([what, ours(path), theirs, f"without clusters: {evalstats(path)}", claimeval(path)])
    a, b = draws(3, 100, 1, 5)
    logs = [inspect_log(folder / f"inspect-{model}", model, scores) for model, scores in (("A", a), ("B", b))]
    five = table(folder / "five.csv", a, b)
    theirs = errorbars(*(f"{model}={path}" for model, path in zip("AB", logs, strict=True)))
    what = "two Inspect logs, 100 questions × 5 epochs"
    out.append([what, ours(*logs), theirs, table_only + evalstats(five), table_only + claimeval(five)])
    rng = np.random.default_rng(4)
    base = rng.beta(2, 1, (150, 1))
    a, b = (np.clip(base + gain + rng.normal(0, 0.15, (150, 1)), 0, 1).round(3) for gain in (0.03, 0.0))
    path = table(folder / "graded.csv", a, b)
    theirs = errorbars(str(path), "--question-col", "item")
    out.append(["a graded metric in [0, 1], 150 questions", ours(path), theirs, evalstats(path), claimeval(path)])
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="of the environment of the neighbours")
    parser.add_argument("--out", type=Path, default=Path("docs/neighbours.md"))
    chosen = parser.parse_args()
    code = f"from importlib.metadata import version; print(*map(version, {NAMES!r}))"
    versions = subprocess.check_output([chosen.python, "-c", code], text=True).split()
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(chosen.python, Path(folder))
    heads = [
        "A − B of …",
        f"harness-noise {hn.__version__}",
        *(f"{n} {v}" for n, v in zip(NAMES, versions, strict=True)),
    ]
    lines = [f"| {' | '.join(heads)} |", "|---|---|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    before, mark, rest = chosen.out.read_text(encoding="utf-8").partition("<!-- the table -->\n")
    _, end, after = rest.partition("<!-- end of the table -->\n")
    text = "\n".join(lines)
    chosen.out.write_text(f"{before}{mark}\n{text}\n\n{end}{after}", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    sys.exit(main())

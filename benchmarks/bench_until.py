"""Stopping a live run when it is decided: the cost of a look, and what stopping saves.

    python benchmarks/bench_until.py [--docs 5000] [--rounds 1] [--runs 20] [--harness lm-eval]

A look beside the block that it follows: the comparison of the scores by now, with its boundary, against lm-eval's own
`evaluate` of the block with a model that takes 30 ms a question (a server that answers 32 at a time in a second). The
whole of what asking in blocks costs (the second scoring of every question, all looks) beside the plain run of the same
questions with that model. A look of Inspect beside the time that this model takes for a block. And how many answers are
asked, on average over runs of real lm-eval and Inspect with simulated models and one or five answers to a question:
where nothing differs, at the difference that the run of everything has 80% power for, and at twice that.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from table import Row, parser, show, size

SECONDS = 0.03
"""Seconds that a question takes."""
N = size(400, 60)
SHARE = 0.5
"""Accuracy of the run that is compared with."""


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--docs", type=int, default=size(5000, 100))
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--runs", type=int, default=size(20, 1))
    options.add_argument("--harness", choices=("lm-eval", "inspect"), help="only this one")
    args = options.parse_args()
    from support import lm_eval_models as toys  # PYTHONPATH=tests: `make bench` says so

    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stderr(io.StringIO()):
        folder = Path(name)
        one_filter = {"filter_list": toys.GENERATE["filter_list"][1:]}
        toys.write_task(folder, "large", toys.docs(args.docs), toys.GENERATE, **one_filter)
        toys.write_task(folder, "small", toys.docs(N), toys.GENERATE, **one_filter)
        rows: list[Row] = []
        if args.harness != "inspect":
            rows += costs(toys, folder, args.docs, args.rounds)
            rows += [row for K in (1, 5) for row in savings("lm-eval", partial(in_lm_eval, toys, folder), args.runs, K)]
        if args.harness != "lm-eval":
            looks: list[float] = []
            for K in (1, 5):
                rows += savings("Inspect", partial(in_inspect, folder, looks), args.runs, K)
            block = SECONDS * N / 20
            rows.append(Row(f"a look of Inspect, the mean of {len(looks):,}", mean(looks), "its block", block, 0.01))
    return show(rows)


def finished(toys: Any, folder: Path, task: str, seed: int, K: int = 1) -> str:
    """A run of all questions, each answered K times, to compare with."""
    from harness_noise_adapters.lm_eval_harness import noise
    from support.lm_eval_live import save

    out = folder / f"{task}-{seed}-{K}"
    if out.exists():
        return str(out)
    with noise(repeats=K):
        save(folder, out, [task], toys.HashModel(seed=1000 + seed, share=SHARE))
    return str(out)


def costs(toys: Any, folder: Path, docs: int, rounds: int) -> list[Row]:
    """A look, and all that asking in blocks adds, of a run that is not decided before its end."""
    model = {"seed": 1000, "share": SHARE}
    plain = min(timed(lambda: toys.simple_evaluate(folder, ["large"], toys.HashModel(**model))) for _ in range(rounds))
    rows = []
    for looks in ("20", "anytime"):
        found = [asked_in_blocks(toys, folder, looks, model) for _ in range(rounds)]
        count = found[0][2]
        look, block = min(look for look, _, _ in found) / count, SECONDS * docs / count + plain / count
        rows.append(Row(f"a look, the mean of {count} at {docs:,} questions", look, "its block", block, 0.01))
        whole = min(whole for _, whole, _ in found) + SECONDS * docs
        rows.append(
            Row(f"{docs:,} questions in {count} blocks, model and all", whole, "lm-eval in one go",
                plain + SECONDS * docs, 1.1)
        )  # fmt: skip
    return rows


def asked_in_blocks(toys: Any, folder: Path, looks: str, model: dict[str, Any]) -> tuple[float, float, int]:
    """Processor seconds of all looks, and of the whole run; and how many looks."""
    from harness_noise_adapters.extra.stopping.of_lm_eval import growing
    from harness_noise_adapters.lm_eval_harness import noise

    against, original, seconds = finished(toys, folder, "large", 0), growing.Growing._look, []

    def look(self: Any, unit: Any) -> None:
        seconds.append(timed(lambda: original(self, unit)))

    growing.Growing._look = look  # type: ignore[method-assign]
    try:
        with noise(until="decided", against=against, looks=looks, futility=False) as session:
            whole = timed(lambda: toys.simple_evaluate(folder, ["large"], toys.HashModel(**model)))
    finally:
        growing.Growing._look = original  # type: ignore[method-assign]
    if session.analysis is None or session.analysis.drawn:
        raise RuntimeError(session.problems or "it was decided before its end")
    return sum(seconds), whole, len(seconds)


def timed(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def savings(harness: str, run: Callable[[int, int, float], tuple[int, str]], runs: int, K: int) -> list[Row]:
    """Share of the answers that are asked for, at no difference, at the planned one and at twice that."""
    # 80% power; the two are hardly correlated, and questions differ little
    planned = 2.8 * math.sqrt(2 * SHARE * (1 - SHARE) * 0.95 / (N * K))
    rows = []
    for times, target in zip((0, 1, 2), ((0.9, 0.9, 0.6) if K == 1 else (0.6, 0.6, 0.3)), strict=True):
        ended = [run(seed, K, SHARE + times * planned) for seed in range(runs)]
        what = "no difference" if not times else f"{times} × the planned difference of {planned:.3f}"
        better = sum(decision == "A better" for _, decision in ended)
        print(f"{harness}, K = {K}, {what}: A better in {better} of {runs} runs", file=sys.__stderr__, flush=True)
        asked = mean([answers for answers, _ in ended])
        rows.append(Row(f"{harness}: answers asked, K = {K}, {what}", asked, f"all {N * K}", N * K, target, unit=""))
    return rows


def in_lm_eval(toys: Any, folder: Path, seed: int, K: int, share: float) -> tuple[int, str]:
    """Answers that a run of lm-eval asked for, and its decision."""
    from harness_noise_adapters.lm_eval_harness import noise

    model = toys.HashModel(seed=seed, share=share)
    with noise(until="decided", against=finished(toys, folder, "small", seed, K), seed=seed, repeats=K) as session:
        toys.simple_evaluate(folder, ["small"], model)
    return sum(model.asked.values()), session.analysis.sequential[0].decision


def in_inspect(folder: Path, looks: list[float], seed: int, K: int, share: float) -> tuple[int, str]:
    """Answers that a run of Inspect asked for, and its decision; `looks` gets the processor seconds of each look."""
    from harness_noise_adapters.extra.stopping.of_inspect.stopper import Stopper

    against = inspect_log(folder / f"against-{seed}-{K}", 1000 + seed, K, SHARE)
    original = Stopper._take

    def take(self: Any, *arguments: Any) -> None:
        looks.append(timed(lambda: original(self, *arguments)))

    Stopper._take = take  # type: ignore[method-assign]
    try:
        choices = {"noise_until": "decided", "noise_against": against.location}
        log = inspect_log(folder / "grown", seed, K, share, metadata=choices, sample_shuffle=seed + 2)
    finally:
        Stopper._take = original  # type: ignore[method-assign]
    (found,) = log.results.early_stopping.metadata["noise"]["sequential"]
    return found["n_answers"], found["decision"]


def inspect_log(folder: Path, seed: int, K: int, share: float, **options: Any) -> Any:
    """A run of Inspect whose model is right with this probability; one that is there is not made again."""
    import random

    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.log import list_eval_logs, read_eval_log
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import match
    from inspect_ai.solver import solver

    if not options and folder.exists():
        return read_eval_log(list_eval_logs(str(folder))[0], header_only=True)

    @solver
    def coin() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            right = random.Random(f"{seed} {state.sample_id} {state.epoch}").random() < share
            state.output = ModelOutput.from_content("mockllm/coin", "yes" if right else "no")
            return state

        return solve

    data = MemoryDataset([Sample(id=i, input=f"Question {i}?", target="yes") for i in range(1, N + 1)])
    task = Task(dataset=data, solver=coin(), scorer=match(), name="coins")
    (log,) = eval(task, model="mockllm/coin", epochs=K, display="none", log_dir=str(folder), max_samples=1, **options)
    if log.status != "success":
        raise RuntimeError(log.error)
    return log


if __name__ == "__main__":
    sys.exit(main())

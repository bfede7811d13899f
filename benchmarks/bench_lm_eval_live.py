"""The cost of the noise in a live lm-eval run of 5,000 questions with K = 10, within one process.

    python benchmarks/bench_lm_eval_live.py [--docs 5000] [--repeats 10] [--rounds 3]

Two figures. The statistics and the injection (everything after the scores are there: arrays, the
analysis, the rows, the annotated samples) beside lm-eval's own `evaluate`, with the same simulated
model and the same number of answers. Re-scoring K answers beside K × the time in which lm-eval scores
one answer per question. The best of several rounds counts, since a busy machine only adds.
"""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from table import Row, parser, show, size

from harness_noise_adapters.lm_eval_harness.scoring import rescore

STATISTICS_LIMIT = 0.02
RESCORING_LIMIT = 1.2


class Clock:
    """Processor seconds spent inside the functions that are wrapped."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - start

        return timed


@contextlib.contextmanager
def attribute(target: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(target, name)
    setattr(target, name, value)
    try:
        yield
    finally:
        setattr(target, name, before)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--docs", type=int, default=size(5000, 20))
    options.add_argument("--repeats", type=int, default=size(10, 2))
    options.add_argument("--rounds", type=int, default=size(3, 1))
    args = options.parse_args()
    import lm_eval.utils

    from support import lm_eval_models as toys  # PYTHONPATH=tests: `make bench` says so

    # tests compile a template once, lm-eval itself for every question: what it costs beside that is to be measured
    vars(lm_eval.utils.env).pop("from_string", None)
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one_filter = {"filter_list": toys.GENERATE["filter_list"][1:]}
        toys.write_task(folder, "one", toys.docs(args.docs, per_template=10), toys.GENERATE, **one_filter)
        toys.write_task(
            folder, "all", toys.docs(args.docs, per_template=10), toys.GENERATE, repeats=args.repeats, **one_filter
        )
        rounds = [measure(toys, folder, args.repeats) for _ in range(args.rounds)]
    best = {key: min(item[key] for item in rounds) for key in rounds[0]}
    answers = f"{args.docs:,} × {args.repeats} answers"
    return show(
        [
            Row(f"statistics and injection, {answers}", best["statistics"], "lm-eval's own evaluate of as many",
                best["evaluate_K"], STATISTICS_LIMIT),
            Row(f"re-scoring {answers}", best["rescoring"], f"{args.repeats} × lm-eval's scoring of one each",
                args.repeats * best["scoring_1"], RESCORING_LIMIT),
        ]
    )  # fmt: skip


def measure(toys: Any, folder: Path, K: int) -> dict[str, float]:
    """One round: native with one answer, native with K, and with the noise."""
    from lm_eval import evaluator
    from lm_eval.api.task import ConfigurableTask

    from harness_noise_adapters.lm_eval_harness import noise
    from harness_noise_adapters.lm_eval_harness.live import collect, hook

    clock = Clock()

    def run(task: str) -> None:
        gc.collect()
        with contextlib.redirect_stderr(io.StringIO()):
            toys.simple_evaluate(folder, [task])

    with (
        attribute(evaluator, "evaluate", clock.wrap("evaluate_1", evaluator.evaluate)),
        attribute(ConfigurableTask, "apply_filters", clock.wrap("scoring_1", ConfigurableTask.apply_filters)),
        attribute(ConfigurableTask, "process_results", clock.wrap("scoring_1", ConfigurableTask.process_results)),
    ):
        run("one")
    with attribute(evaluator, "evaluate", clock.wrap("evaluate_K", evaluator.evaluate)):
        run("all")
    with (
        attribute(collect, "rescore", clock.wrap("rescoring", rescore.rescore)),
        attribute(hook._Live, "finish", clock.wrap("finish", hook._Live.finish)),
        noise(repeats=K, cluster="template") as session,
    ):
        run("one")
    if session.analysis is None:
        raise RuntimeError(session.problems)
    found = dict(clock.seconds)
    return found | {"statistics": found["finish"] - found["rescoring"]}


if __name__ == "__main__":
    sys.exit(main())

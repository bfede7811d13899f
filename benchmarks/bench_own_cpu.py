"""The processor time of our own code in a live run, free model, 500 questions with 4 answers each.

    python benchmarks/bench_own_cpu.py [--questions 500] [--repeats 4] [--rounds 3]

A clock (`time.thread_time`) runs from every entry into our code to its end, and stops while the harness's own code
runs inside: its evaluation, its model, its filters and metrics. So what we ask, score, compute, write and print
counts, and the harness's work on the further answers does not. Beside it: the whole run, from the start of its process.
Loading our modules is a row of its own. Whole runs with and without the flag differ by more than that from one to the
next.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from table import Row, parser, show, size

LM_EVAL_LIMIT = 0.02
INSPECT_LIMIT = 0.012
IMPORTS_LIMIT = 0.05
QUESTIONS_OF_A_CLUSTER = 10


class Clock:
    """Seconds of this thread in our own code."""

    def __init__(self) -> None:
        self.seconds = self.imports = 0.0
        self._ours = False
        self._since = time.thread_time()

    def _switch(self, ours: bool) -> bool:
        """Turn to our code or to the harness's; return whose it was before."""
        now, before = time.thread_time(), self._ours
        self.seconds += (now - self._since) * before
        self._ours, self._since = ours, now
        return before

    @contextlib.contextmanager
    def importing(self) -> Iterator[None]:
        """Within it our modules are loaded, which takes as long for a small run as for a large one."""
        start = time.thread_time()
        yield
        self.imports += time.thread_time() - start

    def of(self, function: Callable[..., Any], *, ours: bool) -> Callable[..., Any]:
        """The function, whose time is ours or the harness's."""

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            before = self._switch(ours)
            try:
                return function(*args, **kwargs)
            finally:
                self._switch(before)

        return timed

    def ours(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return self.of(function, ours=True)

    def theirs(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return self.of(function, ours=False)

    def stepped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A coroutine function of ours: what runs while it waits is not."""
        clock = self

        class Steps:
            def __init__(self, coroutine: Any) -> None:
                self.coroutine = coroutine

            def __await__(self) -> Iterator[Any]:
                step, value = self.coroutine.__await__(), None
                while True:
                    try:
                        waiting = clock.ours(step.send)(value)
                    except StopIteration as end:
                        return end.value
                    value = yield waiting

        @functools.wraps(function)
        async def timed(*args: Any, **kwargs: Any) -> Any:
            return await Steps(function(*args, **kwargs))

        return timed


def lm_eval(clock: Clock, folder: Path, questions: int, repeats: int) -> None:
    """A run of lm-eval's command line with the flag."""
    from lm_eval._cli.run import Run
    from lm_eval.api.filter import FilterEnsemble
    from lm_eval.api.task import ConfigurableTask

    from support import lm_eval_models as toys

    with clock.importing():
        from harness_noise_adapters.lm_eval_harness.live import cli, hook, saving, sessions  # noqa: F401
        from harness_noise_adapters.lm_eval_harness.live import repeats as asking

    vars(sys.modules["lm_eval.utils"].env).pop("from_string", None)
    toys.write_task(folder, "gen", toys.docs(questions, per_template=QUESTIONS_OF_A_CLUSTER), toys.GENERATE)

    # what lm-eval itself imports for a task is not ours, though our check of the names loads one first
    manager = toys.TaskManager(include_path=str(folder), include_defaults=False)
    (getattr(manager, "load", None) or manager.load_task_or_group)(["gen"])
    for name, make in list(sessions._WRAPPERS.items()):
        sessions._WRAPPERS[name] = lambda original, make=make: clock.ours(make(clock.theirs(original)))
    answering = asking.Asking._answering
    asking.Asking._answering = lambda self, name, call: clock.ours(answering(self, name, call))  # type: ignore[method-assign]
    for owner, name in (
        (toys.HashModel, "generate_until"),
        (FilterEnsemble, "apply"),
        (ConfigurableTask, "process_results"),
    ):
        setattr(owner, name, clock.theirs(getattr(owner, name)))
    for name in ("_results", "_samples"):
        make = getattr(saving.Saving, name)
        put = lambda self, original, make=make: clock.ours(make(self, clock.theirs(original)))  # noqa: E731
        setattr(saving.Saving, name, put)
    Run._execute = staticmethod(clock.theirs(Run._execute))
    cli._run = clock.ours(cli._run)
    code = cli.main(
        ["run", "--model", "sim-hash", "--model_args", "pretrained=toy/model", "--tasks", "gen",
         "--include_path", str(folder), "--output_path", str(folder / "out"), "--log_samples",
         "--noise", "--noise_repeats", str(repeats), "--noise_cluster", "template"]
    )  # fmt: skip
    if code:
        raise RuntimeError(f"lm-eval ended with {code}")


def inspect(clock: Clock, folder: Path, questions: int, repeats: int) -> None:
    """A run of Inspect with the flag."""
    import inspect_ai
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import match
    from inspect_ai.solver import solver

    with clock.importing():
        from harness_noise import inspect_ext
        from harness_noise_adapters.inspect_logs import hook, private  # noqa: F401

    for name, function in list(vars(inspect_ext.NoiseHooks).items()):
        if name.startswith("on_"):
            setattr(inspect_ext.NoiseHooks, name, clock.stepped(function))
        elif name == "enabled":
            setattr(inspect_ext.NoiseHooks, name, clock.ours(function))
    with_noise = private._with_noise
    private._with_noise = lambda subject, add, failed, original: with_noise(
        subject, clock.ours(add), clock.ours(failed), original
    )

    @solver
    def canned():  # type: ignore[no-untyped-def]
        async def solve(state, generate):  # type: ignore[no-untyped-def]
            right = (int(state.sample_id) * 7919 + state.epoch * 104729) % 100 < int(state.sample_id) % 100
            state.output = ModelOutput.from_content("mockllm/model", "yes" if right else "no")
            return state

        return solve

    samples = [
        Sample(id=i, input=f"Is {i} right?", target="yes", metadata={"passage": f"p{i // QUESTIONS_OF_A_CLUSTER}"})
        for i in range(1, questions + 1)
    ]
    task = inspect_ai.Task(dataset=MemoryDataset(samples), solver=canned(), scorer=match(), name="bench")
    log = inspect_ai.eval(
        task, model="mockllm/model", epochs=repeats, metadata={"noise": True, "noise_cluster": "passage"},
        log_dir=str(folder), display="none",
    )[0]  # fmt: skip
    if log.status != "success" or not any(name.endswith("noise_se") for name in log.results.scores[0].metrics):
        raise RuntimeError(f"no noise was added: {log.error or log.results}")


RUNS = {"lm-eval": lm_eval, "inspect": inspect}


def child(name: str, questions: int, repeats: int) -> None:
    """One run in this process; its last line has our seconds and all of this thread."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        RUNS[name](clock, Path(folder), questions, repeats)
        found = {"ours": clock.seconds, "imports": clock.imports, "run": time.thread_time()}
    print(json.dumps(found))


def measured(name: str, questions: int, repeats: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--run", name, "--questions", str(questions), "--repeats", str(repeats)]
    offline = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=offline)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--questions", type=int, default=size(500, 40))
    options.add_argument("--repeats", type=int, default=size(4, 2))
    options.add_argument("--rounds", type=int, default=size(3, 1))
    options.add_argument("--run", choices=RUNS, help="one run in this process")
    chosen = options.parse_args()
    if chosen.run:
        child(chosen.run, chosen.questions, chosen.repeats)
        return 0
    rows = []
    for name, limit in (("lm-eval", LM_EVAL_LIMIT), ("inspect", INSPECT_LIMIT)):
        rounds = [measured(name, chosen.questions, chosen.repeats) for _ in range(chosen.rounds)]
        best = min(rounds, key=lambda found: found["ours"] / found["run"])
        what = f"our own processor time, {chosen.questions} × {chosen.repeats} answers"
        run = f"the whole run of {'lm-eval' if name == 'lm-eval' else 'Inspect'}"
        rows.append(Row(what, best["ours"], run, best["run"], limit))
        rows.append(Row("loading our modules, once", best["imports"], run, best["run"], IMPORTS_LIMIT))
    return show(rows)


if __name__ == "__main__":
    sys.exit(main())

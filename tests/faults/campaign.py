"""Kill the commands that write, at every point and at random moments, and look at what is left.

One process imports everything and forks a child for each fault, so that a fault costs no start-up. The
faults are

- `walk`: SIGKILL before the n-th operation on a file, for every n (Python's audit events);
- `part`: SIGKILL by the kernel in the middle of a write, after so many bytes (RLIMIT_FSIZE, SIGXFSZ);
- `random`: SIGKILL after a random time;
- `full`: a disk that is full after so many bytes (only where `--root` is a small file system of its own);
- `pair`: two of them at once into the same place, of which one may be killed after a random time;
- `stop`: Ctrl-C before the n-th operation on a file, and `stop-random`: after a random time.

After each: every file is what it was before or what the command makes of it, nothing else is there but
temporary files (after Ctrl-C not even those), readers and Inspect's list do not see them, and the same
command run again ends as if nothing had happened.

Usage: campaign.py [--cases NAME,…] [--root DIR] [--seed S] [--KIND N …]
where N is how many faults of a kind each case gets, spread by the seed, or `all`. Without any KIND it is the
long campaign: every point, and a hundred random moments for each case.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness_noise.cli import main
from harness_noise.io.atomic import PREFIX
from harness_noise.io.stopping import stop_on_interrupt

Tree = dict[str, Any]
OPERATIONS = {"open", "os.mkdir", "os.rename", "os.remove", "os.chmod", "os.chown", "fcntl.flock", "shutil.copyfile"}
LONG = {"walk": "all", "part": "all", "full": "0", "pair": "20", "stop": "all", "random": "40", "stop-random": "40"}
"""How many faults of each kind, where nobody says."""
STOPPED = "harness-noise: stopped"
CHANGED = "changed while it was exported"
FULL = r"(.+\n)*harness-noise: \S+: cannot be written \(No space left on device\)\. Nothing was changed\n"


@dataclass(frozen=True)
class Case:
    """A command. `{in}` is a copy of the input, `{out}` a folder that is not there yet."""

    name: str
    source: str
    arguments: tuple[str, ...]

    @property
    def in_place(self) -> bool:
        return "--in-place" in self.arguments


CASES = [
    Case("lm-eval", "lm_eval", ("export", "{in}", "-o", "{out}", "--cluster", "template", "-q")),
    Case("lm-eval in place", "lm_eval", ("export", "{in}", "--in-place", "--cluster", "template", "-q")),
    Case("inspect", "inspect", ("export", "{in}", "-o", "{out}", "--cluster", "passage", "-q")),
    Case("inspect in place", "inspect", ("export", "{in}", "--in-place", "--cluster", "passage", "-q")),
    Case("arena", "table", ("arena", "{in}/scores.csv", "--tables", "{out}/tables", "--write-profile",
                            "{out}/reference.json", "-o", "{out}/arena.md", "--format", "markdown", "-q")),
    Case("arena pages", "table", ("arena", "{in}/scores.csv", "--html", "{out}/html", "--figures", "{out}/figures",
                                  "-q")),
]  # fmt: skip


def write_inputs(folder: Path, kinds: set[str]) -> None:
    """A small run of each kind."""
    for kind in sorted(kinds):
        (folder / kind).mkdir(parents=True)
        {"lm_eval": write_lm_eval_run, "inspect": write_inspect_logs, "table": write_table}[kind](folder / kind)


def write_table(folder: Path) -> None:
    """Three models on 40 questions."""
    rows = [f"q{i},{model},{int((7 * i + 3 * j) % 5 < 3)}\n" for j, model in enumerate("abc") for i in range(40)]
    (folder / "scores.csv").write_text("question,model,score\n" + "".join(rows))


def write_lm_eval_run(folder: Path) -> None:
    """Two tasks of 40 questions."""
    model = folder / "org__model"
    model.mkdir()
    date = "2026-01-02T03-04-05.678901"
    results: dict[str, Any] = {"results": {}, "configs": {}, "higher_is_better": {}, "n-samples": {}}
    for task in ("sums", "words"):
        right = [(7 * i + len(task)) % 5 < 3 for i in range(40)]
        row = {"alias": task, "sample_len": 40, "exact_match,none": sum(right) / 40, "exact_match_stderr,none": 0.07}
        results["results"][task] = row
        results["configs"][task] = {"task": task, "output_type": "generate_until", "metric_list": [
            {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}]}  # fmt: skip
        results["higher_is_better"][task] = {"exact_match": True}
        results["n-samples"][task] = {"original": 40, "effective": 40}
        rows = [
            {"doc_id": i, "doc": {"question": f"{task} {i}?", "template": i // 4}, "target": "yes",
             "arguments": {}, "resps": [["yes" if ok else "no"]], "filtered_resps": ["yes" if ok else "no"],
             "filter": "none", "metrics": ["exact_match"], "exact_match": float(ok),
             "doc_hash": hashlib.sha256(f"{task}{i}".encode()).hexdigest()}
            for i, ok in enumerate(right)
        ]  # fmt: skip
        (model / f"samples_{task}_{date}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    results |= {"model_name": "org/model", "model_name_sanitized": "org__model"}
    (model / f"results_{date}.json").write_text(json.dumps(results, indent=2))


def write_inspect_logs(folder: Path) -> None:
    """One log in each format."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import match
    from inspect_ai.solver import Solver, solver

    @solver
    def answers() -> Solver:
        async def solve(state: Any, generate: Any) -> Any:
            right = (state.sample_id * 7 + state.epoch * 5) % 3 == 0
            state.output = ModelOutput.from_content("mockllm/model", "yes" if right else "no")
            return state

        return solve

    samples = [Sample(id=i, input=f"{i}?", target="yes", metadata={"passage": f"p{i // 3}"}) for i in range(12)]
    forms: tuple[Literal["eval", "json"], ...] = ("eval", "json")
    for form in forms:
        task = Task(name=f"task_{form}", dataset=MemoryDataset(samples), solver=answers(), scorer=match())
        with contextlib.redirect_stdout(io.StringIO()):  # it names its hooks
            (log,) = eval(task, "mockllm/model", epochs=2, display="none", log_dir=str(folder), log_format=form)
        assert log.status == "success", log.error


def content(path: Path) -> Any:
    """What a file says; of an Inspect log without the time and id of the edit that an export records."""
    data = path.read_bytes()
    if path.suffix == ".eval":
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            members: dict[str, Any] = {name: archive.read(name) for name in archive.namelist()}
        members["header.json"] = _timeless(json.loads(members["header.json"]))
        return members
    if path.suffix == ".json" and data.lstrip().startswith(b'{\n  "version"'):
        return _timeless(json.loads(data))
    return data


def _timeless(log: dict[str, Any]) -> dict[str, Any]:
    return log | {"log_updates": len(log.get("log_updates") or ())}


def tree(folder: Path) -> tuple[Tree, list[str]]:
    """The files of a folder, and the names of those that are temporary."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    held = [path.name for path in files if path.name.startswith(PREFIX)]
    return {str(path.relative_to(folder)): content(path) for path in files if path.name not in held}, held


class Stage:
    """A case with its input, what comes out of it undisturbed, and how long that takes."""

    def __init__(self, case: Case, sources: Path, root: Path, notes: Path) -> None:
        self.case, self.source, self.root, self.notes = case, sources / case.source, root, notes
        self.before, _ = tree(self.source)
        self.log = notes / "log"
        self.fresh()
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(self.arguments()) == 0  # warms this process up, for all that are forked from it
        self.operations, self.seconds = 0, 0.0
        self.after = self.undisturbed()
        self.sizes = sorted({path.stat().st_size for path in (self.root).rglob("*") if path.is_file()})
        self.operations = self.count()

    def fresh(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.source, self.root / "in")

    def arguments(self) -> list[str]:
        places = {"in": str(self.root / "in"), "out": str(self.root / "out")}
        return [argument.format_map(places) for argument in self.case.arguments]

    @property
    def written(self) -> Path:
        return self.root / ("in" if self.case.in_place else "out")

    def undisturbed(self) -> Tree:
        self.fresh()
        start = time.monotonic()
        assert self.run() == 0, self.said()
        self.seconds = time.monotonic() - start
        after, held = tree(self.written)
        assert after
        assert not held
        assert after != self.before
        return after

    def count(self) -> int:
        """How many operations on files the command makes."""
        counted = self.notes / "count"

        def arm() -> None:
            total = 0

            def hook(event: str, arguments: tuple[Any, ...]) -> None:
                nonlocal total
                if self.concerns(event, arguments):
                    total += 1
                    os.pwrite(handle, b"%9d" % total, 0)

            handle = os.open(counted, os.O_WRONLY | os.O_CREAT, 0o600)
            sys.addaudithook(hook)

        self.fresh()
        assert self.run(arm) == 0, self.said()
        return int(counted.read_bytes())

    def concerns(self, event: str, arguments: tuple[Any, ...]) -> bool:
        if event not in OPERATIONS:
            return False
        return event == "fcntl.flock" or str(arguments[0]).startswith(str(self.root))

    def run(self, arm: Callable[[], None] | None = None, stop_after: tuple[float, int] | None = None) -> int:
        """The command in a forked child; minus the signal that ended it, or its exit code."""
        child = self.start(arm)
        if stop_after is not None:
            seconds, number = stop_after
            time.sleep(seconds)
            os.kill(child, number)
        return self.end(child)

    def start(self, arm: Callable[[], None] | None = None) -> int:
        """A forked child that has begun with the command."""
        sys.stdout.flush()
        reader, writer = os.pipe()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        child = os.fork()
        if child == 0:
            code = 99
            try:
                out = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
                os.dup2(out, 1)
                os.dup2(out, 2)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                stop_on_interrupt()
                sys.argv = ["harness-noise", *self.arguments()]
                if arm is not None:
                    arm()
                os.close(writer)
                code = main()
            finally:
                os._exit(code)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.close(writer)
        os.read(reader, 1)  # its end says that the child is armed
        os.close(reader)
        return child

    def end(self, child: int) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def said(self) -> str:
        return self.log.read_text()

    def signal_before(self, n: int, number: int) -> Callable[[], None]:
        def arm() -> None:
            left = n

            def hook(event: str, arguments: tuple[Any, ...]) -> None:
                nonlocal left
                if self.concerns(event, arguments):
                    left -= 1
                    if left == 0:
                        os.kill(os.getpid(), number)

            sys.addaudithook(hook)

        return arm

    def limit(self, size: int) -> Callable[[], None]:
        def arm() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        return arm

    @contextlib.contextmanager
    def nearly_full(self, free: int) -> Iterator[None]:
        """Leave so many bytes of the file system that holds the root."""
        ballast = self.root.parent / "ballast"
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        os.truncate(ballast, ballast.stat().st_size - free)
        try:
            yield
        finally:
            ballast.unlink()

    def state(self, *, stopped: bool) -> str:
        """Check what is there and put it into a word."""
        given, held = tree(self.root / "in")
        if not self.case.in_place:
            assert given == self.before, "the input has changed"
            assert not held, held
        found, held = tree(self.written)
        assert len(held) <= 1, held
        assert not (stopped and held), held
        old = self.before if self.case.in_place else {}
        for name, value in found.items():
            assert value == self.after[name] or value == old.get(name), f"{name} is neither old nor new"
        assert set(old) <= set(found)
        done = {name for name, value in found.items() if value == self.after[name]}
        last = [name for name in self.after if Path(name).name.startswith(("results_", "index.html"))]
        if last and last[0] in done:  # what leads to the other files comes after them
            beside = {name for name in self.after if Path(name).parent == Path(last[0]).parent}
            assert beside <= done, beside - done
        self.readers(found, held)
        words = "nothing yet" if not done else "everything" if len(done) == len(self.after) else "a part"
        return words + (", a temporary file" if held else "")

    def readers(self, found: Tree, held: list[str]) -> None:
        """Whoever looks at the folder sees whole files and no temporary ones."""
        if self.case.source == "inspect" and found:
            from inspect_ai.log import list_eval_logs

            listed = {Path(item.name).name for item in list_eval_logs(str(self.written))}
            assert listed == {Path(name).name for name in found}, listed
        if held and found and self.case.source != "table":
            from harness_noise.io.registry import read

            tasks = {part.task for run in read(self.written) for part in run.scores}
            assert tasks <= {"sums", "words", "task_eval", "task_json"}, tasks

    def recovered(self) -> None:
        """Running the command again ends as if nothing had happened."""
        assert self.run() == 0, self.said()
        found, held = tree(self.written)
        assert found == self.after
        assert not held, held


def spread(how_many: str, total: int, dice: random.Random) -> list[int]:
    """Some of 1 … total, or all."""
    if how_many == "all" or int(how_many) >= total:
        return list(range(1, total + 1))
    return sorted(dice.sample(range(1, total + 1), int(how_many)))


def faults(stage: Stage, options: argparse.Namespace, dice: random.Random) -> Counter[str]:
    """Every fault of one case; counts what was found."""
    found: Counter[str] = Counter()

    def judge(kind: str, code: int, expected: tuple[int, ...]) -> None:
        stopped = code == 130
        assert code in expected, f"exit {code}: {stage.said()}"
        said = stage.said().replace(STOPPED + "\n", "", 1) if stopped else stage.said()
        assert "Traceback" not in said, said
        assert "stopped" not in said, said
        assert not stopped or STOPPED in stage.said(), stage.said()
        found[f"{kind}: {stage.state(stopped=stopped)}"] += 1
        stage.recovered()

    for n in spread(options.walk, stage.operations, dice):
        stage.fresh()
        judge("walk", stage.run(stage.signal_before(n, signal.SIGKILL)), (-signal.SIGKILL,))
    largest = stage.sizes[-1]
    for n in spread(options.part, min(largest - 1, 40), dice):
        stage.fresh()
        judge("part", stage.run(stage.limit(n * largest // 41)), (-signal.SIGXFSZ, 0))
    for n in spread(options.full, 40, dice):
        stage.fresh()
        with stage.nearly_full((n - 1) * sum(stage.sizes) // 40):
            code = stage.run()
        said = stage.said()
        assert code == 0 or re.fullmatch(FULL, said), said
        judge("full", code, (0, 2))
    for n in range(int(options.pair)):
        stage.fresh()
        one, other = stage.start(), stage.start()
        if n % 2:
            time.sleep(dice.uniform(0, 1.5 * stage.seconds))
            os.kill(one, signal.SIGKILL)
        ends = {stage.end(one), stage.end(other)}
        # in place, one of them may see that the other has changed the input
        assert 2 not in ends or (stage.case.in_place and CHANGED in stage.said()), stage.said()
        assert 0 not in ends or stage.state(stopped=False).startswith("everything")
        judge("pair, one refused" if 2 in ends else "pair", max(ends), (0, 2))
    for n in spread(options.stop, stage.operations, dice):
        stage.fresh()
        judge("stop", stage.run(stage.signal_before(n, signal.SIGINT)), (130,))
    for kind, number, count, codes in (
        ("random", signal.SIGKILL, options.random, (-signal.SIGKILL, 0)),
        ("stop-random", signal.SIGINT, options.stop_random, (130, -signal.SIGINT, 0)),
    ):
        for _ in range(int(count)):
            stage.fresh()
            judge(kind, stage.run(stop_after=(dice.uniform(0, 1.05 * stage.seconds), number)), codes)
    return found


def campaign() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", default=",".join(case.name for case in CASES))
    parser.add_argument("--root", help="a folder for all files (default: a temporary one)")
    parser.add_argument("--seed", type=int, default=6)
    for kind in LONG:
        parser.add_argument(f"--{kind}")
    options = parser.parse_args()
    given = any(getattr(options, kind.replace("-", "_")) is not None for kind in LONG)
    for kind, count in LONG.items():
        name = kind.replace("-", "_")
        setattr(options, name, getattr(options, name) or ("0" if given else count))
    total = 0
    chosen = [case for case in CASES if case.name in options.cases.split(",")]
    with tempfile.TemporaryDirectory(dir=options.root) as name, tempfile.TemporaryDirectory() as notes:
        sources = Path(name) / "sources"
        write_inputs(sources, {case.source for case in chosen})
        for case in chosen:
            stage = Stage(case, sources, Path(name) / "stage", Path(notes))
            start = time.monotonic()
            found = faults(stage, options, random.Random(f"{options.seed} {case.name}"))
            total += found.total()
            print(
                f"{case.name}: {found.total()} faults, {stage.operations} operations on files, "
                f"{len(stage.after)} files, {time.monotonic() - start:.0f} s",
                flush=True,
            )
            for words, n in sorted(found.items()):
                print(f"  {n:4d}  {words}", flush=True)
    print(f"{total} faults, every state whole")
    return 0


if __name__ == "__main__":
    sys.exit(campaign())

"""The cost of the noise beside Inspect's own work, as ratios within one run.

    python benchmarks/bench_inspect.py [--questions 5000] [--repeats 10] [--log FILE.eval]

After the run: `analyze` of a log against Inspect's `read_eval_log_sample_summaries` of the same file,
time and peak memory beyond the imports (Linux), each in a process of its own. In the run: what we add
against Inspect's own `eval_results` on the same scores. Time is processor time, and the least of several
rounds counts, because other work on the machine only ever adds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import Row, parser, show, size

from harness_noise_adapters.inspect_logs import live as live_module

READ = """
import json, re, sys, time
from pathlib import Path
import inspect_ai.log
import harness_noise as hn
import harness_noise.api
path, what = sys.argv[1:]
peak = lambda: int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
before = peak()
start = time.process_time()
if what == "summaries":
    kept = inspect_ai.log.read_eval_log_sample_summaries(path)
else:
    more = {"measures": ["score", "output_tokens", "time"]} if what == "usage" else {}
    kept = hn.read(path, cluster="passage", **more) if what != "analyze" else hn.analyze(path, cluster="passage")
seconds = time.process_time() - start
print(json.dumps({"seconds": seconds, "megabytes": peak() - before, "peak": peak()}))
"""


def write_log(path: Path, questions: int, repeats: int) -> None:
    """A log of that size: the sample of a real eval, copied with other ids and scores.

    It is put together as a zip file, because to write it sample by sample takes Inspect half an hour.
    """
    from zipfile import ZIP_DEFLATED, ZipFile  # after inspect_ai, which teaches it zstd

    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import match
    from inspect_ai.solver import solver

    @solver
    def canned():  # type: ignore[no-untyped-def]
        async def solve(state, generate):  # type: ignore[no-untyped-def]
            state.output = ModelOutput.from_content("mockllm/model", "yes")
            return state

        return solve

    text = "A passage of some length, as they are. " * 20
    small = inspect_ai.Task(
        dataset=[Sample(id="q", input=text, target="yes", metadata={"passage": "p"})], solver=canned(), scorer=match()
    )
    with tempfile.TemporaryDirectory() as folder:
        log = inspect_ai.eval(small, model="mockllm/model", display="none", log_dir=folder)[0]
        source = ZipFile(log.location)
        header = json.loads(source.read("header.json"))
        (name,) = (name for name in source.namelist() if name.startswith("samples/"))
        (summary,) = json.loads(source.read("summaries.json"))
        sample, start = json.loads(source.read(name)), source.read("_journal/start.json")
    total, summaries = 0, []
    with ZipFile(path, "w", ZIP_DEFLATED, compresslevel=1) as target:
        target.writestr("_journal/start.json", start)
        for j in range(repeats):
            for i in range(questions):
                right = (i * 7919 + j * 104729) % 100 < i % 100
                total += right
                new = {
                    "id": f"q{i}", "epoch": j + 1, "uuid": f"{i}-{j}", "input": f"{text} {i}?",
                    "metadata": {"passage": f"p{i // 4}", "source": "made"},
                    "model_usage": {"mockllm/model": {"input_tokens": 90, "output_tokens": i % 50 + 1}},
                    "total_time": 1.0 + i % 7, "working_time": 1.0,
                    "scores": {"match": sample["scores"]["match"] | {"value": "C" if right else "I"}},
                }  # fmt: skip
                summaries.append(summary | new)
                target.writestr(f"samples/q{i}_epoch_{j + 1}.json", json.dumps(sample | new))
        header["eval"]["config"]["epochs"] = repeats
        header["eval"]["dataset"] |= {"samples": questions, "sample_ids": [f"q{i}" for i in range(questions)]}
        header["results"] |= {"total_samples": questions * repeats, "completed_samples": questions * repeats}
        header["results"]["scores"][0]["metrics"]["accuracy"]["value"] = total / (questions * repeats)
        target.writestr("summaries.json", json.dumps(summaries))
        target.writestr("reductions.json", "[]")
        target.writestr("header.json", json.dumps(header))


def reading(path: Path, rounds: int) -> list[Row]:
    found: dict[str, list[dict[str, float]]] = {"summaries": [], "analyze": [], "read": [], "usage": []}
    for _ in range(rounds):
        for what in found:
            done = subprocess.run(
                [sys.executable, "-c", READ, str(path), what], capture_output=True, text=True, check=True
            )
            found[what].append(json.loads(done.stdout.strip().splitlines()[-1]))
    least = {what: {name: min(item[name] for item in items) for name in items[0]} for what, items in found.items()}
    what = f"analyze, log of {path.stat().st_size / 1e6:.0f} MB"
    usage = Row("read with tokens and time", least["usage"]["seconds"], "read without", least["read"]["seconds"], 1.1)
    compared = [("seconds", "s", ""), ("megabytes", "MB", ": memory")]
    own = "Inspect's own summaries of it"
    return [
        usage,
        *(
            Row(f"{what}{more}", least["analyze"][name], f"{own}{more}", least["summaries"][name], 0.5, unit)
            for name, unit, more in compared
        ),
    ]


def running(questions: int, repeats: int, rounds: int) -> Row:
    from inspect_ai._eval.task.results import eval_results
    from inspect_ai.log import EvalConfig, EvalDataset, EvalSpec
    from inspect_ai.scorer import SampleScore, Score, match

    from harness_noise_adapters.inspect_logs import hook
    from harness_noise_adapters.inspect_logs.flags import flag

    scores = [
        {
            "match": SampleScore(
                score=Score(value="C" if (i * 7919 + j * 104729) % 100 < i % 100 else "I"),
                sample_id=f"q{i}",
                sample_metadata={"passage": f"p{i // 4}"},
            )
        }
        for j in range(repeats)
        for i in range(questions)
    ]
    on = flag({"noise": True, "noise_cluster": "passage"}, {})
    dataset = EvalDataset(sample_ids=[f"q{i}" for i in range(questions)])
    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00", task="bench", model="mockllm/model", dataset=dataset, config=EvalConfig()
    )
    assert on is not None
    live = live_module.Live(spec, on)
    native, ours = [], []
    for _ in range(rounds):
        start = time.process_time()
        results, _reductions = eval_results(
            samples=len(scores), scores=scores, reducers=None, scorers=[match()], metrics=None
        )
        middle = time.process_time()
        warnings = hook.add(live, results, scores)
        end = time.process_time()
        assert warnings == []
        assert "noise_prediction" in results.scores[0].metrics
        native.append(middle - start)
        ours.append(end - middle)
    return Row(
        f"in the run, {questions:,} questions × {repeats}", min(ours), "Inspect's eval_results", min(native), 0.3
    )


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--questions", type=int, default=size(5000, 20))
    options.add_argument("--repeats", type=int, default=size(10, 2))
    options.add_argument("--rounds", type=int, default=size(5, 1))
    options.add_argument("--log", type=Path, help="a log to read, in place of a made one; made if it does not exist")
    chosen = options.parse_args()
    rows = [running(chosen.questions, chosen.repeats, chosen.rounds)]
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.log or Path(folder) / "bench.eval"
        if not path.exists():
            write_log(path, chosen.questions, chosen.repeats)
        rows += reading(path, chosen.rounds)
    return show(rows)


if __name__ == "__main__":
    sys.exit(main())

"""Small real files for the fuzzer: runs of the installed harnesses, tables, a profile, a configuration.

Run as a program with a folder: `PYTHONPATH=tests python -m fuzz.write_seeds FOLDER [RUNS]`.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

from support.processes import environment


def lm_eval(folder: Path, made: Path | None) -> None:
    if made is not None:
        shutil.copytree(made, folder, ignore=shutil.ignore_patterns("hf"))
        return
    command = [sys.executable, "-m", "support.lm_eval_write_runs", str(folder)]
    subprocess.run(command, check=True, env=environment(HF_HUB_OFFLINE="1"))


def inspect(folder: Path) -> None:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.log import read_eval_log, write_eval_log
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import choice, match
    from inspect_ai.solver import solver

    @solver
    def answers():  # type: ignore[no-untyped-def]
        async def solve(state, generate):  # type: ignore[no-untyped-def]
            draw = random.Random(f"{state.sample_id} {state.epoch}")
            for option in range(len(state.choices)):
                state.choices.mark_choice(option, option == draw.randrange(2))
            state.output = ModelOutput.from_content("mockllm/model", draw.choice(["yes", "no"]))
            return state

        return solve

    asked = [
        Sample(id=f"q{i}", input=f"Question {i}?", target="yes", metadata={"passage": f"p{i // 2}"}) for i in range(5)
    ]
    plain = Task(dataset=MemoryDataset(asked), solver=answers(), scorer=match(), name="plain")
    asked = [Sample(input=f"Which {i}?", target="B", choices=["one", "two"]) for i in range(4)]
    options = Task(dataset=MemoryDataset(asked), solver=answers(), scorer=choice(), name="choice")
    logs = eval([plain, options], model="mockllm/model", epochs=2, log_dir=str(folder), display="none",
                metadata={"noise": True, "noise_cluster": "plain=passage"})  # fmt: skip
    for log in logs:
        assert log.status == "success", log.error
        whole = read_eval_log(log.location)
        for sample in whole.samples or ():  # most of a log, and nothing that is read
            sample.events, sample.attachments = [], {}
        write_eval_log(whole, str(folder / f"{log.eval.task}.json"))
        write_eval_log(whole, str(folder / f"{log.eval.task}.eval"))


def tables(folder: Path) -> None:
    draw = random.Random(2)
    rows = [
        {"model": model, "task": task, "question": f"q{i}", "repeat": k, "cluster": f"c{i // 2}",
         "score": draw.randint(0, 1)}
        for model in ("a", "b") for task in ("t", "u") for i in range(5) for k in range(2)
    ]  # fmt: skip
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (folder / "full.csv").write_text("\n".join(lines) + "\n")
    (folder / "short.csv").write_text("question,score\n" + "".join(f"q{i % 4},{i * 0.37 % 1:.2f}\n" for i in range(8)))
    (folder / "full.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "full.json").write_text(json.dumps(rows))
    counted = [
        {"benchmark_id": "b", "model": f"m{m}", "example_id": f"e/{i}", "pass1": draw.randint(0, 4) / 4, "count": 4}
        for m in range(2) for i in range(5)
    ]  # fmt: skip
    (folder / "arena.json").write_text(json.dumps(counted))
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "full.parquet")


def harnesses(folder: Path) -> None:
    """A small run of each harness that has a reader of its own, in a folder of its name."""
    from support.every_eval_ever_files import result, sample, write
    from support.harbor_files import job, trial
    from support.helm_files import instance, run

    lost = trial("b__b-2", 1, None, "AgentTimeoutError")
    job(folder / "harbor", [*(trial(f"a__a-{i}", k, float(i == k)) for i in range(2) for k in range(2)), lost])
    stats = [instance(i, k, float(i == k), name) for i in range(2) for k in range(2) for name in ("", "typos")]
    run(folder / "helm", per_instance_stats=stats)
    samples = [sample(i, float(i == k), k=k) for i in range(3) for k in range(2)]
    place = write(folder / "made", samples, [result("accuracy", 1 / 3)])
    shutil.copytree(place.parent, folder / "every_eval_ever")
    shutil.rmtree(folder / "made")
    ids = [f"a__a-{i}" for i in range(6)]
    files = {
        "swe_bench/sim.first.json": {
            "total_instances": 6, "resolved_instances": 2, "resolved_ids": ids[:2], "unresolved_ids": ids[2:4],
            "infra_failure_ids": ids[3:4], "error_ids": ids[4:5], "incomplete_ids": ids[5:],
        },
        "swe_bench_pro/eval_results.json": {f"instance_{name}": name > "a__a-3" for name in ids},
        "swe_bench_details/per_instance_details.json": {name: {"cost": 0.5, "resolved": True} for name in ids},
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).parent.mkdir()
        (folder / name).write_text(json.dumps(content))
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return
    rows = [{"doc": {"id": f"{i}", "query": f"{i}?"}, "metric": {"acc": i % 2.0, "text": None}} for i in range(6)]
    (folder / "lighteval").mkdir()
    name = "details_sums|0_2025-11-05T14-43-47.148527.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "lighteval" / name)


def profile(path: Path, table: Path) -> None:
    import harness_noise as hn
    from harness_noise.extra.arena import profiles as reference

    draw = random.Random(3)
    rows = [f"{model},q{i},{k},{draw.randint(0, 1)}" for model in "abc" for i in range(40) for k in range(2)]
    table.write_text("\n".join(["model,question,repeat,score", *rows]) + "\n")
    reference.write(hn.arena(hn.read(table)), path)


def main(folder: Path, lm_eval_runs: Path | None = None) -> None:
    """Fill the folder; lm-eval's runs are made, or those of the tests are copied."""
    made = {name: folder / name for name in ("inspect", "tables", "profile", "config")}
    for path in made.values():
        path.mkdir(parents=True)
    tables(made["tables"])
    harnesses(folder / "harnesses")
    shutil.copytree(Path(__file__).parents[1] / "adapters" / "formats", folder / "formats")
    (made["config"] / "noise.yaml").write_text(
        "noise:\n  repeats: 5\n  cluster: {gsm8k: none, '*': auto}\n  groups: {all: 'a_*'}\n  level: 0.9\n"
    )
    lm_eval(folder / "lm_eval", lm_eval_runs)
    inspect(made["inspect"])
    profile(made["profile"] / "profile.json", folder / "close.csv")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

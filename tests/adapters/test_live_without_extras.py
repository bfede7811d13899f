"""Live runs of both harnesses load no module of an extra, and need none, unless they are to ask less."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import environment

LM_EVAL = """
import sys
from pathlib import Path
from support.gone import loaded, remove_extras
if sys.argv[1] == "gone":
    remove_extras()
import harness_noise as hn
from harness_noise_adapters.lm_eval_harness import noise
from support import lm_eval_models as toys
from support.lm_eval_live import save
here = Path.cwd()
toys.write_task(here, "gen", toys.docs(12))
with noise(repeats=2, cluster="template", journal="off") as session:
    save(here, here / "a", ["gen"], toys.HashModel(seed=1))
assert session.analysis.estimates and not session.problems, session.problems
print("said", session.analysis.to_json().replace("\\n", " "))
for options in ({"until": "decided", "against": str(here / "a")}, {"repeats": "auto"}, {"sample": "8"}):
    if sys.argv[1] == "gone":
        try:
            with noise(**options):
                save(here, here / "b", ["gen"], toys.HashModel(seed=2))
        except hn.InputError as error:
            print(error)
print("loaded", *loaded())
"""
INSPECT = """
import sys
from support.gone import loaded, remove_extras
if sys.argv[1] == "gone":
    remove_extras()
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import includes
from inspect_ai.solver import solver
@solver
def says():
    async def solve(state, generate):
        word = "ox"[state.epoch % 2 * (int(state.sample_id) % 3 == 0)]
        state.output = ModelOutput.from_content("mockllm/model", word)
        return state
    return solve
def task():
    samples = [Sample(id=i, input=f"say {i}", target="o" if i % 2 else "x") for i in range(6)]
    data = MemoryDataset(samples)
    data.shuffle(7)
    return Task(dataset=data, solver=says(), scorer=includes(), name="said")
def run(**metadata):
    return eval(task(), model="mockllm/model", log_dir="logs", epochs=2, display="none", metadata=metadata)[0]
log = run(noise=True)
assert log.status == "success", log.error
assert "noise_se" in log.results.scores[0].metrics
print("said", [(name, metric.value, metric.metadata) for name, metric in log.results.scores[0].metrics.items()])
if sys.argv[1] == "gone":
    for metadata in ({"noise_until": "se=0.01"}, {"noise_sample": 3}):
        log = run(**metadata)
        assert (log.status, log.samples or []) == ("error", [])
        print(log.error.message)
print("loaded", *loaded())
"""


@pytest.mark.process
@pytest.mark.parametrize("harness", ["lm_eval", "inspect_ai"])
def test_a_live_run_without_stopping_needs_no_extra_and_says_the_same(tmp_path: Path, harness: str) -> None:
    pytest.importorskip(harness)
    code = {"lm_eval": LM_EVAL, "inspect_ai": INSPECT}[harness]
    said = []
    for how, refusals in (("there", 0), ("gone", 3 if harness == "lm_eval" else 2)):
        run, place = [sys.executable, "-c", code, how], tmp_path / how / "run"
        place.mkdir(parents=True)
        done = subprocess.run(run, cwd=place, env=environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert "loaded" in lines, done.stdout
        assert len([line for line in lines if "is not installed: the folder of its extra" in line]) == refusals, lines
        said += [line for line in lines if line.startswith("said ")]
    assert len(said) == 2
    assert said[0] == said[1]

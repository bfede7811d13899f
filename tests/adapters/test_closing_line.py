"""A live run ends with one plain line for each task: our mean ± SE beside the harness's own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


def lines(text: str, harness: str) -> list[str]:
    plain = " ".join(text.split())
    return re.findall(rf"\w+ \w+, \w+: [\d.]+% ± [\d.]+ points \([^)]*\); {harness}'s own ± [\d.]+ [\w ]+\.", plain)


def in_points(se: float, line: str) -> str:
    """With as many decimals as the standard error of the line has."""
    ours = re.search(r"± ([\d.]+) points \(", line)[1]
    return f"{100 * se:.{len(ours.partition('.')[2])}f}"


@pytest.mark.process
@pytest.mark.slow
def test_of_lm_eval(tmp_path: Path) -> None:
    pytest.importorskip("lm_eval")
    from harness_noise_adapters.extra.demo.in_lm_eval import write_task

    command = [
        sys.executable, "-m", "harness_noise", "lm-eval", "run", "--model", "simulated", "--model_args", "model=sim-a",
        "--tasks", "word_problems", "--include_path", str(write_task(tmp_path / "task")), "--limit", "40",
        "--noise", "--noise_repeats", "2", "--noise_cluster", "template",
    ]  # fmt: skip
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(tmp_path / "cache")}
    out = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True).stdout
    (line,) = lines(out, "lm-eval")
    assert line.startswith("word_problems exact_match, number: ")
    assert "(4 clusters of 10, 2 answers each); lm-eval's own ± " in line
    assert line.endswith("assumes 40 independent questions.")
    after = " ".join(out.split()).partition(line)[2]
    assert after.startswith(" Next: with --output_path DIR --log_samples ")  # nothing was kept that could be compared
    assert after.count(".") == 1
    native = re.search(r"\|exact_match *\|.*± *\|([\d.]+)\|", out)[1]
    rounded = {in_points(float(native) + half, line) for half in (-5e-5, 0, 5e-5)}  # the table has four decimals
    assert re.search(r"own ± ([\d.]+) ", line)[1] in rounded


@pytest.mark.parametrize("on", [True, False])
def test_of_inspect(canned, tmp_path: Path, capsys: pytest.CaptureFixture[str], on: bool) -> None:
    from inspect_ai.scorer import accuracy, match, stderr

    metadata = {"noise": True, "noise_cluster": "passage"} if on else {}
    task = canned.task(scorer=match(), metrics=[accuracy(), stderr()])
    (log,) = canned.eval(task, tmp_path, epochs=3, metadata=metadata, display="plain")
    found = lines(capsys.readouterr().out, "Inspect")
    assert len(found) == on
    if on:
        own = log.results.scores[0].metrics
        assert found[0].startswith("coins accuracy, match: ")
        assert f"± {in_points(own['noise_se'].value, found[0])} points (" in found[0]
        assert "independent questions" in found[0]
        assert f"own ± {in_points(own['stderr'].value, found[0])} " in found[0]


def test_a_fault_of_the_lines_costs_a_warning(canned, tmp_path: Path, monkeypatch, caplog) -> None:
    from harness_noise.report import sentences

    def fault(*_args):
        raise RuntimeError("by accident")

    monkeypatch.setattr(sentences, "closing_lines", fault)
    (log,) = canned.eval(canned.task(), tmp_path, epochs=3, metadata={"noise": True}, display="plain")
    assert log.status == "success"
    assert "closing lines could not be printed" in caplog.text

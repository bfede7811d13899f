"""`harness-noise lm-eval run … --noise_until …`: the command line, the files that it saves, and reading them again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

pytest.importorskip("lm_eval")

import harness_noise as hn
from harness_noise.cli import main
from harness_noise_adapters.lm_eval_harness.live.options import Options
from support import lm_eval_models as toys
from support.lm_eval_live import run, save, saved

pytestmark = pytest.mark.usefixtures("quick_lm_eval")

N = 150


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("until_cli")
    toys.write_task(path, "gen", toys.docs(N))
    save(path, path / "b", ["gen"], toys.HashModel(seed=9, share=0.3))
    save(path, path / "whole", ["gen"], toys.HashModel(seed=5, share=0.8))
    return path


def better(folder: Path, out: Path, *more: str) -> list[str]:
    model = ("--model_args", "seed=1,share=0.9")
    return ["lm-eval", *run(folder, "--log_samples", "--output_path", str(out), "--noise", *model, *more)]


def test_what_is_said_saved_and_known_later(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    against = str(folder / "b")
    assert main(better(folder, tmp_path / "a", "--noise_until", "decided", "--noise_against", against)) == 0
    shown = capsys.readouterr()
    assert "harness-noise: gen: look 1 of 20, " in shown.err
    assert "the looks: A is this run, B is " in shown.err
    assert "When the run stopped" in shown.out
    assert "Report these: they allow for the looks" in shown.out
    results, samples = saved(tmp_path / "a")
    (looks,) = results["noise"]["sequential"]
    assert looks["decision"] == "A better"
    assert looks["n_asked"] < looks["n_total"] == N
    assert results["config"]["samples"]["gen"] == sorted({json.loads(line)["doc_id"] for line in samples.splitlines()})
    # read again
    assert main(["analyze", str(tmp_path / "a"), "--format", "json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["sequential"] == [looks]
    assert again["drawn"] == results["noise"]["drawn"]
    assert all("stopped_early" in row["diagnostics"] for row in again["estimates"])
    assert main(["compare", str(tmp_path / "a"), against, "--format", "json"]) == 0
    rows = {row["scorer"]: row for row in json.loads(capsys.readouterr().out)["comparisons"]}
    assert rows.pop(looks["scorer"])["test"] == "sequential"  # the recorded figures
    assert all("stopped_early" in row["diagnostics"] for row in rows.values())
    # exported, and read once more
    assert main(["export", str(tmp_path / "a"), "-o", str(tmp_path / "out")]) == 0
    (exported,) = (tmp_path / "out").glob("**/results_*.json")
    block = json.loads(exported.read_text())["noise"]
    assert (block["sequential"], block["drawn"]) == ([looks], results["noise"]["drawn"])
    capsys.readouterr()
    # a part that was drawn is one that references accept
    whole = str(folder / "whole")
    assert main(["analyze", str(tmp_path / "a"), "--complete", whole, "--format", "json"]) == 0
    (row,) = [row for row in json.loads(capsys.readouterr().out)["full_benchmark"] if row["scorer"] == "strict"]
    assert (row["n_asked"], row["n_total"]) == (looks["n_asked"], N)


def test_the_block_of_the_configuration(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.yaml"
    noise = {"sample": "20%", "complete": [str(folder / "whole"), str(folder / "b")], "seed": 3}
    config.write_text(
        yaml.safe_dump({
            "model": "sim-hash", "tasks": ["gen"], "include_path": str(folder), "log_samples": True,
            "output_path": str(tmp_path / "a"), "noise": noise,
        })
    )  # fmt: skip
    assert main(["lm-eval", "run", "--config", str(config)]) == 0
    results, _ = saved(tmp_path / "a")
    assert len(results["config"]["samples"]["gen"]) == N // 5
    (drawn,) = results["noise"]["drawn"]
    assert (drawn["n_asked"], drawn["n_total"], drawn["order_seed"], drawn["stopped_early"]) == (30, N, 3, False)
    assert {row["scorer"] for row in results["noise"]["full_benchmark"]} == {"strict", "flexible"}
    assert len(drawn["chances"]) == 30  # the references say which questions are uncertain
    assert len(set(drawn["chances"].values())) > 1
    assert all("unequal_chances" in row["diagnostics"] for row in results["noise"]["estimates"])
    again = hn.analyze(tmp_path / "a", complete=noise["complete"]).full_benchmark
    for ours, row in zip(again, results["noise"]["full_benchmark"], strict=True):
        assert (row["estimate"], row["se"]) == (pytest.approx(ours.estimate), pytest.approx(ours.se))
    out = capsys.readouterr().out
    assert "gen: 30 of 150 questions, drawn at random, uncertain ones more often (seed 3)." in out
    assert "The whole benchmark, from a part of it" in out


def test_the_seed_of_the_order_and_answers_by_task(folder: Path, tmp_path: Path) -> None:
    flags = ("--noise_sample", "30", "--noise_seed", "3", "--noise_repeats", "2", "--noise_repeats", "g*=3")
    assert main(better(folder, tmp_path / "a", *flags)) == 0
    results, _ = saved(tmp_path / "a")
    (drawn,) = results["noise"]["drawn"]
    assert (drawn["n_asked"], drawn["order_seed"]) == (30, 3)
    assert results["configs"]["gen"]["repeats"] == 3
    assert {row["repeats_max"] for row in results["noise"]["estimates"]} == {3}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--noise_repeats", "gne=3"), "--noise_repeats gne=3: no task matches. This run has gen"),
        (("--noise_until", "decided"), "needs the run to compare with"),
        (("--noise_until", "se=0.1", "--limit", "20"), "leave --limit out"),
        (("--noise_sample", "nothing"), "neither a share"),
        (("--noise_complete", "/nowhere"), "nowhere"),
    ],
)
def test_a_wrong_choice_ends_it_before_the_model_is_asked(
    folder: Path, tmp_path: Path, flags: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(better(folder, tmp_path / "a", *flags)) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_options_from_the_environment() -> None:
    found = Options.from_environment(
        {"HARNESS_NOISE_UNTIL": "se=0.02", "HARNESS_NOISE_REPEATS": "auto", "HARNESS_NOISE_COMPLETE": "a,b"}
    )
    assert found.rule is not None
    assert found.rule.se == 0.02
    assert (found.repeats.auto, found.repeats.begin("gen"), found.complete) == (True, 2, ("a", "b"))

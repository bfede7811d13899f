"""The demonstration, as a newcomer runs it: both real harnesses, their native files, the comparison."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness_noise_adapters.extra.demo.word_problems import ENOUGH, MODELS, PAIR, TEMPLATES, problems
from support.network import without_network

whole = pytest.mark.slow
"""What needs the whole demonstration; `.ci/run` shows it in a step of its own, too."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    pytest.importorskip("lm_eval")
    pytest.importorskip("inspect_ai")
    folder = tmp_path_factory.mktemp("demo")
    environment, seen = without_network(tmp_path_factory.mktemp("watch"))
    command = [sys.executable, "-m", "harness_noise.extra.demo", "-o", "out"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment | {"COLUMNS": "140"})
    assert done.returncode == 0, done.stderr[-2000:]
    assert not seen.exists(), seen.read_text()
    return folder / "out", done.stdout + done.stderr


def test_the_benchmark_is_20_templates_of_10_distinct_problems() -> None:
    assert len(TEMPLATES) == 20
    assert len(problems()) == 200
    assert len({item.question for item in problems()}) == 200
    assert all(item.answer >= 0 for item in problems())


def test_a_simulated_model_is_right_as_often_as_its_probability_says() -> None:
    model, draws = MODELS[0], 400
    for item in problems()[::40]:
        right = sum(f"answer is {item.answer}." in model.answer(item, draw) for draw in range(draws))
        p = model.probability(item)
        assert abs(right / draws - p) < 4 * (p * (1 - p) / draws) ** 0.5 + 1e-9


@whole
def test_it_says_that_the_models_are_simulated_and_shows_its_commands(demo: tuple[Path, str]) -> None:
    _, text = demo
    assert "simulated" in text.splitlines()[0]
    assert "fatal:" not in text  # git, asked for a commit outside of a repository
    for command in ("harness-noise lm-eval run", "inspect eval", "harness-noise compare", "harness-noise export"):
        assert f"$ {command}" in text


@whole
def test_every_file_that_it_names_is_there(demo: tuple[Path, str]) -> None:
    out, text = demo
    named = [Path(name) for name in re.findall(r"^harness-noise: wrote (.+)$", text, re.MULTILINE)]
    assert len(named) >= 6
    assert all((out.parent / path).is_file() and path.is_relative_to("out") for path in named)


@whole
def test_lm_eval_carries_its_noise_natively(demo: tuple[Path, str]) -> None:
    out, text = demo
    assert "exact_match_avg" in text
    for model in PAIR:
        (path,) = (out / "lm-eval" / model.name).rglob("results_*.json")
        results = json.loads(path.read_text())
        row = results["results"]["word_problems"]
        for name in ("avg", "avg_stderr", "total_stderr", "data_stderr", "prediction_stderr", "avg_clustered_stderr"):
            assert 0 < row[f"exact_match_{name},number"] < 1
        (estimate,) = results["noise"]["estimates"]
        assert (estimate["model"], estimate["n_questions"], estimate["n_clusters"]) == (model.name, 200, 20)
        assert (estimate["repeats_min"], estimate["repeats_max"], estimate["cluster"]) == (5, 5, "template")


@whole
def test_inspect_carries_its_noise_natively(demo: tuple[Path, str]) -> None:
    from inspect_ai.log import read_eval_log

    out, _ = demo
    logs = [read_eval_log(str(path), header_only=True) for path in sorted((out / "inspect").glob("*.eval"))]
    assert {log.eval.model for log in logs} == {f"mockllm/{model.name}" for model in PAIR}
    for log in logs:
        assert log.results is not None
        (score,) = log.results.scores
        assert [name for name, metric in score.metrics.items() if metric.group == "noise"] == [
            "noise_se", "noise_ci_low", "noise_ci_high", "noise_total", "noise_data", "noise_prediction",
        ]  # fmt: skip


@whole
@pytest.mark.parametrize("harness", ["lm-eval", "inspect"])
def test_the_comparison_sees_what_bare_numbers_do_not(harness: str, demo: tuple[Path, str]) -> None:
    out, _ = demo
    page = (out / f"compare-{harness}.html").read_text()
    (row,) = json.loads(page.partition('id="result">')[2].partition("</script>")[0])["comparisons"]
    assert row["verdict"] == "A better"
    assert abs(row["diff"]) < 1.96 * row["se_unpaired"]
    assert row["n_clusters"] == 20
    assert "<script src" not in page


@whole
def test_the_export_is_the_run_and_its_noise(demo: tuple[Path, str]) -> None:
    out, _ = demo
    (native,) = (out / "lm-eval" / PAIR[0].name).rglob("results_*.json")
    (exported,) = (out / "export-lm-eval").rglob("results_*.json")
    assert native.name == exported.name
    assert json.loads(native.read_text())["results"] == json.loads(exported.read_text())["results"]


@whole
def test_all_pairs_of_eight_models_are_on_a_page(demo: tuple[Path, str]) -> None:
    out, text = demo
    pages = sorted((out / "arena").glob("*.html"))
    assert [page.name for page in pages][-1] == "index.html"
    assert all(model.name in pages[0].read_text() for model in MODELS)
    assert "not significantly worse than the best" in text
    assert "Open out/arena/index.html in a browser." in text


@whole
def test_the_readme_shows_what_the_demo_prints(
    demo: tuple[Path, str], root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from harness_noise.cli import main

    out, text = demo
    readme = (root / "README.md").read_text(encoding="utf-8")
    blocks = [block for block in readme.split("```")[1::2] if "lm-eval/sim-a" in block or "exact_match" in block]
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["compare", *(str(out / "lm-eval" / f"sim-{name}") for name in "ae")]) == 0
    text += capsys.readouterr().out
    said = " ".join(text.split())
    lines = [line for block in blocks for line in block.splitlines() if "±" in line or "sim-" in line or "0." in line]
    shown = [" ".join(line.partition("   ←")[0].split()) for line in lines if not line.startswith("$")]
    assert len(shown) >= 6
    assert [line for line in shown if line not in said] == []


@whole
def test_the_figures_in_the_sentences_of_the_readme_are_those_of_the_demo(demo: tuple[Path, str], root: Path) -> None:
    import harness_noise as hn

    runs = {model.name: demo[0] / "lm-eval" / model.name for model in MODELS}
    (pair,) = hn.compare(runs["sim-a"], runs["sim-e"]).comparisons
    (one,) = hn.analyze(runs["sim-a"]).estimates
    unrelated = one.se / one.design_effect**0.5
    readme = " ".join((root / "README.md").read_text(encoding="utf-8").split())
    for sentence in (
        f"has a standard error of {100 * pair.se:.1f} points",
        f"it would be {100 * pair.se_unpaired:.1f} points",
        f"only {one.n_effective:.0f} unrelated questions",
        f"200 unrelated ones would be ± {100 * unrelated:.1f} points. With clusters it is ± {100 * one.se:.1f} points",
    ):
        assert sentence in readme


@whole
def test_a_third_comparison_stops_when_it_is_decided_and_says_what_it_saved(demo: tuple[Path, str]) -> None:
    out, text = demo
    new, old = ENOUGH
    (path,) = (out / "stopped-early" / new.name).rglob("results_*.json")
    results = json.loads(path.read_text())
    (looks,) = results["noise"]["sequential"]
    asked = results["config"]["samples"]["word_problems"]
    assert (
        len(asked) == looks["n_asked"] == results["n-samples"]["word_problems"]["effective"] < looks["n_total"] == 200
    )
    assert (looks["decision"], looks["metric"]) == ("B better", "exact_match")
    assert f"$ harness-noise lm-eval run --model simulated --model_args model={new.name}" in text
    assert looks["n_answers"] < looks["n_answers_total"] == 5 * 200
    share = f"{looks['n_answers'] / looks['n_answers_total']:.0%}"
    assert f"the same decision with {share} of the answers." in text
    assert "Report these: they allow for the looks" in text
    assert old.name in text


@whole
@pytest.mark.process
def test_its_commands_run_as_printed(demo: tuple[Path, str], tmp_path: Path) -> None:
    """In a copy of what the demonstration left, so that the other tests find it as it was."""
    out, text = demo
    shutil.copytree(out, tmp_path / "out")
    commands = [shlex.split(line[2:]) for line in text.splitlines() if line.startswith("$ ")]
    programs = {"harness-noise": "harness_noise", "inspect": "inspect_ai"}
    assert {command[0] for command in commands} == programs.keys()
    for program, *arguments in commands:
        command = [sys.executable, "-m", programs[program], *arguments]
        again = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"NO_COLOR": "1"}
        )
        assert again.returncode == 0, (command, again.stderr[-2000:])

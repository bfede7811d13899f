"""`harness-noise lm-eval …`: lm-eval's own command line, with and without the noise."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("lm_eval")

from lm_eval import evaluator

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.errors import InputError
from harness_noise_adapters.lm_eval_harness import noise
from harness_noise_adapters.lm_eval_harness.live import cli
from harness_noise_adapters.lm_eval_harness.live.options import Options
from support import lm_eval_models as toys
from support.lm_eval_live import run, saved
from support.processes import environment

pytestmark = pytest.mark.usefixtures("quick_lm_eval")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks")
    toys.write_task(path, "gen", toys.docs(12))
    toys.write_task(path, "choice", toys.docs(12), toys.CHOICE)
    return path


TIMES = ("date", "start_time", "end_time", "total_evaluation_time_seconds", "model_name_sanitized", "config")


def test_without_the_flag_it_is_lm_eval(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm_eval.__main__ import cli_evaluate

    arguments = run(folder, "--log_samples", "--output_path")
    monkeypatch.setattr(sys, "argv", ["lm-eval", *arguments, str(tmp_path / "theirs" / "x.json")])
    cli_evaluate()
    theirs = capsys.readouterr().out
    assert main(["lm-eval", *arguments, str(tmp_path / "ours" / "x.json")]) == 0
    assert capsys.readouterr().out == theirs
    texts = [
        [(tmp_path / name / file).read_text() for file in ("results", "samples")]
        for name in ("theirs", "ours")
        if collect_into(tmp_path / name)
    ]
    assert texts[0] == texts[1]


def collect_into(path: Path) -> bool:
    (results,) = path.glob("x_*.json")
    (samples,) = path.glob("samples_gen_*.jsonl")
    content = {key: value for key, value in json.loads(results.read_text()).items() if key not in TIMES}
    (path / "results").write_text(json.dumps(content))
    (path / "samples").write_text(samples.read_text())
    return True


def test_the_flag_adds_to_table_and_files(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--noise", "--noise_repeats", "4", "--noise_cluster", "template", "--noise_group", "all=*")
    assert main(["lm-eval", *run(folder, "--log_samples", "--output_path", str(tmp_path), *options)]) == 0
    shown = capsys.readouterr()
    native, ours = shown.out.split("\n\n", 1)
    assert re.search(r"\|exact_match +\|↑", native)
    assert re.search(r"exact_match_avg\|↑", native)
    for word in ("SE (1 answer)", "few_clusters", "lm-eval's own ± "):
        assert word in ours
    results, samples = saved(tmp_path)
    assert results["noise"]["schema_version"] == 2
    assert {item["task"] for item in results["noise"]["estimates"]} == {"gen", "all"}
    assert all(item["model"] == "sim-hash" for item in results["noise"]["estimates"])
    first = json.loads(samples.splitlines()[0])
    assert len(first["scores_per_repeat"]["exact_match"]) == 4
    assert first["cluster"] == "t0"
    assert evaluator.evaluate.__module__.startswith("lm_eval")


def test_two_tasks_explain_what_is_asked_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ("--model_args", "pretrained=toy/model")
    assert main(["lm-eval", *run(folder, *model, "--noise", "--noise_repeats", "3", tasks="gen,choice")]) == 0
    shown = capsys.readouterr()
    for line in (r"gen exact_match, strict: \d+\.\d% ± \d+\.\d points \(", r"choice acc: \d+% ± \d+ points \("):
        assert re.search(f"^{line}", shown.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--noise_repeats", "3"], "--noise_repeats does nothing without --noise"),
        (["--noise_no_rows"], "--noise_no_rows does nothing without --noise"),
        (["--noise", "--noise_repeats", "0"], "repeats must be at least 1, not 0"),
        (["--noise", "--noise_repeats", "-2"], "repeats must be at least 1"),
        (["--noise", "--noise_repeats", "many"], "must be a whole number"),
        (["--noise", "--noise_level", "1"], "is not between 0 and 1"),
        (["--noise", "--noise_level", "high"], "must be a number"),
        (["--noise", "--noise_cluster", "passage"], "The fields are answer, choices, label, meta, question, template"),
        (["--noise", "--noise_cluster", "a", "--noise_cluster", "gen=b"], "write *=SPEC for all, last"),
        (["--noise", "--noise_cluster", "a", "--noise_cluster", "b"], "cluster field 'a' does not exist"),
        (["--noise", "--noise_cluster", "{{"], "Jinja"),
        (["--noise", "--noise_group", "gen"], "is not NAME=PATTERN"),
        (["--noise", "--noise_group", "x=nothing*"], "no task matches. This run has gen"),
        (["--noise", "--noise_group", "gen=*"], "already called 'gen'"),
        (["--noise", "--noise_config", "/nowhere/noise.yaml"], "cannot be read"),
    ],
)
def test_what_cannot_be_used(
    folder: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lm-eval", *run(folder, *options)]) == 2
    shown = capsys.readouterr()
    (paragraph,) = [line for line in shown.err.splitlines() if line.startswith("harness-noise:")]
    assert message in paragraph
    assert "Traceback" not in shown.err
    assert "exact_match" not in shown.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["ls", "--help"], 0),
        (["run", "--help"], 0),
        (["run", "--no-such-flag"], 2),
        (["validate", "--help"], 0),
    ],
)
def test_other_commands_and_codes_are_lm_evals(
    arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lm-eval", *arguments]) == code
    assert "usage: lm-eval" in "".join(capsys.readouterr())


def test_forms_without_run_and_abbreviations_still_work(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lm-eval"]) == 0
    assert "usage: lm-eval" in capsys.readouterr().out
    assert main(["lm-eval", *run(folder, "--n", "0", "--lim", "5")[1:]]) == 0
    assert "limit: 5.0, num_fewshot: 0" in capsys.readouterr().out
    assert main(["lm-eval", *run(folder, "--noise", "--noise_repeats", "2")[1:]]) == 0
    assert "SE (1 answer)" in capsys.readouterr().out


def test_a_fault_of_lm_evals_ends_as_without_us(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lm-eval", "run", "--config", "/nowhere/config.yaml"]) == 1
    assert "FileNotFoundError" in capsys.readouterr().err


def config(folder: Path, path: Path, block: object) -> str:
    content = {
        "model": "sim-hash", "tasks": ["gen"], "include_path": str(folder), "output_path": str(path / "out"),
        "log_samples": True, "noise": block,
    }  # fmt: skip
    file = path / "config.yaml"
    file.write_text(yaml.safe_dump(content))
    return str(file)


def test_the_block_in_lm_evals_own_yaml(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = config(folder, tmp_path, {"repeats": 3, "cluster": {"gen": "template"}, "level": 0.9, "rows": False})
    before = Path(file).read_text()
    assert main(["lm-eval", "run", "--config", file, "--noise_repeats", "2"]) == 0
    assert Path(file).read_text() == before
    results, _ = saved(tmp_path)
    (found, _) = results["noise"]["estimates"]
    assert (found["repeats_max"], found["cluster"], found["level"]) == (2, "template", 0.9)
    assert "exact_match_avg,strict" not in results["results"]["gen"]
    assert "SE (1 answer)" in capsys.readouterr().out


@pytest.mark.parametrize(("block", "noisy"), [(True, True), ({}, True), (None, True), (False, False)])
def test_short_forms_of_the_block(folder: Path, tmp_path: Path, block: object, noisy: bool) -> None:
    assert main(["lm-eval", "run", "--config", config(folder, tmp_path, block)]) == 0
    assert ("noise" in saved(tmp_path)[0]) is noisy


def test_an_unknown_key_in_the_block(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lm-eval", "run", "--config", config(folder, tmp_path, {"repeat": 3})]) == 2
    assert "unknown option 'repeat'. There are repeats, cluster" in capsys.readouterr().err
    assert main(["lm-eval", "run", "--config", config(folder, tmp_path, [3])]) == 2
    assert "must be a mapping" in capsys.readouterr().err


def test_a_noise_config_of_its_own(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "noise.yaml"
    file.write_text("noise:\n  repeats: 3\n  groups: {all: gen}\n")
    out = ("--log_samples", "--output_path", str(tmp_path / "out"))
    assert main(["lm-eval", *run(folder, *out, "--noise", "--noise_config", str(file))]) == 0
    results, _ = saved(tmp_path)
    assert [item["task"] for item in results["noise"]["estimates"]] == ["gen", "gen", "all", "all"]
    assert {item["repeats_max"] for item in results["noise"]["estimates"]} == {3}


def test_the_shipped_configuration(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    file = "configs/lm_eval/noise.yaml"
    here = ("--model", "sim-hash", "--tasks", "toy_sums,toy_choice", "--output_path", str(tmp_path))
    assert main(["lm-eval", "run", "--config", file, *here]) == 0
    (results,) = tmp_path.glob("**/results_*.json")
    estimates = json.loads(results.read_text())["noise"]["estimates"]
    assert {(item["task"], item["repeats_max"], item["n_clusters"]) for item in estimates} == {
        ("toy_sums", 5, 4),
        ("toy_choice", 1, 4),
    }


def test_a_table_that_cannot_be_printed_costs_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from harness_noise.report import terminal

    def broken(*_: Any) -> None:
        raise RuntimeError("no colours today")

    monkeypatch.setattr(terminal, "print_live", broken)
    out = ("--log_samples", "--output_path", str(tmp_path))
    assert main(["lm-eval", *run(folder, *out, "--noise", "--noise_repeats", "2")]) == 0
    assert "no colours today" in caplog.text
    assert "noise" in saved(tmp_path)[0]


def test_the_plugin_module(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import importlib

    name = "harness_noise_adapters.lm_eval_harness.live.plugin"
    for key, value in {"REPEATS": "3", "CLUSTER": "template", "GROUPS": "all=gen", "ROWS": "no"}.items():
        monkeypatch.setenv(f"HARNESS_NOISE_{key}", value)
    before = evaluator.evaluate
    sys.modules.pop(name, None)
    sys.modules.pop("harness_noise.lm_eval", None)
    importlib.import_module("harness_noise.lm_eval")  # what `--plugins harness_noise.lm_eval` does
    plugin = sys.modules[name]
    try:
        results = toys.simple_evaluate(folder, ["gen"])
        with noise(repeats=2) as inner:  # the nearer one wins, and is not applied twice
            toys.simple_evaluate(folder, ["gen"])
    finally:
        plugin.uninstall()
        sys.modules.pop(name)
        sys.modules.pop("harness_noise.lm_eval")
    assert evaluator.evaluate is before
    found = {item["task"]: item for item in results["noise"]["estimates"]}
    assert set(found) == {"gen", "all"}
    assert (found["gen"]["repeats_max"], found["gen"]["cluster"]) == (3, "template")
    assert inner.analysis.estimates[0].repeats_max == 2
    cli.report(plugin.session)
    assert "SE (1 answer)" in capsys.readouterr().out


@pytest.mark.process
def test_the_end_of_a_process_with_the_plugin_says_nothing_but_the_table(folder: Path) -> None:
    program = (
        "import sys; from pathlib import Path; import harness_noise.lm_eval; "
        "from support import lm_eval_models as toys; toys.simple_evaluate(Path(sys.argv[1]), ['gen'])"
    )
    variables = environment(HARNESS_NOISE_REPEATS="2")
    done = subprocess.run([sys.executable, "-c", program, folder], env=variables, capture_output=True, text=True)
    assert done.returncode == 0
    assert "12 questions, 2 answers each" in done.stdout
    assert "Exception ignored" not in done.stderr
    assert "Traceback" not in done.stderr


def test_the_short_name_of_the_plugin_hides_no_lm_eval(tmp_path: Path) -> None:
    code = "import harness_noise.lm_eval, lm_eval, lm_eval.evaluator as e; print(lm_eval.__name__, e.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment())
    assert done.stdout.split() == ["lm_eval", "lm_eval.evaluator"], done.stderr


def test_the_simulated_model_says_what_it_is_for() -> None:
    from harness_noise_adapters.lm_eval_harness import adapter

    with pytest.raises(InputError, match=r"is for the demonstration: it answers only the task word_problems"):
        adapter.cli(["run", "--model", "simulated", "--tasks", "gsm8k"])


@pytest.mark.parametrize("name", ["REPEATS", "LEVEL", "GROUPS", "ROWS"])
def test_a_wrong_environment(name: str) -> None:
    with pytest.raises(InputError, match="environment HARNESS_NOISE_"):
        Options.from_environment({f"HARNESS_NOISE_{name}": "perhaps"})


def test_importing_the_adapter_is_cheap() -> None:
    code = (
        "import sys, harness_noise_adapters.lm_eval_harness as a; a.adapter; "
        "print([m for m in ('lm_eval', 'numpy', 'pandas', 'scipy', 'yaml', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_is_written_reads_back_as_it_was_shown(folder: Path, tmp_path: Path) -> None:
    """The post-hoc reader finds in the files what the live hook had in memory."""
    options = ("--noise", "--noise_repeats", "4", "--noise_cluster", "gen=template", "--log_samples")
    assert main(["lm-eval", *run(folder, *options, "--output_path", str(tmp_path), tasks="gen,choice")]) == 0
    results, _ = saved(tmp_path)
    live = {(item["task"], item["metric"], item["scorer"]): item for item in results["noise"]["estimates"]}
    again = {(item.task, item.metric, item.scorer): item for item in hn.analyze(tmp_path).estimates}
    assert set(again) == set(live)
    for key, item in again.items():
        for name in ("mean", "se", "se_total", "se_data", "se_prediction", "n_clusters", "repeats_max", "ci_low"):
            assert getattr(item, name) == live[key][name], (key, name)


_LOADED = """
import sys
from support.lm_eval_child import TaskManager, init, main
TaskManager.__init__ = init
assert main(["lm-eval", *sys.argv[1:]]) == 0
extras = [name for name in sys.modules if name.startswith("harness_noise") and ".extra." in name]
print("loaded", *sorted(name for name in extras if name.count(".") > 2))
"""


def test_a_flagged_run_loads_no_extra(folder: Path, tmp_path: Path) -> None:
    """Their declarations alone."""
    words = run(folder, "--log_samples", "--output_path", str(tmp_path), "--noise", "--noise_repeats", "3")
    command = [sys.executable, "-c", _LOADED, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment(), check=False)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["loaded"]), done.stdout + done.stderr
    assert "exact_match_avg" in done.stdout

"""The command line itself: what it loads, its help, its exit codes, its streams."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from harness_noise.cli import main, reference
from harness_noise.cli.commands import COMMANDS
from harness_noise_adapters.extra import demo

DEMO = Path(demo.__file__).with_name("runs")
HEAVY = ("numpy", "pandas", "scipy", "rich", "jinja2", "lm_eval", "inspect_ai", "harness_noise_adapters")


def python(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=cwd)


@pytest.mark.process
@pytest.mark.parametrize(
    "statement",
    [
        "import harness_noise",
        "from harness_noise.cli import main; main(['--help'])",
        "from harness_noise.cli import main; main(['compare', '--help'])",
        "import harness_noise.inspect_ext",
    ],
)
def test_what_need_not_be_loaded_is_not(statement: str, tmp_path: Path) -> None:
    theirs = ("inspect_ai", "rich") if "inspect_ext" in statement else ()  # Inspect itself loads rich
    heavy = [name for name in HEAVY if name not in theirs]
    out = python(f"import sys\n{statement}\nprint([m for m in {heavy} if m in sys.modules])", tmp_path).stdout
    assert out.splitlines()[-1] == "[]"


@pytest.mark.process
@pytest.mark.parametrize("command", [["analyze", "a.csv"], ["compare", "a.csv", "b.csv"]])
def test_a_small_command_loads_what_it_needs_only(command: list[str], tmp_path: Path) -> None:
    """A second of scipy.stats, or a tenth of scipy.sparse, is much beside the third of a second that it takes."""
    for name in ("a", "b"):
        rows = [f"q{i},{(i * 7 + len(name)) % 10 % 2},{i // 5}" for i in range(50)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["question,score,cluster", *rows]))
    heavy = [
        "pandas", "jinja2", "lm_eval", "inspect_ai",
        "scipy.sparse", "scipy.stats", "scipy.optimize", "scipy.linalg",
        *(f"harness_noise.{name}" for name in ("extra.arena.results", "stats.resampling", "extra.corpus.estimating")),
        "harness_noise.extra.plan.results",
    ]  # fmt: skip
    # before scipy 1.17 the special functions, which every command needs, load scipy.linalg by themselves
    code = f"import sys, scipy.special\nown = set(sys.modules)\nfrom harness_noise.cli import main\nmain({command})\n"
    out = python(f"{code}print([m for m in {heavy} if m in sys.modules and m not in own])", tmp_path).stdout
    assert out.splitlines()[-1] == "[]"


@pytest.mark.process
def test_estimators_know_neither_pandas_nor_files(tmp_path: Path) -> None:
    code = (
        "import sys, pkgutil, importlib, harness_noise.stats as e\n"
        "for m in pkgutil.iter_modules(e.__path__): importlib.import_module(f'harness_noise.stats.{m.name}')\n"
        "own = ('harness_noise.data.scores', 'harness_noise.io.registry')\n"
        "print([m for m in ('pandas', 'rich', *own) if m in sys.modules])"
    )
    assert python(code, tmp_path).stdout.splitlines()[-1] == "[]"


def options(command: click.Command) -> list[str]:
    return [
        name for item in command.params if isinstance(item, click.Option) for name in item.opts if name.startswith("--")
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_is_documented_with_its_options(name: str, root: Path) -> None:
    command, page = COMMANDS[name], (root / "docs" / "options.md").read_text()
    assert all(f"\n## {name}\n" in text for text in (page, (root / "docs" / "commands.md").read_text()))
    assert command.help
    undocumented = [option for option in options(command) if not re.search(rf"{option}\b", page)]
    assert undocumented == []


def test_the_page_of_options_is_made_of_the_help(root: Path) -> None:
    assert (root / "docs" / "options.md").read_text() == reference.page()
    assert "| `--se [cr2\\|cr0\\|cr1\\|cr3]` | " in reference.page()
    assert reference.page().count("| `--legend` |") == 1, "an option of several commands is told once"


def test_no_option_is_documented_that_does_not_exist(root: Path) -> None:
    page = (root / "docs" / "commands.md").read_text()
    table = set(re.findall(r"^\| `(--[\w-]+)", page, re.M))
    known = {option for name in COMMANDS for option in options(COMMANDS[name])}
    assert table - known == set()


def table(path: Path, shift: int = 0) -> Path:
    rows = [f"q{i},{int((7 * i + shift) % 5 < 3)},{i // 5}" for i in range(60)]
    path.write_text("question,score,cluster\n" + "\n".join(rows) + "\n")
    return path


def test_results_go_to_stdout_and_hints_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(table(tmp_path / "a.csv")), "--format", "json"]) == 0
    out, _ = capsys.readouterr()
    found = json.loads(out)["estimates"][0]
    assert (found["n_questions"], found["n_clusters"], found["model"]) == (60, 12, "a")


def test_table_json_csv_markdown_latex_and_file_say_the_same_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(table(tmp_path / "a.csv"))
    for form in ("table", "json", "csv", "markdown", "latex"):
        assert main(["analyze", path, "--format", form, "-q"]) == 0
        assert ("0.6" if form in ("json", "csv") else "60.0") in capsys.readouterr().out
        target = tmp_path / f"out.{form}"
        assert main(["analyze", path, "--format", form, "-q", "-o", str(target)]) == 0
        assert ("0.6" if form in ("json", "csv") else "60.0") in target.read_text()
        assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["analyze", "no-such-file"], "no such file"),
        (["analyze", "{a}", "--level", "1.5"], "level 1.5 is not between 0 and 1"),
        (["analyze", "{a}", "--metric", "nope"], "There is only score"),
        (["compare", "{a}"], "name a second run"),
        (["compare", "{a}", "{a}", "{a}"], "--models A,B"),
        (["compare", "{a}", "{b}", "--margin", "-1"], "margin -1 must not be negative"),
        (["compare", "{a}", "{b}", "--models", "x,y"], "The models are"),
        (["compare", "{a}", "{other}"], "no question in common"),
        (["analyze", "{a}", "--group", "x"], "write NAME=VALUE"),
        (["analyze", "{empty}"], "{empty}"),
        (["export", "{a}"], "say where to write"),
        (["export", "{a}", "-o", "x", "--in-place"], "say where to write"),
    ],
)
def test_what_cannot_be_used_is_one_paragraph_and_exit_2(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"a": str(table(tmp_path / "a.csv")), "b": str(table(tmp_path / "b.csv", 1)), "empty": str(tmp_path / "e")}
    (tmp_path / "e").mkdir()
    (tmp_path / "other.csv").write_text("question,score\nz1,1\nz2,0\n")
    names["other"] = str(tmp_path / "other.csv")
    before = {path: path.read_bytes() for path in tmp_path.glob("*.csv")}
    code = main([part.format(**names) for part in arguments])
    out, err = capsys.readouterr()
    assert code == 2
    assert words.format(**names) in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert out == ""
    assert {path: path.read_bytes() for path in tmp_path.glob("*.csv")} == before


def test_wrong_usage_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze"]) == 2
    assert main(["nonsense"]) == 2
    assert main(["compare", "a", "b", "--test", "wald"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_the_gate_trips_only_on_a_certain_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text("question,score\n" + "".join(f"q{i},{int(i % 10 < 9)}\n" for i in range(200)))
    bad.write_text("question,score\n" + "".join(f"q{i},{int(i % 10 < 5)}\n" for i in range(200)))
    assert main(["gate", str(bad), "--against", str(good), "-q"]) == 1
    assert "fail: table score: A − B = −40.0 points is shown to be below 0 points" in capsys.readouterr().out
    assert main(["gate", str(good), "--against", str(bad), "-q"]) == 0
    same = tmp_path / "same.csv"
    same.write_text(good.read_text())
    assert main(["gate", str(same), "--against", str(good), "-q"]) == 0
    assert main(["gate", str(good), "--against", str(good), "-q"]) == 2, "a run is no baseline of its own"
    assert main(["gate", str(bad), "--against", str(good), "-q", "--margin", "0.5"]) == 0
    assert main(["compare", str(bad), str(good), "-q"]) == 0


def test_ctrl_c_is_one_line_and_exit_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness_noise.io.registry.resolve_path", stop)
    assert main(["analyze", "x"]) == 130
    assert capsys.readouterr().err == "harness-noise: stopped\n"


@pytest.mark.process
def test_a_closed_pipe_is_silent(tmp_path: Path) -> None:
    path = tmp_path / "wide.jsonl"
    rows = [{"task": f"t{t}", "question": f"q{i}", "score": (i * t) % 2} for t in range(400) for i in range(2)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = f"{sys.executable} -m harness_noise analyze {path} -q | head -1; echo code ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "code 0"


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    from harness_noise import InputError

    with pytest.raises(InputError, match="no such file"):
        main(["analyze", str(tmp_path / "nothing"), "--debug"])


def test_two_models_in_one_file_and_the_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scores.csv"
    rows = [f"q{i},m{m},{int((i * 7 + 3 * m) % 10 < 5 + m)}" for i in range(80) for m in range(3)]
    path.write_text("question,model,score\n" + "\n".join(rows) + "\n")
    assert main(["compare", str(path), "--models", "m2,m0", "--format", "json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)["comparisons"]
    assert [(row["model_a"], row["model_b"]) for row in found] == [("m2", "m0")]
    base = tmp_path / "base.csv"
    base.write_text("question,score\n" + "".join(f"q{i},{i % 2}\n" for i in range(80)))
    assert main(["compare", str(path), "--against", str(base), "--format", "json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)["comparisons"]
    assert [(row["model_a"], row["model_b"]) for row in found] == [("m0", "base"), ("m1", "base"), ("m2", "base")]
    assert all(row["p_adjusted"] >= row["p_value"] for row in found)


def test_several_runs_of_one_model_are_repeats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for run in range(3):
        path = tmp_path / f"run{run}.csv"
        rows = [f"q{i},m,{int((i * 7 + run * (i % 4)) % 10 < 6)}" for i in range(50)]
        path.write_text("question,model,score\n" + "\n".join(rows) + "\n")
        paths.append(str(path))
    assert main(["analyze", *paths, "--as-repeats", "--format", "json", "-q"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["estimates"]
    assert (found["repeats_min"], found["repeats_max"], found["n_questions"]) == (3, 3, 50)
    assert found["se_prediction"] > 0


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"question": f"q{i}", "score": i % 2, "model": "\x1b[31m[bold]evil\x07"} for i in range(10)]
    rows += [{"question": f"q{i}", "score": 1, "model": "=1+1"} for i in range(10)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["analyze", str(path), "-q"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[bold]evil" in out
    assert main(["analyze", str(path), "-q", "--format", "csv"]) == 0
    assert ",'=1+1," in capsys.readouterr().out


def test_the_columns_that_a_message_proposes_can_be_said_though_their_name_has_commas(tmp_path, capsys):
    path = tmp_path / "runs.json"
    rows = [{"id": f"q{i}", "score": i % 2} for i in range(6)]
    path.write_text(json.dumps({"plain (no rewrite, no rerank)": {"of": rows}, "both": {"of": rows[:3]}}))
    assert main(["analyze", str(path)]) == 2
    (proposed,) = re.findall(r'--columns (\S+"[^"]*")', " ".join(capsys.readouterr().err.split()))
    columns = f"{''.join(shlex.split(proposed))},question=id"
    assert main(["analyze", str(path), "--columns", columns, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["estimates"][0]["n_questions"] == 6


def test_list_says_what_a_file_would_be_read_as(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new.csv"
    rows = [f"q{q},{r},f{q % 3},{(q + r) % 2}" for q in range(9) for r in range(2)]
    path.write_text("\n".join(["question,repeat,cluster,score", *rows]) + "\n")
    assert main(["list", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "9 questions × 2 answers, 3 clusters (cluster), mean 50%" in out
    assert re.findall(r"^(texts|own mean|repeats|clusters) ", out, re.MULTILINE) == ["texts", "own mean"]
    assert out.splitlines()[0].split() == ["run", str(path)]
    assert "score: score, 0/1" in err
    assert main(["list", str(path), "--columns", "repeat=none,cluster=none"]) == 0
    assert "9 questions × 2 answers, mean 50%" in capsys.readouterr().out
    assert main(["list", "--columns", "score=score"]) == 2
    assert "--columns says how a file is read" in capsys.readouterr().err
    assert main(["list", str(tmp_path / "nothing.csv")]) == 2
    assert "nothing.csv" in capsys.readouterr().err


def test_list_has_the_mean_of_all_answers_where_the_harness_has_that_of_the_first_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list", str(DEMO / "lm-eval" / "sim-a")]) == 0
    assert ", mean 62.5%; of the first answers: mean 60%, the harness says 60%\n" in capsys.readouterr().out


def test_list_has_the_harness_s_own_mean_beside_ours_and_names_what_is_left_out_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = {f"sample_{i}": [i % 2 == 0, True] for i in range(6)}
    (tmp_path / "a.json").write_text(json.dumps({"raw_scored_generations": right, "pass_at_1": 75.0}))
    for name in ("b", "c"):
        (tmp_path / f"{name}.csv").write_text("question,correct\n" + "".join(f"q{i},{i % 2}\n" for i in range(6)))
    (tmp_path / "bad.csv").write_text("question,tokens\nq1,3\n")
    assert main(["list", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "6 questions × 2 answers, mean 75%, the harness says 75%" in out
    assert "6 questions × 1 answer, mean 50%\n" in out
    assert re.search(r"repeats .*\(in 2 of 3 scores\)", out)
    assert err.count("left out: ") == err.count("bad.csv") == 1


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["explain", "x"], "explain is now regress"), (["references"], "references is now list"),
        (["adapters"], "adapters is now list"),
    ],
)  # fmt: skip
def test_a_former_command_says_what_it_is_now(
    typed: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # a folder that is called so is read
    assert main(typed) == 2
    assert said in capsys.readouterr().err
    assert main([*typed[:1], "--help"]) == 2


def test_a_gate_names_two_runs_of_one_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place, shift in (("new", 0), ("old", 1)):
        (tmp_path / place).mkdir()
        rows = [f"same,q{i},{int((7 * i + shift) % 5 < 3)}" for i in range(60)]
        (tmp_path / place / "scores.csv").write_text("model,question,score\n" + "\n".join(rows) + "\n")
    main(["gate", str(tmp_path / "new" / "scores.csv"), "--against", str(tmp_path / "old" / "scores.csv"), "-q"])
    said = "".join(capsys.readouterr().out.split())
    assert f"A={tmp_path}/new/scores.csv,B={tmp_path}/old/scores.csv" in said

"""What CONTRIBUTING says of a new adapter, diagnostic, interval and command is enough, and touches so many files."""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from support.packages import contents, copied, install
from support.processes import environment
from unit.test_choices import add_one_of_each

pytestmark = pytest.mark.process
Say = Callable[..., str]


@pytest.fixture
def say(tmp_path: Path) -> Say:
    """Run Python with the packages of the temporary folder before all others; return its output."""
    env = environment(tmp_path, COLUMNS="120")

    def run(*arguments: str, code: int = 0) -> str:
        command = [sys.executable, "-m", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def table(path: Path, n: int, shift: int = 0) -> None:
    """Write a table of n questions and their scores."""
    path.write_text("question,score\n" + "".join(f"q{i},{(i + shift) % 3 // 2}\n" for i in range(n)))


def touched(before: dict[str, str], after: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the files that are new, and those that were changed."""
    assert not before.keys() - after.keys()
    return sorted(after.keys() - before.keys()), [name for name in before if before[name] != after[name]]


def change(path: Path, old: str, new: str) -> None:
    """Put a text in place of another that stands once in a file."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_an_adapter_is_three_new_files(root: Path, tmp_path: Path, say: Say) -> None:
    template = root / "configs" / "adapter_template"
    for name in ("harness_noise_trials.py", "pyproject.toml", "test_trials.py"):
        text = (template / name).read_text(encoding="utf-8")
        (tmp_path / name.replace("trials", "quiz")).write_text(text.replace("trials", "quiz"), encoding="utf-8")
    assert list(contents(tmp_path)) == ["harness_noise_quiz.py", "pyproject.toml", "test_quiz.py"]
    install(tmp_path)
    rows = [{"task": "t", "id": f"q{i}", "trial": 1, "score": i % 2} for i in range(8)]
    (tmp_path / "m.quiz.json").write_text(json.dumps({"model": "m", "quiz": rows}))
    assert "3 passed" in say("pytest", "-q", "-p", "no:cacheprovider", "test_quiz.py")  # check_adapter is one
    assert "Runs of MY HARNESS: NAME.quiz.json" in " ".join(say("harness_noise", "list").split())
    assert '"mean": 0.5' in say("harness_noise", "analyze", "m.quiz.json", "--format", "json")


NEW_DIAGNOSTIC = """    Diagnostic(
        "dozens",
        Severity.NOTE,
        "the questions come in dozens",
        "Count the eggs.",
        page="The number of {units} is a multiple of twelve.",
    ),
    Diagnostic(
        "unequal_chances",
"""


def test_a_diagnostic_changes_two_files(tmp_path: Path, say: Say) -> None:
    package = copied(tmp_path)
    before = contents(package)
    change(package / "results" / "diagnostics.py", '    Diagnostic(\n        "unequal_chances",\n', NEW_DIAGNOSTIC)
    seen = '    codes |= {"different_prompts"} if'
    more = '    codes |= {"dozens"} if compared.parts_a[0].values.shape[0] % 12 == 0 else set()\n'
    change(package / "analysis" / "difference.py", seen, more + seen)
    assert touched(before, contents(package)) == ([], ["analysis/difference.py", "results/diagnostics.py"])
    for name, n, shift in (("a", 24, 0), ("b", 24, 1), ("c", 25, 0), ("d", 25, 1)):
        table(tmp_path / f"{name}.csv", n, shift)
    for a, b, seen in (("a", "b", True), ("c", "d", False)):
        said = say("harness_noise", "compare", f"{a}.csv", f"{b}.csv", "--format", "json", "--quiet")
        assert ("dozens" in json.loads(said)["comparisons"][0]["diagnostics"]) is seen
    shown = say("harness_noise", "compare", "a.csv", "b.csv", "--details")
    assert "the questions come in dozens. What to do: count the eggs." in " ".join(shown.split())
    page = say("harness_noise.cli.diagnostics")
    assert '| <a id="dozens"></a>`dozens` | The number of {units} is a multiple of twelve. | Count the eggs. |' in page
    assert '"dozens"' in say("harness_noise.results.schema")


CHOICES = "import numpy as np\n\n" + dedent(
    """
    from harness_noise.choices import DifferenceTest, Estimator, IntervalMethod, register
    from harness_noise.stats.decision import Test as Decided
    from harness_noise.stats.intervals import Limits
    """
)
PROJECT = """
[project]
name = "mine"
version = "1"

[project.entry-points."harness_noise.choices"]
mine = "mine"
"""


def test_an_interval_a_test_and_an_estimator_are_one_file(tmp_path: Path, say: Say) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "mine.py").write_text('"""A package that registers choices, with none yet."""\n')
    install(tmp_path)
    before = contents(tmp_path)
    table(tmp_path / "a.csv", 40)
    table(tmp_path / "few.csv", 4)
    assert "two-se" not in say("harness_noise", "analyze", "--help-all")
    shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
    (tmp_path / "mine.py").write_text(f"{CHOICES}\n\n{inspect.getsource(add_one_of_each)}\n\nadd_one_of_each()\n")
    after = {name: text for name, text in contents(tmp_path).items() if not name.endswith(".csv")}
    assert touched(before, after) == ([], ["mine.py"])

    assert "two-se" in say("harness_noise", "analyze", "--help-all")
    shown = say("harness_noise", "analyze", "a.csv", "--interval", "two-se", "--se", "double", "--format", "markdown")
    assert "Two SE" in shown
    refused = say("harness_noise", "analyze", "few.csv", "--interval", "two-se", code=2)
    assert "needs 5 degrees of freedom" in " ".join(refused.split())
    assert "--interval two-se" in say("harness_noise", "compare", "a.csv", "a.csv", "--interval", "two-se", code=2)
    page = say("harness_noise.report.choices")
    for line in ("| `two-se` | Two SE | The mean ± 2 SE.", "| `double` | Double | Twice CR0.", "| `coin` | a coin |"):
        assert line in page


EXTRA = {
    "__init__": '''
        """Eggs: how many boxes the questions of a run fill."""

        from ...extras import Calculation, Extra

        EXTRA = Extra(
            functions={"boxes": "api"},
            commands={"boxes": "cli"},
            calculations={"boxes": Calculation(refusals={"": "boxes do not use {what}: leave it out"})},
        )
    ''',
    "api": '''
        """The public function."""

        from ...io.sources import listed


        def boxes(runs, size=6):
            """Return the number of boxes that the questions of runs fill."""
            from ... import read

            n = sum(part.values.shape[0] for source in listed(runs) for run in read(source) for part in run.scores)
            return -(-n // size)
    ''',
    "cli": '''
        """`harness-noise boxes RUN…`."""

        import click

        from ...cli import options


        @options.command("boxes", "harness-noise boxes scores.csv")
        @options.RUN
        @options.to_compute(options.value("--size", "N", "Eggs in a box.", int))
        def command(runs, size):
            """Count the boxes that the questions fill."""
            from ... import boxes

            click.echo(f"{boxes(list(runs), size or 6)} boxes")
    ''',
}


def test_a_command_is_one_folder(tmp_path: Path, say: Say) -> None:
    package = copied(tmp_path)
    before = contents(package)
    table(tmp_path / "a.csv", 20)
    assert "boxes" not in say("harness_noise", "--help")
    (package / "extra" / "eggs").mkdir()
    for name, text in EXTRA.items():
        (package / "extra" / "eggs" / f"{name}.py").write_text(dedent(text).lstrip(), encoding="utf-8")
    new, changed = touched(before, contents(package))
    assert ({str(Path(name).parent) for name in new}, len(new), changed) == ({"extra/eggs"}, 3, [])

    assert "boxes Count the boxes that the questions fill." in " ".join(say("harness_noise", "--help").split())
    assert "--size N" in say("harness_noise", "boxes", "--help")
    assert say("harness_noise", "boxes", "a.csv") == "4 boxes\n"
    assert say("harness_noise", "boxes", "a.csv", "--size", "10") == "2 boxes\n"
    shutil.rmtree(package / "extra" / "eggs")
    say("harness_noise", "boxes", "a.csv", code=2)

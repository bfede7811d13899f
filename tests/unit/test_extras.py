"""What stands beside the core can be deleted: the core does not miss it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import harness_noise as hn
from harness_noise import extras
from harness_noise.cli.commands import COMMANDS
from support.processes import environment

PACKAGE = Path(hn.__file__).parent
FOLDERS = sorted(path.parent.name for path in (PACKAGE / "extra").glob("*/__init__.py"))


def test_every_folder_is_an_extra_with_all_that_it_names():
    assert [name.rpartition(".")[2] for name in extras.found()] == FOLDERS
    for extra in extras.found().values():
        assert all(extras.public(name).__doc__ for name in extra.functions)
        assert all(COMMANDS[name].name == name for name in extra.commands)
        assert all(name in COMMANDS for writer in extra.writers for name in writer.commands)
        assert all(writer.function in extra.functions for writer in extra.writers)
        assert all(command in COMMANDS for switch in extra.switches for command in switch.functions)
        assert all(function in extra.functions for switch in extra.switches for function in switch.functions.values())


@pytest.mark.process
@pytest.mark.parametrize("left", [None, *FOLDERS])
def test_the_core_works_without_extras_and_with_each_alone(tmp_path, left):
    copy = tmp_path / "harness_noise"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    if left is None:
        shutil.rmtree(copy / "extra")
    for folder in copy.glob("extra/*/"):
        if folder.name != left:
            shutil.rmtree(folder)
    (tmp_path / "a.csv").write_text("question,score\n" + "".join(f"q{i},{i % 2}\n" for i in range(8)))
    (tmp_path / "b.csv").write_text("question,score\n" + "".join(f"q{i},{i % 3 // 2}\n" for i in range(8)))
    run = [sys.executable, "-m", "harness_noise"]
    for words in (["--help"], ["analyze", "a.csv"], ["compare", "a.csv", "b.csv", "--format", "json"]):
        env = environment(tmp_path)
        done = subprocess.run([*run, *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


ASKED = {
    "factors": ["factors", "a.csv", "--factor", "x"],
    "gate": ["gate", "a.csv", "--against", "a.csv"],
    "label": ["label", "a.csv"],
    "plan": ["plan", "--n", "100", "--accuracy", "0.7"],
    "regress": ["regress", "a.csv", "--on", "x"],
    "--by": ["analyze", "a.csv", "--by", "x"],
}
"""Command or option of an extra → how it is asked for."""
_NAMES = """
import harness_noise as hn
for name in hn.__all__:
    try:
        getattr(hn, name)
    except AttributeError as error:
        print(error)
for keywords in ({"labels": "a.csv"}, {"by": ["x"]}):
    try:
        hn.analyze("a.csv", **keywords)
    except hn.InputError as error:
        print(error)
"""


@pytest.mark.process
def test_what_is_not_installed_says_so(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "harness_noise", ignore=shutil.ignore_patterns("__pycache__", "extra"))
    (tmp_path / "a.csv").write_text("question,score,x\n" + "".join(f"q{i},{i % 2},{i % 3}\n" for i in range(8)))
    how = {"cwd": tmp_path, "env": environment(tmp_path), "capture_output": True, "text": True, "check": False}
    for name, words in ASKED.items():
        done = subprocess.run([sys.executable, "-m", "harness_noise", *words], **how)
        assert (done.returncode, f"{name} is not installed" in done.stderr) == (2, True), done.stderr
    done = subprocess.run([sys.executable, "-c", _NAMES], **how)
    missing = {line.partition(" is not installed")[0] for line in done.stdout.splitlines()}
    shipped = {"`labels`", "`by`"} | {name for extra in extras.found().values() for name in extra.functions}
    assert (done.returncode, missing) == (0, shipped.intersection([*hn.__all__, "`labels`", "`by`"])), done.stderr


_LOADED = """
import sys
import harness_noise as hn
from harness_noise.cli import main
hn.compare("a.csv", "b.csv").to_json()
library = [name for name in sys.modules if name.startswith("harness_noise.extra.")]
main(["analyze", "a.csv"])
main(["compare", "a.csv", "b.csv"])
extras = [name for name in sys.modules if name.startswith("harness_noise.extra.")]
print("loaded", *sorted(name for name in library if name.count(".") > 2))
print("loaded", *sorted(name for name in extras if name.count(".") > 2))
"""


@pytest.mark.process
def test_the_core_loads_the_declarations_of_extras_and_no_more(tmp_path):
    (tmp_path / "a.csv").write_text("question,score\n" + "".join(f"q{i},{i % 2}\n" for i in range(8)))
    (tmp_path / "b.csv").write_text("question,score\n" + "".join(f"q{i},{i % 3 // 2}\n" for i in range(8)))
    run = [sys.executable, "-c", _LOADED]
    done = subprocess.run(run, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if line.startswith("loaded")] == ["loaded", "loaded"]

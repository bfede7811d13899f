"""What stands beside the core can be deleted: the core does not miss it."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import harness_noise as hn
import harness_noise_adapters
from harness_noise import extras
from harness_noise.cli.commands import COMMANDS
from harness_noise.io import registry
from support import helm_files
from support.processes import environment

PACKAGES = [Path(hn.__file__).parent, Path(*harness_noise_adapters.__path__)]
RUNS = PACKAGES[1] / "extra" / "demo" / "runs"
FOLDERS, OF_ADAPTERS = (
    sorted(path.parent.name for path in (package / "extra").glob("*/__init__.py")) for package in PACKAGES
)
FORMATS = sorted(name for name in registry.names() if ".extra." in type(registry.load(name)).__module__)


def copied(tmp_path: Path, left: str | None = None) -> dict[str, object]:
    """How programs run with a copy of both packages in which one extra is left, or none."""
    for package in PACKAGES:
        copy = tmp_path / package.name
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / "__init__.py").touch()  # or the installed folder would be a part of the same namespace
        if left is None:
            shutil.rmtree(copy / "extra")
        for folder in copy.glob("extra/*/"):
            if folder.name != left:
                shutil.rmtree(folder)
    return {"cwd": tmp_path, "env": environment(tmp_path), "capture_output": True, "text": True, "check": False}


def write_tables(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question,score,x\n" + "".join(f"q{i},{i % 2},{i % 3}\n" for i in range(8)))
    (tmp_path / "b.csv").write_text("question,score,x\n" + "".join(f"q{i},{i % 3 // 2},1\n" for i in range(8)))


def test_every_folder_is_an_extra_with_all_that_it_names():
    assert [name.rpartition(".")[2] for name in extras.found()] == FOLDERS
    for extra in extras.found().values():
        assert all(extras.public(name).__doc__ for name in extra.functions)
        assert all(COMMANDS[name].name == name for name in extra.commands)
        assert all(name in COMMANDS for writer in extra.writers for name in writer.commands)
        assert all(writer.function in extra.functions for writer in extra.writers)
        assert all(command in COMMANDS for switch in extra.switches for command in switch.functions)
        assert all(function in extra.functions for switch in extra.switches for function in switch.functions.values())


def test_the_formats_are_called_as_their_adapters() -> None:
    assert FORMATS == ["every-eval-ever", "harbor", "helm", "lighteval", "swe-bench"]
    for name in FORMATS:
        module = f"harness_noise_adapters.extra.formats.{name.replace('-', '_')}"
        assert registry.load(name).name == importlib.import_module(module).adapter.name == name


@pytest.mark.process
@pytest.mark.parametrize("left", [None, *sorted({*FOLDERS, *OF_ADAPTERS})])
def test_the_core_works_without_extras_and_with_each_alone(tmp_path, left):
    how = copied(tmp_path, left)
    write_tables(tmp_path)
    tried = [["--help"], ["analyze", "a.csv"], ["compare", "a.csv", "b.csv", "--format", "json"]]
    if left is None:
        pairs = (sorted(map(str, folder.glob("sim-*"))) for folder in RUNS.glob("*/"))
        tried += [["list"], *(["compare", *pair] for pair in pairs)]
    for words in tried:
        done = subprocess.run([sys.executable, "-m", "harness_noise", *words], **how)
        assert done.returncode == 0, done.stderr
        assert "cannot be loaded" not in done.stderr


ASKED = {
    "demo": ["demo"],
    "what": ["what", "se"],
    "pairs": ["pairs", "a.csv"],
    "arena": ["arena", "a.csv", "a.csv"],
    "--profile": ["compare", "0.71", "0.68", "--profile", "gpqa_diamond"],
    "factors": ["factors", "a.csv", "--factor", "x"],
    "gate": ["gate", "a.csv", "--against", "a.csv"],
    "label": ["label", "a.csv"],
    "plan": ["plan", "--n", "100", "--accuracy", "0.7"],
    "regress": ["regress", "a.csv", "--on", "x"],
    "--by": ["analyze", "a.csv", "--by", "x"],
    "a comparison with a published number": ["compare", "a.csv", "0.5"],
    "--n": ["compare", "a.csv", "b.csv", "--n", "100"],
    "a comparison of two counts": ["compare", "74/100", "66/100"],
    "--chance": ["analyze", "a.csv", "--chance", "0.25"],
    "--weights by a property of the questions": ["analyze", "a.csv", "--weights", "mix.csv"],
    "--complete": ["compare", "a.csv", "b.csv", "--complete", "a.csv"],
    "--looks": ["compare", "a.csv", "a.csv", "--looks", "5"],
    "the reader of every-eval-ever, harbor, helm, lighteval, swe-bench": ["analyze", "m.run.json"],
    "--as every-eval-ever": ["export", "a.csv", "-o", "out", "--as", "every-eval-ever"],
}
"""Command or option of an extra → how it is asked for."""
_NAMES = """
import harness_noise as hn
for name in hn.__all__:
    try:
        getattr(hn, name)
    except AttributeError as error:
        print(error)
for function, sides, keywords in (
    (hn.analyze, ["a.csv"], {"labels": "a.csv"}),
    (hn.analyze, ["a.csv"], {"by": ["x"]}),
    (hn.analyze, ["a.csv"], {"complete": "b.csv"}),
    (hn.compare, [0.71, 0.68], {"profile": "gpqa_diamond"}),
    (hn.compare, ["a.csv", "a.csv"], {"profile": "gpqa_diamond"}),
):
    try:
        function(*sides, **keywords)
        print("`nothing` is not installed")
    except hn.InputError as error:
        print(error)
"""


@pytest.mark.process
def test_an_extra_that_needs_another_is_not_there_without_it(tmp_path):
    """Looks at many models need the arena: a copy without it has neither. So do looks at one run need references."""
    copy = tmp_path / "harness_noise"
    shutil.copytree(Path(hn.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    gone = {"arena", "references"}
    for name in gone:
        shutil.rmtree(copy / "extra" / name)
    code = "import harness_noise as hn\nfrom harness_noise import extras\nprint(*extras.found())\nhn.drop_models"
    how = {"cwd": tmp_path, "env": environment(tmp_path), "capture_output": True, "text": True, "check": False}
    done = subprocess.run([sys.executable, "-c", code], **how)
    left = {name.rpartition(".")[2] for name in done.stdout.split()}
    needing = {name for name in FOLDERS if gone & {*extras.found()[f"{extras.FOLDER}.{name}"].needs}}
    assert (needing, left) == ({"dropping", "stopping"}, {*FOLDERS} - needing - gone), done.stderr
    assert "has no attribute 'drop_models'" in done.stderr


@pytest.mark.process
def test_what_is_not_installed_says_so(tmp_path):
    how = copied(tmp_path)
    write_tables(tmp_path)
    (tmp_path / "mix.csv").write_text("field,value,weight\nx,0,1\nx,1,2\n")
    (tmp_path / "m.run.json").write_text('{"total_instances": 1, "resolved_ids": ["a__b-1"]}')  # of SWE-bench
    for name, words in ASKED.items():
        done = subprocess.run([sys.executable, "-m", "harness_noise", *words], **how)
        assert (done.returncode, f"{name} is not installed" in done.stderr) == (2, True), done.stderr
    helm_files.run(tmp_path / "helm")  # tables, without a column of scores
    done = subprocess.run([sys.executable, "-m", "harness_noise", "analyze", "helm"], **how)
    assert (done.returncode, "no column holds the scores" in done.stderr) == (2, True), done.stderr
    many = subprocess.run([sys.executable, "-m", "harness_noise", "a.csv", "a.csv", "a.csv"], **how)
    assert (many.returncode, "arena is not installed" in many.stderr) == (2, True), many.stderr
    listed = subprocess.run([sys.executable, "-m", "harness_noise", "list"], **how)
    assert (listed.returncode, "Noise profiles" in listed.stdout) == (0, False), listed.stderr
    done = subprocess.run([sys.executable, "-c", _NAMES], **how)
    missing = {line.partition(" is not installed")[0] for line in done.stdout.splitlines()}
    keywords = {"`labels`", "`by`", "`complete`", "`profile`"}
    shipped = keywords | {name for extra in extras.found().values() for name in extra.functions}
    assert (done.returncode, missing) == (0, shipped.intersection([*hn.__all__, *keywords])), done.stderr


_KEYWORDS = """
import harness_noise as hn
for function in (hn.analyze, hn.compare, hn.gate, hn.arena, hn.regress):
    sides = [["a.csv", "b.csv"]] if function in (hn.compare, hn.arena) else ["a.csv"]
    more = {hn.gate: {"floor": 0.5}, hn.regress: {"on": ["x"]}}.get(function, {})
    for name, value in KEYWORDS.items():
        try:
            function(*sides, **more, **{name: value})
            print("nothing of", name)
        except hn.InputError as error:
            print(function.__name__, error)
"""


@pytest.mark.process
def test_a_keyword_is_not_installed_though_other_extras_obey_it(tmp_path):
    copy = tmp_path / "harness_noise"
    shutil.copytree(Path(hn.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(copy / "extra/labels")
    write_tables(tmp_path)
    given = {"labels": "b.csv", "labels_scorer": "x", "label_range": (0, 1), "labels_at_random": True}
    how = {"cwd": tmp_path, "env": environment(tmp_path), "capture_output": True, "text": True, "check": False}
    done = subprocess.run([sys.executable, "-c", _KEYWORDS.replace("KEYWORDS", repr(given))], **how)
    said = [line.partition(":")[0] for line in done.stdout.splitlines()]
    functions = ("analyze", "compare", "gate", "arena", "regress")
    assert said == [f"{each} `{name}` is not installed" for each in functions for name in given], done.stderr


_LOADED = """
import sys
import harness_noise as hn
from harness_noise.cli import main
for kind in sys.argv[1:]:
    a, b = (f"{kind}/a", f"{kind}/b") if kind != "table" else ("table/a.csv", "table/b.csv")
    hn.compare(a, b).to_json()
    main(["analyze", a])
    main(["compare", a, b])
    main(["export", a, "-o", "out"])
    extras = [name for name in sys.modules if ".extra." in name and name.startswith("harness_noise")]
    print("loaded", *sorted(name for name in extras if name.count(".") > 2))
"""


@pytest.mark.process
def test_the_core_loads_the_declarations_of_extras_and_no_more(tmp_path):
    """Nor of formats: a file that looks like none of theirs is not theirs."""
    for kind in ("lm-eval", "inspect"):
        for name, run in zip("ab", sorted((RUNS / kind).glob("sim-*")), strict=True):
            if run.is_dir():
                shutil.copytree(run, tmp_path / kind / name)
            else:
                (tmp_path / kind / name).mkdir(parents=True)
                shutil.copy(run, tmp_path / kind / name)
    (tmp_path / "table").mkdir()
    write_tables(tmp_path / "table")
    run = [sys.executable, "-c", _LOADED, "table", "lm-eval", "inspect"]
    done = subprocess.run(run, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if line.startswith("loaded")] == 3 * ["loaded"], done.stdout
    written = {path.suffix for path in (tmp_path / "out").iterdir()}
    assert {".json", ".jsonl", ".eval"} <= written


def _counted(report: Path) -> dict[str, int]:
    """Return how many tests passed, failed and were skipped."""
    (suite,) = ElementTree.parse(report).getroot()
    found = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    return found | {"passed": found["tests"] - found["failures"] - found["errors"] - found["skipped"]}


@pytest.mark.process
@pytest.mark.parametrize(
    ("cases", "least"), [(2, 500), pytest.param(None, 1500, marks=pytest.mark.slow)], ids=["some cases", "all cases"]
)
def test_the_tests_of_the_core_pass_where_all_extras_are_deleted(tmp_path, root, capsys, cases, least):
    how, report = copied(tmp_path), tmp_path / "report.xml"
    how["env"] = {name: value for name, value in how["env"].items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", f"--junitxml={report}"]
    command += ["-c", str(root / "pyproject.toml"), str(root / "tests" / "core")]
    few = ["--hypothesis-profile=check", "--cases", str(cases), "-m", "not slow"]
    command += few if cases else ["-n", "2", "--dist", "worksteal"]
    done = subprocess.run(command, **how)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    found = _counted(report)
    with capsys.disabled():
        print(f"\ntests/core without extras: {found['passed']} passed, {found['skipped']} skipped", end=" ")
    # a clone has none of the real files that some of them read; that nothing lacks a module is asked below
    assert found["tests"] >= least
    assert "not installed" not in done.stdout
    assert "No module" not in done.stdout


_SAID = """
import contextlib
import io
import re
import sys
from pathlib import Path
from xml.etree import ElementTree
import harness_noise
import transcripts
from harness_noise.cli import main
from inspect_ai.log import read_eval_log
from support.lm_eval_written import lm_eval
folder = Path(sys.argv[1])
transcripts.runs(folder)
for name in transcripts.COMMANDS:
    # --by, --profile and counts are of extras
    of_extras = {"--by", "--profile", "74/100"} & {*transcripts.COMMANDS[name].split()}
    if name.startswith(("analyze", "compare")) and not of_extras:
        for width in transcripts.WIDTHS:
            (folder / f"{name}-{width}.txt").write_text(transcripts.transcript(name, width, folder), encoding="utf-8")
run = lm_eval(folder, "run")
assert main(["export", str(run), "-o", str(folder / "exported")]) == 0
for kind in ("lm-eval", "inspect"):
    a, b = sorted(map(str, Path(kind).glob("sim-*")))
    for words in (["analyze", a], ["compare", a, b], ["compare", a, b, "--format", "json"], ["export", a, "-o", "out"]):
        told, printed = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told):
            assert main(words) == 0, told.getvalue()
        (folder / f"demo-{kind}-{words[0]}-{len(words)}.txt").write_text(printed.getvalue() + told.getvalue())
for path in Path("out").glob("*.eval"):  # a log says when it was edited
    log = re.sub('"timestamp":"[^"]*"', "", read_eval_log(str(path)).model_dump_json())
    path.with_suffix(".eval.txt").write_text(log)
    path.unlink()
print(harness_noise.__file__)
"""


@pytest.mark.process
def test_what_the_core_says_and_exports_is_the_same_without_extras(tmp_path, root):
    written = {}
    for name, how in (("alone", copied(tmp_path)), ("whole", {"capture_output": True, "text": True})):
        folder = tmp_path / "said" / name
        shutil.copytree(RUNS, folder)
        place = tmp_path if name == "alone" else PACKAGES[0].parent
        more = {"cwd": folder, "env": environment(place, root / "tests" / "cli")}
        done = subprocess.run([sys.executable, "-c", _SAID, str(folder)], **how | more)
        assert (done.returncode, str(place) in done.stdout) == (0, True), done.stderr
        written[name] = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}
    golden = {path.name: path.read_bytes() for path in (root / "tests" / "cli" / "golden").glob("*.txt")}
    alone = {path: text for path, text in written["alone"].items() if path in golden}
    assert len(alone) >= 20
    assert alone == {name: golden[name] for name in alone}
    assert len([path for path in written["alone"] if "exported" in path]) >= 2
    assert len([path for path in written["alone"] if path.startswith("demo-")]) == 8
    assert {Path(path).suffix for path in written["alone"] if path.startswith("out/")} == {".txt", ".json", ".jsonl"}
    assert written["alone"] == written["whole"]

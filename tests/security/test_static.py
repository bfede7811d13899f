"""What no module may do: run what it reads, read what runs, render a template outside the sandbox, ask a shell."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted([*(ROOT / "harness_noise").rglob("*.py"), *(ROOT / "adapters").rglob("*.py")])
IMPORTS = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "code", "codeop", "xml"}
CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "yaml.load", "yaml.unsafe_load", "yaml.full_load",
    "torch.load", "numpy.load", "pd.read_pickle", "pandas.read_pickle", "pd.eval", "pickle.loads",
    "jinja2.Template", "Template", "tempfile.mktemp",
    "ElementTree.parse", "ElementTree.fromstring", "ElementTree.XML", "ElementTree.iterparse",
}  # fmt: skip
ENVIRONMENTS = {"harness_noise/report/html.py"}
"""Where a plain Jinja environment is made: for our own templates, with every value escaped."""
WRITES_XML = {"harness_noise/extra/gate/report.py"}
"""Where XML is written, and never read."""


def faults(tree: ast.AST, name: str) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [item.name for item in node.names if item.name.split(".")[0] in IMPORTS]
        elif isinstance(node, ast.ImportFrom):
            writes = name in WRITES_XML and node.module == "xml.etree"
            found += [node.module] if (node.module or "").split(".")[0] in IMPORTS and not writes else []
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in CALLS or (called in ("Environment", "jinja2.Environment") and name not in ENVIRONMENTS):
                found.append(called)
            words = {word.arg: ast.unparse(word.value) for word in node.keywords}
            found += [f"{called}(shell=…)"] if "shell" in words else []
            # arrays of numbers may be loaded, where it is said that nothing else is
            found += [called] if words.get("allow_pickle", "False" if called != "np.load" else "") != "False" else []
            if name in ENVIRONMENTS and called == "Environment":
                found += [] if words.get("autoescape") == "True" else ["Environment without autoescape"]
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_runs_what_it_reads(path: Path) -> None:
    assert faults(ast.parse(path.read_text(encoding="utf-8")), path.relative_to(ROOT).as_posix()) == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle", "from marshal import loads", "eval(x)", "yaml.load(x)", "np.load(x, allow_pickle=True)",
        "np.load(x)", "from xml.etree import ElementTree", "ElementTree.parse(x)",
        "subprocess.run(x, shell=True)", "jinja2.Environment()", "from jinja2 import Template\nTemplate(x)",
    ],
)  # fmt: skip
def test_the_walk_finds_what_it_looks_for(text: str) -> None:
    assert faults(ast.parse(text), "somewhere.py")

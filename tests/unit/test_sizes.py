"""Functions of the core stay short; a module is as long as its subject; names and docstrings stand for themselves."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from pathlib import Path

import pytest

import harness_noise
import harness_noise_adapters
from harness_noise import extras

ROOT = Path(harness_noise.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
ALL = [*MODULES, *sorted(Path(*harness_noise_adapters.__path__).rglob("*.py"))]
ELLIPTIC = re.compile(r"\s*(The same|Of|As (above|before|in)|That of|Those|And|But|Or)\b")
"""How a docstring begins that only says something after the one before it."""
CLAUSE = re.compile(r"\s*(What|Whether|How|Which|Who|Whose|Why|When|Where|If|None (if|where))\b")
"""How a docstring begins that is a clause in place of a sentence or a noun phrase."""
BLOCKS = (ast.For, ast.While, ast.If, ast.With, ast.Try, ast.AsyncFor, ast.AsyncWith)
NAMES = {*harness_noise.__all__, *(name for extra in extras.found().values() for name in extra.functions)}
PUBLIC = {
    (inspect.getsourcefile(function), name)
    for name in NAMES
    if inspect.isfunction(function := getattr(harness_noise, name))
}  # their keyword-only arguments are the documented API: the signature and the docstring are not counted


def depth(node: ast.AST, level: int = 0) -> int:
    found = [level]
    for child in ast.iter_child_nodes(node):
        chained = isinstance(node, ast.If) and node.orelse == [child] and isinstance(child, ast.If)
        found.append(depth(child, level + (isinstance(child, BLOCKS) and not chained)))
    return max(found)


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


@pytest.mark.parametrize("path", ALL, ids=lambda path: "/".join(path.parts[-3:]))
def test_no_function_is_too_large(path: Path) -> None:
    for node in functions(path):
        assert node.end_lineno is not None
        start, given = node.lineno, node.args
        parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        if (str(path), node.name) in PUBLIC:
            start = node.body[1].lineno if ast.get_docstring(node) else node.body[0].lineno
            parameters = [*given.posonlyargs, *given.args]
        own = [item for item in parameters if item.arg not in ("self", "cls")]
        assert node.end_lineno - start + 1 <= 60, node.name
        assert len(own) <= 8, node.name
        assert depth(node) <= 4, node.name


def test_no_two_classes_have_one_name() -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in ALL]
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert len(names) > 300
    assert [name for name, n in names.items() if n > 1] == []


def test_a_docstring_is_understood_by_itself() -> None:
    found = []
    for path in ALL:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Expr(ast.Constant(str(text))):
                    found.append((f"{path.name}:{node.lineno}", text.partition("\n")[0]))
    assert len(found) > 3000
    assert [(where, line) for where, line in found if ELLIPTIC.match(line)] == []


def test_a_first_line_is_a_whole_sentence() -> None:
    """A function is known by its name and this line, so the sentence does not go on in the second."""
    holds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    found = []
    for path in ALL:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, holds) and (text := ast.get_docstring(node)):
                found.append((f"{path.name}:{getattr(node, 'lineno', 1)}", text.partition("\n")[0]))
    assert len(found) > 3000
    assert [(where, line) for where, line in found if not line.endswith((".", "?", ":", "…"))] == []


def test_a_docstring_begins_with_a_sentence_or_a_noun_phrase() -> None:
    """A verb first for functions, one idea in the first line; a citation may hold a semicolon."""
    docs = [
        (f"{path.name}:{node.lineno}", text.strip().partition("\n")[0])
        for path in ALL
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(text := node.value.value, str)
    ]
    assert len(docs) > 5000
    few = len(docs) // 200
    for found in (
        [doc for doc in docs if CLAUSE.match(doc[1])],
        [doc for doc in docs if ";" in re.sub(r"\[[^]]*\]", "", doc[1])],
        [doc for doc in docs if re.search(r"\b(nobody|somebody|whoever)\b", doc[1], re.I)],
    ):
        assert len(found) <= few, found

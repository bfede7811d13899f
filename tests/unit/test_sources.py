"""Citation keys: every `[Name]` of a docstring or comment is in docs/sources.md, and means one work."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEY = re.compile(r"(?<![\w\])`\"'.])\[([A-Z][^\W\d_]+(?:-[A-Z][^\W\d_]+)?(?:\d{4})?)(?:, [^\]]*)?\](?![\w(\[])")
"""`[Bell]`, `[Jennison, §8.4]`; no type such as `list[Run]`."""
DEFINED = re.compile(r"^\s+\[([^\]\s,]+)\]\s+(\S.*?\(\d{4}\))", re.MULTILINE)
"""A line of a module's sources: key, authors and year."""


def listed() -> dict[str, str]:
    """Key → work, of docs/sources.md."""
    rows = re.findall(r"^\| `\[([^\]]+)\]` \| (.+?) \|", (ROOT / "docs/sources.md").read_text("utf-8"), re.MULTILINE)
    assert len(rows) > 30
    assert len(dict(rows)) == len(rows), "one key stands for two works"
    assert len({work for _, work in rows}) == len(rows), "one work has two keys"
    return dict(rows)


@cache
def texts() -> list[tuple[str, str]]:
    """(module, text) of every docstring and comment of the package."""
    return list(_texts())


def _texts() -> Iterator[tuple[str, str]]:
    for folder in ("harness_noise", "adapters"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            source = path.read_text("utf-8")
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    yield path.name, str(node.value.value)
            if not re.search(r"#.*\[", source):
                continue  # no comment has a key, and a module's tokens take long
            for token in tokenize.generate_tokens(io.StringIO(source).readline):
                if token.type == tokenize.COMMENT:
                    yield path.name, token.string


def test_every_key_is_a_work_of_the_list() -> None:
    works = listed()
    cited = {(where, key) for where, text in texts() for key in KEY.findall(text)}
    assert len({key for _, key in cited}) > 15
    assert {(where, key) for where, key in cited if key not in works} == set()


def test_a_module_gives_a_key_the_work_that_the_list_has() -> None:
    works = listed()
    defined = [(where, key, work) for where, text in texts() for key, work in DEFINED.findall(text)]
    assert len(defined) > 10
    assert [item for item in defined if not works.get(item[1], "").startswith(item[2])] == []


def test_keys_are_the_first_author() -> None:
    for key, work in listed().items():
        assert work.startswith(key.rstrip("0123456789")), (key, work)

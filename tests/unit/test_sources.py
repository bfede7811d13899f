"""Citation keys: every `[Name]` of a docstring or comment is in docs/sources.md, and means one work."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CITED = re.compile(r"(?<![\w\])`\"'.])\[([A-Z][^\W\d_]*(?:-[A-Z][^\W\d_]+)?(?:\d{4})?(?:[,;]? [^\]]*)?)\](?![\w(\[])")
"""`[Bell]`, `[Jennison, §8.4]`, `[Wang; Miller, eq. 4]`; no type such as `list[Run]`."""
YEAR = re.compile(r"([A-ZÄÖÜ][^\W\d_]+)(?:'s?)?,?(?: et al\.)? \(?((?:18|19|20)\d\d)\b")
"""The last author, and the year: Holm (1979), Zou & Donner (2008), Chen et al. (2021)."""
NO_AUTHORS = {"May", "August", "November"}
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
                    yield str(path.relative_to(ROOT)), str(node.value.value)
            if not re.search(r"#.*\[", source):
                continue  # no comment has a key, and a module's tokens take long
            for token in tokenize.generate_tokens(io.StringIO(source).readline):
                if token.type == tokenize.COMMENT:
                    yield str(path.relative_to(ROOT)), token.string


def keys(text: str) -> list[str]:
    """The keys of a text, each of which stands before its section or equation."""
    named = [part.partition(",")[0].strip() for inner in CITED.findall(text) for part in inner.split(";")]
    return [re.sub(r" (for|from|with) .*", "", name, flags=re.DOTALL) for name in named]


def test_every_key_is_a_work_of_the_list() -> None:
    works = listed()
    cited = {(where, key) for where, text in texts() for key in keys(text)}
    assert len({key for _, key in cited}) > 15
    assert {(where, key) for where, key in cited if key not in works} == set()


def test_a_module_gives_a_key_the_work_that_the_list_has() -> None:
    works = listed()
    defined = [(where, key, work) for where, text in texts() for key, work in DEFINED.findall(text)]
    assert len(defined) > 10
    assert [item for item in defined if not works.get(item[1], "").startswith(item[2])] == []


def test_a_source_that_a_module_names_stands_at_a_line_that_uses_it() -> None:
    defined = {(where, key) for where, text in texts() for key, _ in DEFINED.findall(text)}
    cited = {(where, key) for where, text in texts() for key in keys(DEFINED.sub("", text))}
    assert defined - cited == set()


def test_a_work_named_by_its_authors_and_year_is_of_the_list() -> None:
    works = set(listed().values())
    named = {(where, *work) for where, text in texts() for work in YEAR.findall(text)}
    assert len(named) > 30
    known = [(where, author, year) for where, author, year in named if author not in NO_AUTHORS]
    assert [item for item in known if not any(item[1] in work and f"({item[2]})" in work for work in works)] == []


def test_keys_are_the_first_author() -> None:
    for key, work in listed().items():
        assert work.startswith(key.rstrip("0123456789")), (key, work)

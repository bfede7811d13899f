"""The oldest versions of the harnesses for live runs: one number each, wherever it stands."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from harness_noise_adapters.lm_eval_harness.live.cli import OLDEST

TREE = Path(__file__).parents[2]


def text(name: str) -> str:
    return (TREE / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("extra", "package", "tested"), [("lm-eval", "lm-eval", "LM_EVAL"), ("inspect", "inspect-ai", "INSPECT")]
)
def test_the_extra_and_the_tests_have_the_same_oldest_version(extra: str, package: str, tested: str) -> None:
    (requirement,) = tomllib.loads(text("pyproject.toml"))["project"]["optional-dependencies"][extra]
    name, _, oldest = requirement.partition(">=")
    assert name == package
    first = re.search(rf"{tested}_VERSIONS \?= (\S+)", text("Makefile"))
    assert first is not None
    assert first[1] == oldest
    assert f"compat-{extra}-{oldest}" in text(".ci/run")
    assert f"{extra}-{oldest}" in text(".github/workflows/tests.yml")
    assert f'"{package}", "{oldest}"' in text("tests/unit/test_docs_examples.py")


def test_the_code_and_the_docs_name_that_lm_eval() -> None:
    assert f"lm-eval>={OLDEST}" in text("pyproject.toml")
    assert f"need lm-eval {OLDEST} or newer" in text("docs/lm-eval.md")

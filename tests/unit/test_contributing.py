"""CONTRIBUTING names files and targets that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOMS = ("harness_noise", "adapters", "tests", "benchmarks", "configs", "docs")


def test_every_file_that_it_names_is_there(root: Path) -> None:
    there = [path.relative_to(root).as_posix() for room in ROOMS for path in (root / room).rglob("*") if path.is_file()]
    there += [path.name for path in root.iterdir()]
    named = re.findall(
        r"`([a-z_/]+\.(?:py|md|json|jsonl|toml))`", (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    )
    assert len(named) > 40
    assert [name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in there)] == []


def test_every_word_of_the_team_is_a_target(root: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.M))
    said = set(re.findall(r"`make ([a-z-]+)", (root / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    assert {"check", "test", "test-slow"} <= said <= targets

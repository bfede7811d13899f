"""The page of versions says what the package requires and the Makefile tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_versions_is_up_to_date() -> None:
    made = subprocess.run([sys.executable, "docs/versions.py"], cwd=ROOT, capture_output=True, check=True).stdout
    assert (ROOT / "docs" / "versions.md").read_bytes() == made, "python docs/versions.py > docs/versions.md"


def test_every_tested_version_of_a_harness_is_on_the_page() -> None:
    """The rows have what the Makefile tests, and what the workflow tests for each change."""
    page = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    makefile, workflow = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", ".github/workflows/tests.yml")
    )
    listed = [x for row in re.findall(r"^(?:LM_EVAL|INSPECT)_VERSIONS \?= (.*)$", makefile, re.M) for x in row.split()]
    asked = re.findall(r"(?:lm-eval|inspect)-(\d[\d.]+\d)", workflow)
    assert sorted(listed) == sorted(set(asked))
    assert len(listed) > 5
    for version in listed:
        assert re.search(rf"[ |]{re.escape(version)}[, ]", page), version

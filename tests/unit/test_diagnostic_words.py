"""The words of diagnostics: one source for screen and docs, one threshold in both, no clusters where none are."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import Analysis, Comparison
from harness_noise.analysis import mean, ranges, sample
from harness_noise.cli.commands import in_flags
from harness_noise.report.diagnostics import page
from harness_noise.report.text import render as rendered
from harness_noise.results.diagnostics import DIAGNOSTICS, Diagnostic, explained
from harness_noise.results.forms import all_kinds
from harness_noise.stats import tolerances

all_kinds()  # those of extras have codes of their own


def documented(root: Path) -> dict[str, tuple[str, str]]:
    """Code → what it means, what to do, without Markdown."""
    text = (root / "docs" / "diagnostics.md").read_text(encoding="utf-8").replace("`", "")
    text = re.sub(r'<a id="\w+"></a>', "", text)
    return {
        code: (said, to_do)
        for code, said, to_do in re.findall(r"^\| (\w+_\w+|unpaired|skewed|separated) \| (.*) \| (.*?) \|$", text, re.M)
    }


def test_the_page_is_made_from_the_diagnostics(root: Path) -> None:
    written = (root / "docs" / "diagnostics.md").read_text(encoding="utf-8")
    assert written == page(in_flags), "python -m harness_noise.cli.diagnostics > docs/diagnostics.md"
    assert set(documented(root)) == set(DIAGNOSTICS)


def test_each_code_has_a_place_of_its_own_that_what_names(root: Path) -> None:
    parts = (root / "docs" / "diagnostics.md").read_text(encoding="utf-8").split("\n## ")[1:]
    found = [re.findall(r'^\| <a id="(\w+)"></a>`\1` ', part, re.M) for part in parts]
    assert sorted(code for codes in found for code in codes) == sorted(DIAGNOSTICS)
    assert [codes for codes in found if codes != sorted(codes)] == []
    assert hn.what("few_flips").page.endswith("/diagnostics/#few_flips")
    assert "#" not in hn.what("deff").page


@pytest.mark.parametrize("item", DIAGNOSTICS.values(), ids=list(DIAGNOSTICS))
def test_a_diagnostic_says_all_that_it_must(item: Diagnostic) -> None:
    assert item.meaning
    assert not item.meaning.endswith(".")
    assert item.to_do.endswith(".")
    assert item.page.endswith((".", ")."))
    assert "|" not in item.page + item.to_do


@pytest.mark.parametrize(
    ("code", "threshold", "written"),
    [
        ("few_clusters", tolerances.FEW_DF, "fewer than 10"),
        ("few_df", tolerances.FEWEST_DF, "fewer than (4|four)"),
        ("few_resampled", tolerances.FEW_RESAMPLED, "fewer than 30"),
        ("few_failures", tolerances.FEW_FAILURES, "fewer than 10"),
        ("partly_single_repeat", tolerances.FEWEST_REPEATED, "at least (10|ten)"),
        ("single_repeat", tolerances.FEWEST_REPEATED, "fewer than (10|ten)"),
        ("missing_matters", ranges.MISSING_SHARE, "more than a third"),
        ("single_repeats_differ", mean.BORROWED_P, "p < 0.05"),
        ("shared_repeat_noise", sample.SHARED_NOISE_P, "p < 0.05"),
        ("first_answer_differs", sample.FIRST_ANSWER_P, "p < 0.005"),
    ],
)
def test_a_threshold_is_one_number_in_code_and_docs(root: Path, code: str, threshold: float, written: str) -> None:
    value = {"four": 4, "ten": 10, "third": 1 / 3}
    (number,) = re.findall(r"four|ten|third|\d*\.?\d+", written.replace("(10|", "(").replace("(4|", "("))
    assert float(value.get(number, number)) == threshold
    assert re.search(written, documented(root)[code][0], re.I), code
    digits = re.search(r"fewer than (\d+)|at least (\d+)", DIAGNOSTICS[code].meaning)
    if digits:
        assert float(digits[1] or digits[2]) == threshold


@pytest.mark.parametrize("code", DIAGNOSTICS)
def test_what_to_do_is_a_sentence_of_plain_words(code: str) -> None:
    for clustered, corrected in itertools.product((True, False, None), (True, False)):
        text = explained(code, clustered, corrected=corrected)
        assert text.endswith(".")
        assert "{" not in text
        assert "--" not in text.replace("--noise_", "").replace("--epochs", "").replace("--log_samples", "")
        assert "`" not in in_flags(text), "each parameter that it names has a flag"
        assert "lean on" not in text


def test_nothing_speaks_of_clusters_where_there_are_none() -> None:
    flat = (np.arange(8)[:, None] < np.array([6, 6])).astype(float)
    one = replace(hn.estimate(flat), task="t", metric="acc")
    two = replace(hn.estimate_difference(flat, flat[::-1]), task="t", metric="acc")
    assert "few_clusters" in one.diagnostics
    assert "few_clusters" in two.diagnostics
    for table in (Analysis({}, (one,)), Comparison({}, (two,))):
        for form in ("table", "markdown"):
            text = (
                " ".join(rendered(table, form, details=True).split())
                .replace("few\\_clusters", "")
                .replace("few_clusters", "")
            )
            assert "cluster" not in text
            assert "What to do: more questions help" in text


def test_with_clusters_it_says_what_helps_and_what_does_not() -> None:
    scores = np.random.default_rng(5).integers(0, 2, (40, 2)).astype(float)
    row = replace(hn.estimate(scores, clusters=np.arange(40) // 10), task="t", metric="acc", cluster="passage")
    text = " ".join(rendered(Analysis({}, (row,)), "table", details=True).split())
    assert "few clusters" in text
    assert "What to do: more clusters help, more questions in the same clusters do not." in text

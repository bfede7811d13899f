"""Public files that this project did not make: read, and the figures those of an independent computation.

`make corpus` fetches the files; those that the cache lacks are skipped. The manifest holds the figures of
`oracle.py`, or the words with which a file is refused.
"""

from __future__ import annotations

from math import isclose
from pathlib import Path
from typing import Any

import pytest

import harness_noise as hn
from corpus import fetch, oracle
from harness_noise import InputError
from harness_noise.results.rows import Estimate

ENTRIES = [entry for entry in fetch.manifest() if entry["kind"] != "thresholds"]  # those are of test_thresholds
ABSENT = pytest.param({}, marks=pytest.mark.skip(reason="no corpus of public files here: make corpus fetches it"))


@pytest.fixture(
    params=ENTRIES if fetch.cache().is_dir() else [ABSENT],
    ids=lambda entry: "-".join(entry[key] for key in ("repository", "id") if key in entry),
)
def entry(request: pytest.FixtureRequest) -> dict[str, Any]:
    """An entry whose files the cache has."""
    found: dict[str, Any] = request.param
    lost = [file["path"] for file in found["files"] if not fetch.intact(fetch.place(found, file), file)]
    if lost:
        pytest.skip(f"not in the cache (make corpus fetches it): {lost[0]}")
    return found


def paths(entry: dict[str, Any]) -> list[Path]:
    return [fetch.place(entry, file) for file in entry["files"]]


def meant(row: list[Any], estimate: Estimate, kind: str) -> bool:
    """Whether an estimate is the one that a row of the manifest names."""
    model, task, metric, scorer, *_ = row
    if kind == "inspect":  # a scorer has one mean, whose metric the log names; what was skipped has n = 0
        return estimate.scorer == scorer and estimate.n_questions > 0
    names = ((model, estimate.model), (task, estimate.task), (metric, estimate.metric), (scorer, estimate.scorer))
    return all(own in ("", other) for own, other in names)


def test_every_file_is_read_with_the_recorded_figures_or_refused_in_the_recorded_words(entry):
    options = {"columns": entry["columns"]} if "columns" in entry and "guessed" not in entry else {}
    if "refused" in entry:
        with pytest.raises(InputError) as raised:
            hn.analyze(paths(entry)[0], cluster="none", **options)
        assert entry["refused"] in str(raised.value)
        assert paths(entry)[0].name in str(raised.value)
        return
    estimates = hn.analyze(paths(entry)[0], cluster="none", **options).estimates
    for row in entry["rows"]:
        *_, n, mean, se = row
        found = [estimate for estimate in estimates if meant(row, estimate, entry["kind"])]
        assert found, f"no estimate of {row}"
        for estimate in found:
            assert isclose(estimate.mean, mean, rel_tol=1e-9, abs_tol=1e-9), row
            if n is not None:
                assert estimate.n_questions == n, row
                assert (estimate.se is None) == (se is None), row
                assert se is None or isclose(estimate.se, se, rel_tol=1e-9, abs_tol=1e-9), row
    hidden = set(entry.get("not_shown", ()))
    assert not [estimate for estimate in estimates if estimate.metric in hidden and estimate.mean is not None]
    if entry["kind"] != "lm-eval":  # which also shows groups of tasks
        for estimate in estimates:
            known = estimate.scorer in entry.get("also", ()) or estimate.n_questions == 0 or estimate.task == "overall"
            assert known or any(meant(row, estimate, entry["kind"]) for row in entry["rows"]), estimate


def test_the_recorded_figures_are_those_of_the_independent_computation(entry):
    if "refused" in entry:
        pytest.skip("a file that is refused has no figures")
    try:
        found = oracle.kept(entry, oracle.figures(entry, paths(entry)))
    except NotImplementedError as problem:
        pytest.skip(f"the log is packed with Zstandard: {problem}")
    assert [row[:5] for row in found] == [row[:5] for row in entry["rows"]]
    for row, recorded in zip(found, entry["rows"], strict=True):
        assert row[5] == pytest.approx(recorded[5], rel=1e-12, abs=1e-15)
        assert row[6] is recorded[6] is None or row[6] == pytest.approx(recorded[6], rel=1e-12, abs=1e-15)


def test_the_manifest_is_well_formed():
    files = [(entry["repository"], file["commit"], file["path"]) for entry in ENTRIES for file in entry["files"]]
    assert len(set(files)) == len(files) >= 100
    assert len({repository for repository, *_ in files}) >= 15
    assert len({entry["id"] for entry in ENTRIES}) == len(ENTRIES)
    for entry in ENTRIES:
        assert ("rows" in entry) != ("refused" in entry), entry["id"]
        assert entry["kind"] in oracle.KINDS
        assert entry["shape"]
        for file in entry["files"]:
            assert len(file["sha256"]) == 64
            assert 0 < file["size"] <= 10_000_000

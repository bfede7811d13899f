"""The noise profiles that come with the package: found by name, traced to their tables, made again from one."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.errors import InputError
from harness_noise.extra.arena import profiles
from support.notes import noted
from support.simulations import simulation

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    return simulation("reference_noise")


def test_at_least_ten_benchmarks_are_there_and_all_have_a_recipe(builder: ModuleType) -> None:
    assert profiles.names() == sorted(builder.BENCHMARKS)
    assert len({re.sub("_by_.*", "", name) for name in profiles.names()}) >= 10
    assert sum(path.stat().st_size for path in profiles.FOLDER.iterdir()) < 50_000


@pytest.mark.parametrize("name", profiles.names())
def test_a_profile_names_source_licence_commit_and_command(name: str, builder: ModuleType) -> None:
    profile, source = profiles.named(name)[0].profile, profiles.named(name)[0].source
    assert source is not None
    files, _, what, cluster = builder.BENCHMARKS[name]
    assert (source["repository"], source["commit"]) == (f"https://github.com/{files.repository}", files.commit)
    assert (source["licence"], source["what"]) == (files.licence, what)
    assert source["licence"] in ("MIT", "Apache-2.0")
    assert re.fullmatch("[0-9a-f]{40}", source["commit"])
    assert source["command"].startswith(f"harness-noise arena {name}.csv")
    assert profile.task == name
    assert profile.cluster == (None if cluster == "none" else cluster)
    assert profile.rule_of_thumb is not None, "the noise of other accuracies is not known"
    assert profile.best_mean is not None
    assert (profile.se_prediction is None) == (source["answers"] == 1)


@pytest.mark.parametrize("name", profiles.names())
def test_every_profile_serves_compare_and_plan(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "0.71", "0.68", "--profile", name, "--format", "json"]) == 0
    shown = capsys.readouterr()
    (row,) = json.loads(shown.out)["comparisons"]
    assert (row["task"], row["test"], row["diff"]) == (name, "reference", pytest.approx(0.03))
    assert name in shown.err
    assert "prompted the same way" in shown.err
    assert main(["plan", "--profile", name, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["plan"]
    assert found["n_questions"] == row["n_questions"]
    assert 0 < found["mde"] < 1.5
    assert any("prompted the same way" in note for note in noted(found["notes"]))
    assert "reference_noise" in found["diagnostics"]
    (profile,) = profiles.read(name)
    assert (found["omega2"] is None) == (profile.se_data is None)  # one answer each: only the sum of both is known


@pytest.mark.parametrize("form", ["table", "markdown", "latex", "csv", "sentence", "json"])
def test_every_format_says_that_the_noise_is_borrowed(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", "0.71", "0.68", "--profile", "gpqa_diamond", "--format", form, "-q"]
    assert main(command) == 0
    shown = " ".join(capsys.readouterr().out.split())
    if form == "table":  # its first screen names the code, which --details explains
        assert "borrowed" in shown
        assert "reference_noise" in shown
        assert main([*command, "--details"]) == 0
        shown = " ".join(capsys.readouterr().out.split())
    assert "gpqa_diamond" in shown.replace("\\_", "_")
    assert "reference" in shown if form in ("csv", "json") else "borrowed" in shown
    assert "paired" not in shown.replace("unpaired", "")
    if form not in ("csv", "json"):
        assert re.search("no (answer of either was seen|samples were compared)", shown)


def test_near_what_all_models_solve_the_noise_does_not_collapse(capsys: pytest.CaptureFixture[str]) -> None:
    """Older models together solve 82% of SWE-bench Verified; around it the noise is that of p(1 − p)."""
    se = []
    for a in (0.78, 0.80, 0.82, 0.84, 0.86):
        command = ["compare", str(a), str(a - 0.02), "--profile", "swe_bench_verified", "--format", "json", "-q"]
        assert main(command) == 0
        (row,) = json.loads(capsys.readouterr().out)["comparisons"]
        assert row["verdict"] == "not separable"
        assert row["diagnostics"] == ["beyond_reference", "reference_noise"]
        se.append(row["se"])
    assert se == sorted(se, reverse=True)
    assert 0.014 < min(se) < max(se) < 0.018


def test_a_plan_takes_the_noise_at_the_accuracy_that_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    found = {}
    for p in ("0.5", "0.9"):
        assert main(["plan", "--profile", "swe_bench_verified", "--accuracy", p, "--format", "json"]) == 0
        found[p] = json.loads(capsys.readouterr().out)["plan"]
    assert found["0.9"]["mde"] / found["0.5"]["mde"] == pytest.approx(0.6, rel=1e-6)  # √(.9 · .1)/√(.5 · .5)
    assert ("beyond_reference" in found["0.9"]["diagnostics"], "beyond_reference" in found["0.5"]["diagnostics"]) == (
        True, False,
    )  # fmt: skip
    assert main(["plan", "--profile", "swe_bench_verified", "--accuracy", "1.5"]) == 2


def test_a_name_is_found_however_it_is_written() -> None:
    for text in ("swebench-verified", "SWE_bench_Verified", "swe-bench verified"):
        assert profiles.locate(text).stem == "swe_bench_verified"


def test_an_unknown_name_is_told_its_neighbours(capsys: pytest.CaptureFixture[str]) -> None:
    for text, meant in (("gpqa", "gpqa_diamond"), ("crux", "cruxeval_input"), ("humanevalpluss", "humaneval_plus")):
        with pytest.raises(InputError, match=f"Did you mean .*{meant}"):
            profiles.read(text)
    assert main(["compare", "0.7", "0.6", "--profile", "zzz"]) == 2
    assert "harness-noise list" in capsys.readouterr().err


def test_a_file_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gpqa_diamond").write_text("{}")
    with pytest.raises(InputError, match="not a noise profile"):
        profiles.read("gpqa_diamond")


def test_the_command_lists_all_and_tells_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    formats, _, noise = capsys.readouterr().out.partition("\n\n")
    assert {line.split()[0] for line in formats.splitlines()[1:]} == set(hn.adapters())
    assert [line.split()[0] for line in noise.splitlines()[1:]] == profiles.names()
    assert main(["list", "gpqa-diamond"]) == 0
    told = capsys.readouterr().out
    assert "Apache-2.0" in told
    assert "stephlinds/evalconfidence" in told


@pytest.mark.parametrize(
    ("name", "table", "path_of"),
    [
        ("gpqa_diamond", "gpqa_diamond_scores.csv", "examples/data/gpqa_diamond_scores.csv"),
        ("aime_2025_ii", "matharena_aime_II.csv", "data/matharena_aime_II.csv"),
    ],
)
def test_a_profile_is_made_again_from_its_table(
    name: str,
    table: str,
    path_of: str,
    builder: ModuleType,
    shared_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = (shared_data / "tables" / table).read_bytes()
    monkeypatch.setattr(builder.Files, "read", lambda self, path: {path_of: content}[path])
    builder.make(name, tmp_path, tmp_path)
    ours, theirs = (json.loads((folder / f"{name}.json").read_text()) for folder in (tmp_path, profiles.FOLDER))
    assert ours["source"] == theirs["source"]
    for key, value in theirs["benchmarks"][0].items():
        if isinstance(value, dict):
            assert ours["benchmarks"][0][key] == pytest.approx(value, rel=1e-9), key
        else:
            assert ours["benchmarks"][0][key] == (pytest.approx(value) if isinstance(value, float) else value), key


def test_the_noise_of_gpqa_is_that_of_a_plain_calculation(shared_data: Path) -> None:
    """One answer of each model: Var = data + prediction, from question means and unbiased within-variances."""
    scores: dict[str, dict[str, list[float]]] = {}
    with (shared_data / "tables" / "gpqa_diamond_scores.csv").open() as stream:
        for row in csv.DictReader(stream):
            scores.setdefault(row["model_id"], {}).setdefault(row["item_id"], []).append(float(row["score"]))
    a, b = (np.array([table[question] for question in sorted(table)]) for table in scores.values())
    n, K = a.shape
    within = a.var(axis=1, ddof=1).mean() + b.var(axis=1, ddof=1).mean()
    total = (a.mean(axis=1) - b.mean(axis=1)).var(ddof=1) - within / K + within
    (profile,) = profiles.read("gpqa_diamond")
    assert profile.se_total.median == pytest.approx(np.sqrt(total / n), rel=1e-9)
    assert profile.se(a.mean(), b.mean()) == pytest.approx(np.sqrt(total / n), rel=1e-9)
    assert hn.plan(n=n, **profile.planning()).mde == pytest.approx(2.81 * np.sqrt(total / n), rel=0.01)


def test_the_page_shows_what_is_shipped(builder: ModuleType, tmp_path: Path) -> None:
    page = ROOT / "docs" / "profiles.md"
    again = tmp_path / "profiles.md"
    again.write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    builder.page(again)
    assert again.read_text(encoding="utf-8") == page.read_text(encoding="utf-8")

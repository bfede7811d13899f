"""A run that stopped early, compared afterwards: the recorded figures with its baseline, a warning with any other."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lm_eval")

import harness_noise as hn
from harness_noise.cli import main
from harness_noise_adapters.lm_eval_harness import noise
from harness_noise_adapters.lm_eval_harness.live.cli import next_step
from harness_noise_adapters.lm_eval_harness.live.saving import Saving
from support import lm_eval_models as toys
from support.lm_eval_live import save
from support.processes import environment

N = 200
PACKAGE = Path(hn.__file__).parent


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("stopped")
    toys.write_task(folder, "gen", toys.docs(N))
    for name, share, seed in (("b", 0.35, 9), ("c", 0.5, 5)):
        save(folder, folder / name, ["gen"], toys.HashModel(seed=seed, share=share))
    with noise(until="decided", against=str(folder / "b")) as session:
        save(folder, folder / "a", ["gen"], toys.HashModel(seed=1, share=0.9))
    return folder, session


@pytest.fixture
def look(runs: Any) -> Any:
    (found,) = runs[1].analysis.sequential
    assert found.n_asked < N
    return found


def strict(table: Any) -> Any:
    (row,) = [row for row in table.comparisons if row.scorer == "strict"]
    return row


def test_with_its_baseline_the_row_is_the_recorded_one(runs: Any, look: Any) -> None:
    folder, _ = runs
    row = strict(hn.compare(folder / "a", folder / "b"))
    assert row.test == row.interval == "sequential"
    recorded = (look.estimate, look.ci_low, look.ci_high, look.p_value, look.decision)
    assert (row.diff, row.ci_low, row.ci_high, row.p_value, row.verdict) == recorded
    assert (row.se, row.df, row.statistic, row.mde) == (None,) * 4
    assert "stopped_early" not in row.diagnostics
    assert row.unadjusted.diff == pytest.approx(look.diff)
    assert row.unadjusted.se > 0
    assert row.unadjusted.p_value < row.p_value
    assert abs(row.unadjusted.diff) > abs(row.diff)


def test_what_a_missing_answer_could_change_of_it_is_not_known(runs: Any) -> None:
    a, b = (hn.read(runs[0] / name)[0] for name in "ab")

    def lacks_one(part: Any) -> Any:
        """A second answer to the first question was asked for, and is missing."""
        asked = np.zeros((len(part.values), 2), dtype=bool)
        asked[:, 0], asked[0, 1] = True, True
        values = np.c_[part.values, np.full(len(part.values), np.nan)]
        return replace(part, values=values, asked=asked, n_missing=1, answers=None, gradings=None)

    row = strict(hn.compare(replace(a, scores=tuple(map(lacks_one, a.scores))), b))
    assert (row.test, row.if_missing) == ("sequential", "not known")


def test_it_is_recognised_by_the_difference_and_not_by_its_path(runs: Any, tmp_path: Path) -> None:
    folder, _ = runs
    (folder / "b").rename(tmp_path / "elsewhere")
    try:
        assert strict(hn.compare(folder / "a", tmp_path / "elsewhere")).test == "sequential"
    finally:
        (tmp_path / "elsewhere").rename(folder / "b")


def test_the_other_way_round_it_is_mirrored(runs: Any, look: Any) -> None:
    folder, _ = runs
    row = strict(hn.compare(folder / "b", folder / "a"))
    assert (row.diff, row.ci_low, row.ci_high) == (-look.estimate, -look.ci_high, -look.ci_low)
    assert row.verdict == "B better"
    assert row.test == "sequential"


@pytest.mark.parametrize("choice", [{"test": "sign"}, {"level": 0.9}, {"se": "cr1"}, {"unpaired": True}])
def test_another_level_or_test_is_not_corrected(runs: Any, choice: dict[str, Any]) -> None:
    folder, _ = runs
    row = strict(hn.compare(folder / "a", folder / "b", **choice))
    assert row.test != "sequential"
    assert row.unadjusted is None
    assert "stopped_early" in row.diagnostics


@pytest.mark.parametrize(
    ("decision", "margin", "same"),
    [
        ("A better", 0.5, True),
        ("equivalent within 0.02", None, True),
        ("equivalent within 0.02", 0.02, True),
        ("equivalent within 0.02", 0.5, False),
        ("not shown to differ", 0.5, False),
    ],
)
def test_a_margin_that_the_looks_did_not_test_is_not_corrected(
    runs: Any, decision: str, margin: float | None, same: bool
) -> None:
    a, b = (hn.read(runs[0] / name)[0] for name in "ab")
    a = replace(a, stops=tuple({**record, "decision": decision} for record in a.stops))
    row = strict(hn.compare(a, b, margin=margin))
    assert (row.test == "sequential") is same
    assert ("stopped_early" in row.diagnostics) is not same


@pytest.mark.parametrize(
    ("cluster", "same"), [("template", True), ("gen=template", True), ("auto", False), ("none", False)]
)
def test_a_named_cluster_is_that_of_the_looks_or_it_is_not_corrected(
    runs: Any, tmp_path: Path, cluster: str, same: bool
) -> None:
    folder, _ = runs
    with noise(until="decided", against=str(folder / "b"), cluster="template"):
        save(folder, tmp_path / "a", ["gen"], toys.HashModel(seed=1, share=0.9))
    assert strict(hn.compare(tmp_path / "a", folder / "b")).test == "sequential"
    row = strict(hn.compare(tmp_path / "a", folder / "b", cluster=cluster))
    assert (row.test == "sequential", "stopped_early" in row.diagnostics) == (same, not same)
    # the gate obeys it too
    gate = hn.gate(tmp_path / "a", folder / "b", margin=0.5, metrics=["exact_match"], scorers=["strict"],
                   cluster=cluster)  # fmt: skip
    assert (gate.outcome == "cannot judge") == (not same)


def test_another_baseline_is_not_corrected_and_the_headline_says_so(runs: Any, capsys: Any) -> None:
    folder, _ = runs
    row = strict(hn.compare(folder / "a", folder / "c"))
    assert row.test == "t"
    assert "stopped_early" in row.diagnostics
    assert main(["compare", str(folder / "a"), str(folder / "c"), "--format", "sentence"]) == 0
    assert "stopped early, not corrected" in capsys.readouterr().out
    assert main(["compare", str(folder / "a"), str(folder / "c"), "--scorer", "strict"]) == 0
    assert capsys.readouterr().out.lstrip().startswith("stopped early, not corrected: ")


def whys(table: Any) -> list[str]:
    """What is said on rows of a stopped run that are not corrected, without the names of the rows."""
    said = [note for note in table.notes if note.code == "stop_not_corrected"]
    return [note.as_text().removeprefix(f"{OWN}: stopped early, not corrected: ") for note in said
            if note.as_text().startswith(f"{OWN}: ")]  # fmt: skip


OWN = "gen / exact_match / strict"


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        ({}, None),
        ({"test": "sign"}, "no look was taken with `test='sign'`"),
        ({"level": 0.9}, "the looks were at `level=0.95`"),
        ({"cluster": "template"}, "the looks had other clusters than `cluster='template'`"),
    ],
)
def test_it_is_said_why_a_row_is_not_corrected(runs: Any, choice: dict[str, Any], why: str | None) -> None:
    folder, _ = runs
    for a, b in (("a", "b"), ("b", "a")):
        assert whys(hn.compare(folder / a, folder / b, **choice)) == ([why] if why else [])
    assert not whys(hn.compare(folder / "b", folder / "c"))  # neither has stopped


def test_a_margin_and_another_metric_are_reasons_too(runs: Any) -> None:
    a, b = (hn.read(runs[0] / name)[0] for name in "ab")
    a = replace(a, stops=tuple({**record, "decision": "not shown to differ"} for record in a.stops))
    assert whys(hn.compare(a, b, margin=0.5)) == ["no look tested `margin=0.5`"]
    notes = hn.compare(runs[0] / "a", runs[0] / "b").notes
    others = [note.as_text() for note in notes if note.code == "stop_not_corrected"]
    assert others == [f"gen / exact_match / flexible: stopped early, not corrected: the looks were at {OWN}"]
    a = replace(a, stops=tuple({**record, "rule": "se"} for record in a.stops))
    assert whys(hn.compare(a, b)) == []  # of both metrics at once
    (note,) = [note for note in hn.compare(a, b).notes if note.code == "stop_not_corrected"]
    assert note.as_text().endswith("its own mean was precise enough, which no difference allows for")


def test_scores_that_are_drawn_anew_are_told_from_another_baseline(runs: Any, capsys: Any) -> None:
    folder, _ = runs
    a, b, c = (hn.read(folder / name)[0] for name in "abc")

    def scored_again(run: Any) -> Any:
        """The first answers get the opposite scores."""
        flip = (np.arange(200) < 7)[:, None]
        parts = [replace(x, values=np.where(flip[: len(x.values)], 1 - x.values, x.values)) for x in run.scores]
        return replace(run, scores=tuple(parts))

    assert whys(hn.compare(scored_again(a), b)) == [f"the scores of {a.name} are not those of the looks"]
    for other in (c, scored_again(b)):
        said = f"the looks compared it with another run than {other.name}, or its scores have changed"
        assert whys(hn.compare(a, other)) == whys(hn.compare(other, a)) == [said]
    assert main(["compare", str(folder / "a"), str(folder / "c"), "--legend"]) == 0
    found = capsys.readouterr()
    assert "the looks compared it with another run" in found.err  # one of the first hints
    text = " ".join(found.out.split())
    assert "that an analysis of the whole run shows under “When the run stopped”" in text  # not a table of this output


def test_slices_are_not_corrected(runs: Any) -> None:
    folder, _ = runs
    table = hn.compare(folder / "a", folder / "b", by=["meta.source"])
    assert table.slices
    assert all("stopped_early" in row.diagnostics for row in table.slices)


def test_the_gate_still_judges_by_the_looks(runs: Any, look: Any) -> None:
    folder, _ = runs
    gate = hn.gate(folder / "a", folder / "b", metrics=["exact_match"], scorers=["strict"])
    assert gate.outcome == "pass"
    assert gate.rows[0].estimate == look.estimate


def test_analyze_shows_what_was_recorded_above_its_own_mean(runs: Any, capsys: Any) -> None:
    folder, _ = runs
    assert main(["analyze", str(folder / "a")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("A − B = ")
    assert said.index("stopped early at look") < said.index("gen exact_match")


def test_the_last_line_of_the_run_names_compare_only_where_it_is_right(
    runs: Any, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, session = runs
    against = session.options.against
    saving = Saving(print)
    saving.root = saving.results = Path("out")
    saving.samples = {"gen": Path("out")}
    monkeypatch.setattr(session, "saving", saving)
    monkeypatch.setattr(Saving, "place", Path("out"))
    said = next_step(session)
    assert said is not None
    assert said.startswith(f"Next: harness-noise compare out {against} ")
    monkeypatch.setattr(session, "options", replace(session.options, rule=None, against=None))
    assert "compare" not in (next_step(session) or "")
    monkeypatch.setattr(session, "analysis", replace(session.analysis, drawn=()))
    assert "BASELINE" in (next_step(session) or "")


@pytest.mark.process
def test_without_what_corrects_it_there_are_no_numbers(runs: Any, tmp_path: Path) -> None:
    """A copy of the package without the extra must not show the figures that early stopping has made too extreme."""
    folder, _ = runs
    copied = tmp_path / "copy"
    shutil.copytree(PACKAGE, copied / "harness_noise", ignore=shutil.ignore_patterns("__pycache__", "stopping"))
    ask = [sys.executable, "-m", "harness_noise"]
    how: Any = {"cwd": folder, "env": environment(copied), "capture_output": True, "text": True, "check": False}
    gate = ["gate", "a", "--against", "b", "--margin", "5pt"]
    for words in (
        ["compare", "a", "b"],
        ["compare", "c", "a"],
        ["analyze", "a"],
        gate,
        ["export", "a", "-o", "x"],
        ["arena", "a", "b"],
    ):
        done = subprocess.run([*ask, *words], **how)
        said = "stopped early, and what corrects its numbers for that is not installed"
        assert (done.returncode, done.stdout, said in done.stderr) == (2, "", True), (words, done.stderr)
    done = subprocess.run([*ask, "compare", "b", "c", "--looks", "5"], **how)
    assert (done.returncode, "--looks is not installed" in done.stderr) == (2, True), done.stderr
    assert subprocess.run([*ask, "compare", "b", "c"], **how).returncode == 0

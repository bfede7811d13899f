"""Logs of runs that ended before Inspect computed its results: what their samples hold is read, and called a part."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

import harness_noise as hn
from harness_noise.cli import main
from support.notes import noted

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.scorer import Score, accuracy, match, mean, scorer, stderr

ASKED = 9


def fails(state):
    if state.sample_id == f"q{ASKED}":
        raise RuntimeError("no credit")


@pytest.fixture(scope="module")
def failed(canned, tmp_path_factory):
    """The log of a run that failed at the tenth of its twelve questions; one answer at a time."""
    folder = tmp_path_factory.mktemp("failed")
    (log,) = canned.eval(canned.task(scorer=[match(), by_key()], before=fails), folder, max_samples=1)
    assert (log.status, log.results) == ("error", None)
    return Path(log.location)


@scorer(metrics={"sure": [accuracy(), stderr(cluster="passage")], "length": [mean()]})
def by_key():
    async def score(state, target):
        return Score(value={"sure": "C" if state.output.completion == "yes" else "I", "length": state.epoch})

    return score


def test_the_scored_samples_are_rows_under_the_names_that_results_would_have(canned, failed):
    analysis = hn.analyze(failed)
    rows = {(row.scorer, row.metric): row for row in analysis.estimates}
    assert rows.keys() == {("match", "accuracy"), ("sure", "accuracy"), ("length", "mean")}
    values = [canned.truth(f"q{i}", 1) for i in range(ASKED)]
    found = rows["match", "accuracy"]
    assert found.mean == pytest.approx(sum(values) / ASKED)
    assert found.se == pytest.approx(hn.estimate(values).se)
    samples = read_eval_log(str(failed)).samples
    held = len(samples)
    assert ASKED < held < 12
    # beside the one that failed another may have been under way, which is no answer that lacks a score
    lost = [item for item in samples if item.error and not item.error.message.startswith("CancelledError(")]
    assert (found.n_questions, found.n_missing, found.range) == (ASKED, len(lost), (0.0, 1.0))
    assert len(lost) >= 1
    assert "not_a_random_part" in found.diagnostics
    assert "mean_mismatch" not in found.diagnostics
    assert rows["sure", "accuracy"].n_clusters == 3  # its own stderr names them
    text = " ".join(noted(analysis))
    assert f"{12 - ASKED - len(lost)} of 12 answers were never given (status error)" in text
    assert "ended before Inspect computed its results" in text
    assert "inspect score" not in text


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_a_cancelled_log_is_read_likewise(inspect_logs, tmp_path, kind):
    log = read_eval_log(str(inspect_logs.a))
    log.status, log.results, log.reductions = "cancelled", None, None
    log.samples = log.samples[:-4]
    path = tmp_path / f"log.{kind}"
    write_eval_log(log, str(path))
    (row,) = hn.analyze(path).estimates
    (whole,) = hn.analyze(inspect_logs.a).estimates
    assert (row.metric, row.scorer, row.n_missing) == (whole.metric, whole.scorer, 0)
    assert not math.isnan(row.se)
    assert any("(status cancelled)" in note for note in noted(hn.analyze(path)))
    (difference,) = hn.compare(path, inspect_logs.b).comparisons
    assert difference.n_questions == row.n_questions


def test_a_complete_run_beside_it_is_the_one_that_counts(canned, failed, tmp_path):
    """Also where the broken one is newer."""
    canned.eval(canned.task(scorer=[match(), by_key()]), tmp_path)
    log = read_eval_log(str(failed))
    log.eval.created = "2099-01-01T00:00:00+00:00"
    write_eval_log(log, str(tmp_path / "2099-01-01T00-00-00-00-00_coins_x.eval"))
    (run,) = hn.read(tmp_path)
    assert len(run.scores[0].questions) == 12
    assert any("left out" in note and "ended before Inspect computed" in note for note in noted(run))


def test_an_export_copies_it_as_it_is(inspect_logs, failed, tmp_path, capsys):
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(failed, folder / "failed.eval")
    assert main(["export", str(folder / "failed.eval"), "-o", str(tmp_path / "out")]) == 2
    assert "Traceback" not in capsys.readouterr().err
    shutil.copy(inspect_logs.a, folder / "a.eval")
    assert main(["export", str(folder), "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out/failed.eval").read_bytes() == failed.read_bytes()

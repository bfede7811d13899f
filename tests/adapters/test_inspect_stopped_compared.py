"""An Inspect log that stopped early, compared afterwards, and the last line of its run, which says how."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.report import fmt
from support.inspect_stopping import MIDDLE, STRONG, N, record, task, weak_log

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")


@pytest.fixture(scope="module")
def logs(canned: Any, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """The log of a strong model that stopped, that of the weak one that stopped it, and a third one's."""
    folder = tmp_path_factory.mktemp("stopped")
    weak = weak_log(canned, folder / "weak")
    on = {"noise_until": "decided", "noise_against": weak}
    (stopped,) = canned.eval(task(canned, STRONG), folder / "a", model="mockllm/strong", max_samples=1, metadata=on)
    (other,) = canned.eval(task(canned, MIDDLE, seed=None), folder / "c", model="mockllm/middle")
    (look,) = record(stopped)["sequential"]
    assert look["n_asked"] < N
    return SimpleNamespace(a=stopped.location, weak=weak, other=other.location, look=look)


def test_with_its_baseline_the_row_is_the_recorded_one(logs: SimpleNamespace) -> None:
    (row,) = hn.compare(logs.a, logs.weak).comparisons
    recorded = tuple(logs.look[name] for name in ("estimate", "ci_low", "ci_high", "decision"))
    assert (row.diff, row.ci_low, row.ci_high, row.verdict) == recorded
    assert row.test == row.interval == "sequential"
    assert (row.se, row.df, row.statistic, row.mde) == (None,) * 4
    assert "stopped_early" not in row.diagnostics
    assert row.unadjusted is not None
    assert abs(row.unadjusted.diff) > abs(row.diff)
    mirrored = hn.compare(logs.weak, logs.a).comparisons[0]
    assert (mirrored.diff, mirrored.verdict) == (-row.diff, "B better")


@pytest.mark.parametrize("details", [False, True])
def test_it_is_said_why_a_minus_b_is_not_the_difference_of_the_means(
    logs: SimpleNamespace, in_round_2: SimpleNamespace, capsys: pytest.CaptureFixture[str], details: bool
) -> None:
    for a, b in ((logs.a, logs.weak), (logs.weak, logs.a), (in_round_2.a, in_round_2.b)):
        found = hn.compare(a, b)
        (row,) = found.comparisons
        assert row.mean_a - row.mean_b == pytest.approx(row.unadjusted.diff)
        assert main(["compare", str(a), str(b), *(["--details"] if details else [])]) == 0
        said = " ".join(capsys.readouterr().out.split())
        plain = fmt.shown(row, row.unadjusted.diff, mean=False, unit=True)
        if b is in_round_2.b:  # all questions were asked once
            assert f"A and B are the means of all answers: their plain difference, {plain}, does not." in said
            continue
        other = "B" if a is logs.a else "A"
        used = f"uses the answers of {{}} to all {N} questions as far as they predict"
        name = row.model_b if other == "B" else row.model_a
        assert (
            f"means of the {row.n_questions} questions that both answered: their plain difference, {plain}, does not."
            in said
        )
        assert "Report A − B, which allows for the looks." in said
        assert used.format(name) in found.sentence
    assert "means of all answers" not in str(hn.compare(logs.a, logs.other))


@pytest.mark.parametrize("choice", [{}, {"test": "sign"}, {"level": 0.9}])
def test_with_another_baseline_or_test_it_is_not_corrected(logs: SimpleNamespace, choice: dict[str, Any]) -> None:
    found = hn.compare(logs.a, logs.weak if choice else logs.other, **choice)
    (row,) = found.comparisons
    assert row.test != "sequential"
    assert (row.unadjusted, "stopped_early" in row.diagnostics) == (None, True)
    assert "stopped early, not corrected" in str(found)


def test_a_plan_says_that_a_stopped_run_is_no_pilot(logs: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--effect", "0.05", "--from", str(logs.a), str(logs.weak)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "a run that stopped early has no standard error to plan with. Plan from runs that were not stopped" in said


def test_analyze_shows_what_was_recorded(logs: SimpleNamespace) -> None:
    assert "stopped early at look" in " ".join(str(hn.analyze(logs.a)).split())


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("decided", "compare {log} {against} shows the decision again."),
        ("se=0.08", "analyze {log} shows this run again."),
        (None, "compare {log} BASELINE tests this run against another one."),
    ],
)  # fmt: skip
def test_the_last_line_of_the_run_names_what_shows_it_again(
    canned: Any, tmp_path: Any, logs: SimpleNamespace, capsys: pytest.CaptureFixture[str], rule: str | None, words: str
) -> None:
    on = {"noise": True} if rule is None else {"noise_until": rule}
    on |= {"noise_against": logs.weak} if rule == "decided" else {}
    folder = tmp_path / "of today's logs"
    (log,) = canned.eval(task(canned, STRONG), folder, display="plain", max_samples=1, metadata=on, model="mockllm/m")
    last = capsys.readouterr().out.rstrip().splitlines()[-1]  # in one line, however narrow the terminal
    typed = {"log": shlex.quote(log.location), "against": shlex.quote(str(logs.weak))}
    assert last == f"Next: harness-noise {words.format(**typed)}"
    command = [word for word in shlex.split(last) if word.startswith("/")]
    assert all(Path(word).exists() for word in command)


def test_the_last_line_names_a_log_from_the_working_directory(
    canned: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    both = [canned.task(name="first"), canned.task(name="second")]
    canned.eval(both, tmp_path / "logs", display="plain", metadata={"noise": True}, max_tasks=1)
    last = capsys.readouterr().out.rstrip().splitlines()[-1]
    found = re.fullmatch(r"Next: harness-noise compare (\S+) BASELINE tests the first run against another one\.", last)
    assert found is not None, last
    assert Path(found[1]).exists()
    assert found[1].startswith("logs/")
    assert "first" in found[1]


@pytest.fixture(scope="module")
def in_round_2(canned: Any, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """The log of a run that stopped in its second round with answers under way, and the one that stopped it.

    Its questions are another order of the same ones without ids of their own: they are the same by their texts.
    """
    folder = tmp_path_factory.mktemp("late")
    epochs = {"epochs": 4, "max_samples": 20}

    def numbered(ease: float, seed: int | None) -> Any:
        found = task(canned, ease, seed=seed)
        for at, sample in enumerate(found.dataset, 1):
            sample.id = at
        return found

    (old,) = canned.eval(numbered(0.4, None), folder / "b", model="mockllm/old", **epochs)
    on = {"noise_until": "decided", "noise_against": old.location, "noise_cluster": "passage"}
    (new,) = canned.eval(numbered(MIDDLE, 7), folder / "a", model="mockllm/new", metadata=on, **epochs)
    assert new.status == "success", new.error
    (look,) = record(new)["sequential"]
    assert look["round"] == 2
    assert look["late"]
    assert look["n_answers"] < look["n_answers_total"]
    return SimpleNamespace(a=new.location, b=old.location, look=look)


def test_answers_that_were_under_way_do_not_make_it_another_comparison(in_round_2: SimpleNamespace) -> None:
    (row,) = hn.compare(in_round_2.a, in_round_2.b).comparisons
    assert row.test == "sequential"
    assert (row.diff, row.verdict) == (in_round_2.look["estimate"], in_round_2.look["decision"])
    assert hn.compare(in_round_2.b, in_round_2.a).comparisons[0].test == "sequential"
    assert hn.gate(in_round_2.a, in_round_2.b, margin=0.5).rows[0].estimate == in_round_2.look["estimate"]


@pytest.mark.parametrize(("cluster", "same"), [("passage", True), ("none", False)])
def test_clusters_that_are_named_are_those_of_the_looks_or_it_is_not_corrected(
    in_round_2: SimpleNamespace, cluster: str, same: bool
) -> None:
    (row,) = hn.compare(in_round_2.a, in_round_2.b, cluster=cluster).comparisons
    assert (row.test == "sequential", "stopped_early" in row.diagnostics) == (same, not same)

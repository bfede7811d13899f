"""How many labels a judge needs: figures by hand, the pilot gives itself back, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import harness_noise as hn
from harness_noise.cli import main


def planned(**choices: Any) -> Any:
    labels = hn.plan(**choices).labels
    assert labels is not None
    return labels


@pytest.mark.parametrize(
    ("judged", "r2", "se", "n", "alone"),
    [
        # m = σ²(1 − R²) / (SE² − σ²R²/N): 0.08 / (0.000225 − 0.00012) = 761.9
        (1000, 0.6, 0.015, 762, 889),
        # 0.08 / (0.0004 − 0.00012) = 285.7
        (1000, 0.6, 0.02, 286, 500),
        # a useless judge: σ²/SE² = 500 of however many
        (10_000, 0.0, 0.02, 500, 500),
        # 0.02 / (0.0004 − 0.000018) = 52.4
        (10_000, 0.9, 0.02, 53, 500),
        # a judge that is always right: the fewest that a plan has
        (10_000, 1.0, 0.02, 2, 500),
        # the questions themselves: σ/√N = 0.0141 is above what is asked
        (1000, 0.6, 0.01, None, 2000),
    ],
)
def test_labels_for_a_standard_error(judged: int, r2: float, se: float, n: int | None, alone: int) -> None:
    found = planned(omega2=0.2, r2=r2, judged=judged, target_se=se)
    assert (found.n_labels, found.n_labels_alone, found.n_judged) == (n, alone, judged)
    variance = 0.2 * ((1 - r2) * (1 / (n or judged) - 1 / judged) + 1 / judged)
    assert found.se == pytest.approx(variance**0.5, abs=1e-12)
    assert n is None or found.se <= se


def test_labels_for_an_effect_have_the_power_and_one_less_has_not() -> None:
    n = planned(omega2=0.2, r2=0.6, judged=5000, effect=0.03).n_labels
    for m, enough in ((n, True), (n - 1, False)):
        variance = m * 0.2 * (0.4 * (1 / m - 1 / 5000) + 1 / 5000)
        assert (hn.plan(omega2=variance, n=m).mde <= 0.03) == enough


@pytest.mark.parametrize("given", [{"effect": 0.03}, {"n": 900, "power": 0.9}, {"n": 900, "effect": 0.05}])
def test_a_useless_judge_saves_nothing(given: dict[str, float]) -> None:
    found = planned(omega2=0.2, r2=0.0, judged=100_000, **given)
    assert found.n_labels == found.n_labels_alone


def test_whole_clusters_are_labelled() -> None:
    # 285.7 labels by hand, in clusters of 5
    found = planned(omega2=0.2, r2=0.6, judged=1000, target_se=0.02, cluster_size=5)
    assert (found.n_labels, found.n_labels_alone) == (290, 500)


def table(folder: Path, name: str, rng: Any, p: float, labels: list[str]) -> Path:
    truth = (rng.random(600) < p).astype(int)
    judge = np.where(rng.random(600) < 0.85, truth, 1)
    path = folder / f"{name}.csv"
    path.write_text("\n".join(["task,question,score", *(f"t,{i},{s}" for i, s in enumerate(judge))]) + "\n")
    labels += [f"{i},{name},{truth[i]}" for i in np.random.default_rng(5).permutation(600)[:150]]
    return path


@pytest.fixture
def pilot(tmp_path: Path) -> tuple[Path, Path, Path]:
    rng, labels = np.random.default_rng(3), ["question,model,label"]
    a, b = (table(tmp_path, name, rng, p, labels) for name, p in (("a", 0.6), ("b", 0.5)))
    (tmp_path / "labels.csv").write_text("\n".join(labels) + "\n")
    return a, b, tmp_path / "labels.csv"


@pytest.mark.parametrize("two", [False, True])
def test_a_pilot_plans_itself(pilot: tuple[Path, Path, Path], two: bool) -> None:
    a, b, labels = pilot
    row: Any = (hn.compare(a, b, labels=labels).comparisons if two else hn.analyze(a, labels=labels).estimates)[0]
    asked = {"target_se": row.se * 1.0000001, "assurance": 0.5}
    runs = [a, b] if two else [a]
    found = planned(runs=runs, labels=labels, **asked)
    # the limit of 50% is the median of χ²/df: a little above the estimate
    assert found.n_labels == pytest.approx(150, abs=2)
    assert found.n_judged == 600
    assert found.r2 == pytest.approx(row.judge.r2, abs=0.03)
    assert found.variance == pytest.approx(150 * row.judge.gain * row.se**2, rel=0.01)
    assert planned(runs=row, **asked) == found
    assert planned(runs=runs, labels=labels, target_se=row.se).n_labels > 150
    more = planned(runs=runs, labels=labels, judged=6000, target_se=row.se).n_labels
    assert more < 150


def test_the_command_says_it(pilot: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    a, _, labels = pilot
    assert main(["label", str(a), "--plan", "--labels", str(labels), "--target-se", "3pt"]) == 0
    out = capsys.readouterr().out
    found = planned(runs=a, labels=labels, target_se=0.03)
    said = " ".join(out.split())
    assert f"people label {found.n_labels} of the 600 judged" in said
    likely = re.search(
        r"or (\d+) if the pilot shows its true noise: the plan takes 0.25, the largest that scores", said
    )
    assert likely is not None
    # the limit of 50% is the median of χ²/df: a little above the estimate
    assert int(likely[1]) == pytest.approx(
        planned(runs=a, labels=labels, target_se=0.03, assurance=0.5).n_labels, abs=2
    )
    assert int(likely[1]) < found.n_labels
    assert (
        main(
            [
                "label",
                "--plan",
                "--omega2",
                "0.2",
                "--r2",
                "0.6",
                "--judged",
                "1000",
                "--target-se",
                "0.02",
                "--format",
                "json",
            ]
        )
        == 0
    )
    assert '"n_labels": 286' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"omega2": 0.2, "r2": 0.6, "effect": 0.03}, "give `judged`"),
        ({"omega2": 0.2, "judged": 900, "effect": 0.03}, "give `labels`, or `r2`"),
        ({"omega2": 0.2, "target_se": 0.01}, "give `labels`, or `r2`"),
        ({"omega2": 0.2, "r2": 1.1, "judged": 900, "effect": 0.03}, "`r2` 1.1 must be from 0 to 1"),
        ({"omega2": 0.2, "r2": 0.6, "judged": 1, "effect": 0.03}, "at least two questions"),
        ({"omega2": 0.2, "r2": 0.6, "judged": 900, "target_se": 0.0}, "`target_se` 0 must be above 0"),
        ({"omega2": 0.2, "r2": 0.6, "judged": 900, "target_se": 0.01, "n": 5}, "replaces `effect` and `n`"),
        ({"omega2": 0.2, "r2": 0.6, "judged": 900, "effect": 0.03, "looks": 5}, "`looks` are taken"),
    ],
)
def test_what_says_nothing_of_labels_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(hn.InputError, match=says):
        hn.plan(**given)


def test_a_pilot_whose_labels_are_complete_does_not_say_what_the_judge_predicts() -> None:
    truth = np.tile([1.0, 0.0, 1.0], 40)
    row = hn.estimate_with_labels(np.roll(truth, 1), truth)
    with pytest.raises(hn.InputError, match="labels of some of its questions"):
        hn.plan(runs=row, target_se=0.03)


@pytest.mark.parametrize("words", [["--r2", "0.5"], ["j.csv"], ["j.csv", "--r2", "0.5"], ["--judged", "9"]])
def test_what_the_number_of_labels_follows_from_is_said_whole(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One message after another had asked for a RUN, for `--r2`, and to leave `--r2` out."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "j.csv").write_text("question,score\n" + "".join(f"q{i},{i % 2}\n" for i in range(40)))
    assert main(["label", *words, "--plan", "--target-se", "0.04"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "label RUN --plan --labels FILE" in said
    assert "label --plan --judged N --r2 R --omega2 V" in said


def pilot_of_coins(n: int, labelled: int, right: float = 0.85) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    judge = (rng.random(n) < 0.5).astype(int)
    label = np.where(rng.random(n) < right, judge, 1 - judge)
    at = rng.choice(n, labelled, replace=False)
    return {
        "runs": [pd.DataFrame({"question": range(n), "score": judge})],
        "labels": pd.DataFrame({"question": at, "label": label[at]}),
        "labels_at_random": True,
    }


def test_no_plan_takes_more_noise_than_scores_in_their_range_can_have() -> None:
    plan = hn.plan(**pilot_of_coins(1000, 40), target_se=0.03)
    assert plan.labels is not None
    assert plan.labels.n_labels_alone == 278  # 0.25/0.03² = 277.8, whatever the pilot's limit is
    assert plan.labels.variance == 0.25
    text = " ".join(note.as_text() for note in plan.notes)
    assert "0.25, the largest that scores from 0 to 1 can have, which is below its upper 80% limit" in text
    half = pd.DataFrame({"question": range(12), "score": [0, 1] * 6})
    assert hn.plan(runs=[half], effect=0.1).variance == 0.25
    assert hn.plan(runs=[half.assign(score=half.score * 5 + 3)], effect=0.1, range=(3, 8)).variance == 6.25
    assert hn.plan(runs=[half], two_like_this=True, effect=0.1).variance == 0.5
    other = half.assign(score=1 - half.score)
    assert hn.plan(runs=[half, other], effect=0.1).variance == 1.0
    clustered = half.assign(cluster=[i % 2 + 2 * (i // 6) for i in range(12)])
    assert hn.plan(runs=[clustered], effect=0.1).variance > 0.25, "a design effect comes on top"


def test_noise_that_runs_share_has_no_largest_value() -> None:
    rng = np.random.default_rng(0)
    answers = [(i, k) for i in range(200) for k in range(4)]
    moved = [int(rng.random() < (0.2, 0.8, 0.3, 0.9)[k]) for _, k in answers]
    pilot = pd.DataFrame({"question": [i for i, _ in answers], "repeat": [k for _, k in answers], "score": moved})
    of_runs = hn.plan(runs=[pilot], repeats_are="runs", effect=0.05)
    assert of_runs.variance > 20, "all questions move together: more of them hardly help"
    assert of_runs.n_questions > 50_000
    of_answers = hn.plan(runs=[pilot], effect=0.05)
    assert of_answers.variance == 0.25
    assert of_answers.omega2 is not None
    assert of_answers.omega2 < 0
    text = " ".join(note.as_text() for note in of_answers.notes)
    assert text.endswith("0.25, the largest that scores from 0 to 1 can have, which is below its upper 80% limit.")


def test_the_largest_variance_is_named_if_the_plan_starts_from_it_and_for_what_it_is() -> None:
    half = pd.DataFrame({"question": range(12), "score": [0, 1] * 6})
    both = " ".join(
        note.as_text() for note in hn.plan(runs=[half, half.assign(score=1 - half.score)], effect=0.1).notes
    )
    assert "starts from 1, the largest that A − B of scores from 0 to 1 can have" in both
    two = " ".join(note.as_text() for note in hn.plan(runs=[half], two_like_this=True, effect=0.1).notes)
    assert "starts from 0.5, the largest that A − B of scores from 0 to 1 can have" in two
    rng = np.random.default_rng(0)
    chance = rng.random((24, 1))
    scores = (rng.random((24, 3)) < chance).astype(int)
    pilot = pd.DataFrame({"question": np.repeat(range(24), 3), "repeat": list(range(3)) * 24, "score": scores.ravel()})
    one = " ".join(note.as_text() for note in hn.plan(runs=[pilot], effect=0.1).notes)
    assert "so the variance is an estimate: the plan starts from 0.25, the largest that scores from 0 to 1" in one
    many = hn.plan(runs=[pilot], effect=0.1, costs={"question": 10, "answer": 1})
    assert many.repeats > 1
    assert many.variance < 0.25
    said = " ".join(note.as_text() for note in many.notes)
    assert "so the data variance is an estimate: the plan starts from its upper 80% limit" in said


def test_a_limit_below_what_the_range_allows_stays_and_both_numbers_are_given() -> None:
    plan = hn.plan(**pilot_of_coins(1000, 200, right=0.99) | {"labels": skewed(200)}, target_se=0.03)
    assert plan.labels is not None
    assert plan.labels.variance < 0.25
    text = plan.notes[-1].as_text()
    assert "the plan takes its upper 80% limit" in text
    alone = re.search(r"Without a judge, people label (\d+) questions, or (\d+)", text)
    assert alone is not None
    assert int(alone[1]) == plan.labels.n_labels_alone > int(alone[2])


def skewed(m: int) -> pd.DataFrame:
    return pd.DataFrame({"question": range(m), "label": [int(i % 10 == 0) for i in range(m)]})

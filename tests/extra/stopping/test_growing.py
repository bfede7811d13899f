"""After the fact: looks at a run that grows, replays, plans with looks, and what would tell models from the best."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import as_scores
from harness_noise.cli import main
from harness_noise.data.scores import Gradings
from harness_noise.errors import InputError
from harness_noise.extra.boundaries import exits_above
from harness_noise.extra.stopping.growing import Pair
from harness_noise.extra.stopping.rules import StoppingRule
from support.notes import noted


def write(path: Path, model: str, rows: Any, values: np.ndarray) -> None:
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["question", "model", "score"])
        out.writerows([i, model, int(values[i])] for i in rows)


@pytest.fixture
def scores() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    p = rng.beta(2, 2, 400)
    return (rng.random(400) < np.clip(p + 0.14, 0, 1)).astype(float), (rng.random(400) < p).astype(float)


@pytest.fixture
def place(tmp_path: Path, scores: tuple[np.ndarray, np.ndarray]) -> Path:
    write(tmp_path / "b.csv", "b", range(400), scores[1])
    write(tmp_path / "a.csv", "a", range(400), scores[0])
    return tmp_path


def looked(capsys: pytest.CaptureFixture[str], place: Path, *more: str) -> dict[str, Any]:
    capsys.readouterr()
    code = main(["compare", str(place / "grow.csv"), str(place / "b.csv"), "--looks", "5", "--format", "json", *more])
    assert code == 0
    (row,) = json.loads(capsys.readouterr().out)["sequential"]
    found: dict[str, Any] = row
    return found


def test_the_looks_that_are_kept_beside_a_run_are_no_run(
    place: Path, scores: tuple[np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    write(place / "grow.csv", "a", np.random.default_rng(1).permutation(400)[:80], scores[0])
    looked(capsys, place)
    assert (place / "grow.csv.looks.json").exists()
    assert main(["arena", str(place), "--strict", "--format", "json"]) == 0
    assert "left out" not in capsys.readouterr().err


def test_looks_are_counted_kept_and_end_with_the_decision(
    place: Path, scores: tuple[np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    order = np.random.default_rng(1).permutation(400)
    found = []
    for n in (80, 80, 160, 240, 320, 400):
        write(place / "grow.csv", "a", order[:n], scores[0])
        found.append(looked(capsys, place))
        memory = json.loads((place / "grow.csv.looks.json").read_text())
        assert memory["tasks"][0]["found"] == found[-1]
    assert found[0] == found[1]  # the same look again
    assert [row["look"] for row in found[:3]] == [1, 1, 2]
    decided = next(row for row in found if row["decision"] == "A better")
    assert decided["n_asked"] < 400
    assert found[-1] == decided  # what was decided stays so
    assert decided["p_value"] < 0.05
    # the same looks, taken by the rule itself
    rule, look = StoppingRule(looks=5), None
    pair = Pair.of([as_scores(scores[0])], [as_scores(scores[1])])
    blocks = rule.order(400, shuffled=True)
    for number in range(1, decided["look"] + 1):
        look = rule.look(blocks, look, pair.observed(np.bincount(order[: 80 * number], minlength=400)))
    assert look is not None
    for name in ("estimate", "ci_low", "ci_high", "p_value", "alpha_spent"):
        assert decided[name] == pytest.approx(getattr(look.sequential, name), rel=1e-9)


def test_the_table_shows_the_looks(place: Path, scores: Any, capsys: pytest.CaptureFixture[str]) -> None:
    write(place / "grow.csv", "a", np.random.default_rng(1).permutation(400)[:80], scores[0])
    assert main(["compare", str(place / "grow.csv"), str(place / "b.csv"), "--looks", "anytime", "--details"]) == 0
    out = capsys.readouterr()
    assert "Looks at a run that grows" in out.out
    assert "80 of 400" in out.out
    assert "are kept in" in out.err


def test_every_word_of_a_comparison_is_that_of_the_looks(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The plain interval of the first look excludes 0, which says nothing of a run that will be looked at again."""
    p = np.random.default_rng(5).random(400)
    b = (p < 0.5).astype(float)
    a = np.where(np.arange(400) < 60, b, np.maximum(b, (p < 0.75).astype(float)))  # better on 340 of the questions
    order = np.random.default_rng(3).permutation(400)
    write(place / "b.csv", "b", range(400), b)
    write(place / "grow.csv", "a", order[:22], a)
    files = [str(place / "grow.csv"), str(place / "b.csv")]

    def told(*more: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["compare", *files, *more])
        out = capsys.readouterr()
        return code, " ".join(out.out.split()), " ".join(out.err.split())

    plain = hn.compare(*files)
    assert plain.rows[0].verdict == "A better"
    assert plain.rows[0].p_value < 0.02
    assert main(["gate", files[1], "--against", files[0]]) == 2  # 22 of 400 questions: was it cut short?
    found = json.loads(told("--looks", "5", "--format", "json")[1])
    (row,), (look,) = found["comparisons"], found["sequential"]
    assert (row["verdict"], look["decision"]) == ("not decided", "not decided")
    for name, same in (("diff", "estimate"), ("ci_low", "ci_low"), ("ci_high", "ci_high"), ("p_value", "p_value")):
        assert row[name] == look[same], name
    assert row["ci_low"] < 0 < row["ci_high"]
    assert (row["test"], row["interval"], row["mde"], row["p_adjusted"]) == ("sequential",) * 2 + (None, row["p_value"])
    for form in ("table", "sentence", "markdown", "latex"):
        _, shown, _ = told("--looks", "5", "--format", form)
        assert "is better" not in shown
        assert "A better" not in shown
        assert "not decided" in shown
        assert "sequential" in shown


def test_what_was_decided_early_is_told_as_it_was_then(
    place: Path, scores: tuple[np.ndarray, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    order = np.random.default_rng(1).permutation(400)
    for n in (80, 160, 240, 320):
        write(place / "grow.csv", "a", order[:n], scores[0])
        look = looked(capsys, place)
        if look["decision"] == "A better":
            break
    assert look["n_asked"] < 320
    write(place / "grow.csv", "a", order, scores[0])
    assert main(["compare", str(place / "grow.csv"), str(place / "b.csv"), "--looks", "5", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = found["comparisons"]
    assert (row["diff"], row["verdict"], row["n_questions"]) == (look["estimate"], "A better", 400)
    assert any(f"after {look['n_asked']} questions" in note for note in noted(found["notes"]))


def test_what_the_looks_before_do_not_fit_is_refused(
    place: Path, scores: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    order = np.random.default_rng(1).permutation(400)
    write(place / "grow.csv", "a", order[:160], scores[0])
    looked(capsys, place)
    memory = place / "grow.csv.looks.json"
    before = memory.read_text()

    def refused(text: str, *more: str) -> None:
        assert main(["compare", str(place / "grow.csv"), str(place / "b.csv"), *(more or ("--looks", "5"))]) == 2
        assert text in capsys.readouterr().err

    refused("were taken with looks 5, not 4", "--looks", "4")
    refused("were taken with level 0.95, not 0.9", "--looks", "5", "--level", "0.9")
    refused("were taken with se 'cr2', not 'cr1'", "--looks", "5", "--se", "cr1")
    refused("were taken with missing 'drop', not 'zero'", "--looks", "5", "--missing", "zero")
    refused("were taken with cluster None, not 'none'", "--looks", "5", "--cluster", "none")
    refused("must be a number from 1 to 50", "--looks", "0")
    write(place / "grow.csv", "a", order[:80], scores[0])
    refused("a run that grows loses none")
    assert memory.read_text() == before
    for broken in ("{", "[]", '{"kind": "looks"}', before.replace('"taken"', '"took"')):
        memory.write_text(broken)
        refused("Delete it to start again")


def test_questions_in_the_order_of_the_benchmark_are_refused(
    place: Path, scores: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    write(place / "grow.csv", "a", range(100), scores[0])
    assert main(["compare", str(place / "grow.csv"), str(place / "b.csv"), "--looks", "5"]) == 2
    assert "run it in a random order" in capsys.readouterr().err


def test_looks_are_for_one_pair(place: Path, scores: Any, capsys: pytest.CaptureFixture[str]) -> None:
    write(place / "c.csv", "c", range(400), scores[0])
    files = [str(place / name) for name in ("a.csv", "c.csv")]
    assert main(["compare", *files, "--against", str(place / "b.csv"), "--looks", "5"]) == 2
    assert "--looks is for one run that grows" in capsys.readouterr().err
    rows = [f"{i},a,{i % 2},{i % 3}" for i in range(400)]
    (place / "a.csv").write_text("\n".join(["question,model,score,kind", *rows]) + "\n")
    assert main(["compare", files[0], str(place / "b.csv"), "--looks", "5", "--by", "kind"]) == 2
    assert "leave --looks or --by out" in capsys.readouterr().err


@pytest.mark.parametrize("choice", ["--test sign", "--interval bootstrap", "--weights size", "--unpaired"])
def test_what_the_looks_do_without_is_refused(place: Path, choice: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(place / name) for name in ("a.csv", "b.csv")]
    assert main(["compare", *files, "--looks", "5", *choice.split()]) == 2
    assert f"leave {choice} or --looks out" in capsys.readouterr().err
    assert not [*place.glob("*.looks.json")]


def test_a_plan_with_looks_takes_more_at_most_and_fewer_on_average() -> None:
    plain = hn.plan(omega2=0.3, effect=0.05)
    found = hn.plan(omega2=0.3, effect=0.05, looks=5)
    s = found.sequential
    assert plain.sequential is None
    assert s is not None
    assert s.n_fixed == plain.n_questions == found.n_questions
    assert (s.looks, s.power) == (5, 0.8)
    assert np.round(s.boundaries, 3).tolist() == [3.253, 2.986, 2.692, 2.374, 2.025]
    # Jennison & Turnbull's ratio R_B(5, .05, .2) is 1.028 for O'Brien and Fleming's own boundaries; gsDesign's for
    # these is 1.025
    assert 1.02 < s.n_max / s.n_fixed < 1.03
    drift = 0.05 / np.sqrt(0.3 / s.n_max)
    assert float(exits_above([0.2, 0.4, 0.6, 0.8, 1.0], s.boundaries, drift).sum()) == pytest.approx(0.8, abs=0.003)
    assert s.n_expected_double < s.n_expected_effect < s.n_expected_none < s.n_max
    assert 0.75 < s.n_expected_effect / s.n_fixed < 0.85
    assert 0.4 < s.n_expected_double / s.n_fixed < 0.5


def test_a_plan_of_given_questions_keeps_them() -> None:
    found = hn.plan(omega2=0.3, effect=0.05, n=900, looks=5)
    assert found.sequential is not None
    assert found.sequential.n_max == 900
    assert found.power - 0.02 < found.sequential.power < found.power
    anytime = hn.plan(omega2=0.3, n=900, looks="anytime").sequential
    assert anytime is not None
    assert anytime.looks == "anytime"
    assert len(anytime.boundaries) == 50
    assert 0.76 < anytime.power < 0.8
    with pytest.raises(InputError, match="too small to look"):
        hn.plan(omega2=0.3, n=8, looks=5)
    with pytest.raises(InputError, match="must be a number from 1 to 50"):
        hn.plan(omega2=0.3, n=800, looks=99)


@pytest.mark.simulation
def test_a_plan_from_two_runs_replays_them(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plan", "--from", str(place / "a.csv"), str(place / "b.csv"), "--effect", "0.1", "--looks", "5"]
    assert main([*arguments, "--format", "json"]) == 0
    replay = json.loads(capsys.readouterr().out)["plan"]["sequential"]["replay"]
    assert (replay["orders"], replay["n_total"]) == (200, 400)
    assert sum(replay["decisions"].values()) == pytest.approx(1)
    assert replay["n_low"] <= replay["n_median"] <= replay["n_high"] <= 400
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "Stopping when it is decided" in out
    assert "in 200 random orders" in out


def test_a_replay_decides_as_the_looks_do(scores: tuple[np.ndarray, np.ndarray]) -> None:
    clusters = np.arange(400) // 4
    pair = Pair.of([as_scores(scores[0], clusters)], [as_scores(scores[1], clusters)])
    for seed in range(5):
        for looks in (5, "anytime"):
            rule = StoppingRule(looks=looks, seed=seed, margin=0.02)
            found = pair.run(rule).sequential
            last = pair.replay(rule, orders=1)
            assert (last.decisions, last.n_median) == ({found.decision: 1.0}, found.n_answers)
            again = hn.compare_in_sequence(*scores, clusters, looks=looks, seed=seed, margin=0.02)
            assert again == found


def test_a_replay_of_a_group_looks_at_every_task(scores: tuple[np.ndarray, np.ndarray]) -> None:
    tasks = [np.arange(0, 300), np.arange(300, 400)]
    sides = [[as_scores(x[rows], task=str(t)) for t, rows in enumerate(tasks)] for x in scores]
    pair = Pair.of(sides[0], sides[1], [0.5, 0.5])
    last = pair.run(StoppingRule(looks=1)).sequential
    d = scores[0] - scores[1]
    assert last.estimate_unadjusted == pytest.approx(0.5 * d[:300].mean() + 0.5 * d[300:].mean())
    assert pair.replay(StoppingRule(), 20).n_total == 400


def test_boundaries_are_public() -> None:
    assert np.round(hn.boundaries(), 3).tolist() == [3.253, 2.986, 2.692, 2.374, 2.025]
    assert np.round(hn.boundaries(5, 0.95, "pocock"), 3).tolist() == [2.438, 2.427, 2.41, 2.397, 2.386]
    assert np.round(hn.boundaries(5, spending="obrien-fleming"), 3).tolist() == [4.877, 3.357, 2.68, 2.29, 2.031]
    assert hn.boundaries(5, gamma=1) < hn.boundaries(5)
    assert hn.boundaries(5, settings=hn.Settings(level=0.9)) == hn.boundaries(5, 0.9) != hn.boundaries(5)
    with pytest.raises(InputError, match=r"does not use `margin=0\.1`: leave it out"):
        hn.boundaries(5, settings=hn.Settings(margin=0.1))
    for bad in ({"looks": 0}, {"looks": "anytime"}, {"level": 2.0}, {"spending": "haybittle"}, {"gamma": 99}):
        with pytest.raises(InputError):
            hn.boundaries(**bad)


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="30 questions in a and 31 in b"):
        hn.compare_in_sequence(np.ones(30), np.ones(31))
    ways = np.stack([np.arange(40) % 8, np.arange(40) // 8], axis=1)
    with pytest.raises(ValueError, match=r"must be \(n,\) names"):
        hn.compare_in_sequence(np.random.default_rng(1).random(40), np.zeros(40), ways)


def test_a_budget_names_what_would_tell_models_from_the_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(3)
    p = rng.beta(1, 1, 150)
    for model, gain in (("a", 0.03), ("b", 0.0), ("weak", -0.3)):
        with (tmp_path / f"{model}.csv").open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["question", "model", "repeat", "score"])
            for i in range(150):
                out.writerows([i, model, k, int(rng.random() < p[i] + gain)] for k in range(4))
    files = [str(tmp_path / f"{model}.csv") for model in ("a", "b", "weak")]
    assert main(["arena", *files, "--needed", "--format", "json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    best = max(found["models"], key=lambda row: row["mean"])["model"]
    (row,) = found["budget"]
    assert {row["best"], row["model"]} == {"a", "b"}
    assert row["best"] == best
    (pair,) = [item for item in found["pairs"] if {item["model_a"], item["model_b"]} == {"a", "b"}]
    assert row["diff"] == pytest.approx(abs(pair["diff"]))
    sources = [file for file in files if Path(file).stem in ("a", "b")]
    plan = hn.plan(runs=sources, effect=row["diff"], repeats=4)
    assert row["more_questions"] == max(0, plan.n_questions - 150)
    if row["more_repeats"] is not None:
        enough = hn.plan(runs=sources, n=150, repeats=4 + row["more_repeats"])
        assert enough.mde <= row["diff"] < hn.plan(runs=sources, n=150, repeats=3 + row["more_repeats"]).mde
    assert main(["arena", *files, "--needed", "-q"]) == 0
    assert "What it takes to show a difference from the best" in capsys.readouterr().out
    assert main(["arena", *files, "--needed", "--questions-are", "fixed"]) == 2
    assert "a budget counts questions that would be added" in capsys.readouterr().err


def test_references_enter_the_looks_and_may_not_change_between_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    right = (1.5 * rng.standard_normal((400, 1)) + 0.7 * rng.standard_normal((400, 6)) > 0).astype(float)
    rows = rng.permutation(400)[:120]
    write(tmp_path / "grow.csv", "a", rows, right[:, 0])
    others = [tmp_path / f"{j}.csv" for j in range(1, 6)]
    for j, path in enumerate(others, start=1):
        write(path, f"m{j}", range(400), right[:, j])
    grow, memory = tmp_path / "grow.csv", tmp_path / "grow.csv.looks.json"
    (known,) = hn.compare(grow, others[0], looks=5, complete=others[1:]).sequential
    with pytest.raises(InputError, match="were taken with references"):
        hn.compare(grow, others[0], looks=5)
    memory.unlink()
    (alone,) = hn.compare(grow, others[0], looks=5).sequential
    part = hn.estimate_from_part(right[rows, 0], rows, right[:, 2:], against=right[:, 1])
    assert known.estimate_unadjusted == pytest.approx(part.estimate, abs=1e-12)
    assert known.information is not None
    assert alone.information is not None
    assert 0.3 < alone.information < known.information < 1


def write_answers(path: Path, model: str, counts: np.ndarray, values: np.ndarray) -> None:
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["question", "model", "repeat", "score"])
        for i, n in enumerate(counts):
            out.writerows([i, model, k, int(values[i, k])] for k in range(n))


def test_further_answers_to_the_same_questions_are_another_look(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    p = rng.beta(2, 2, 200)
    a, b = ((rng.random((200, 3)) < np.clip(p + gap, 0, 1)[:, None]).astype(float) for gap in (0.1, 0.0))
    grow, other, memory = tmp_path / "grow.csv", tmp_path / "b.csv", tmp_path / "grow.csv.looks.json"
    write_answers(other, "b", np.full(200, 3), b)
    order = rng.permutation(200)

    def looked(counts: np.ndarray) -> Any:
        write_answers(grow, "a", counts, a)
        (found,) = hn.compare(grow, other, looks=5).sequential
        return found

    some = np.zeros(200, dtype=int)
    some[order[:60]] = 1
    first = looked(some)
    assert (first.look, first.decision, first.n_answers) == (1, "not decided", 60)
    again = looked(3 * some)
    assert (again.look, again.n_asked, again.n_answers) == (2, 60, 180)
    assert again.estimate != first.estimate
    assert again.information > first.information
    # what ended because all was answered has spent its error: answers that come later have none
    memory.unlink()
    whole = looked(np.ones(200, dtype=int))
    assert (whole.look, whole.decision) == (1, "not separable")
    assert looked(np.ones(200, dtype=int)) == whole
    with pytest.raises(InputError, match="200 answers to all 200 questions"):
        looked(np.full(200, 2))


def test_looks_do_not_decide_between_two_ways_of_scoring(tmp_path: Path) -> None:
    """As in a comparison without looks, and with those that a run has recorded."""

    def told(name: str, right: int) -> hn.Run:
        write(tmp_path / f"{name}.csv", name, range(200), (np.arange(200) < right).astype(float))
        (run,) = hn.read(tmp_path / f"{name}.csv")
        texts = np.arange(1, 201, dtype=np.uint64)[:, None]
        return replace(run, scores=(replace(run.scores[0], gradings=Gradings(texts)),))

    a, b = told("a", 180), told("b", 60)
    assert hn.compare(a, b).verdict == hn.compare(a, b, looks=5).verdict
    (row,) = hn.compare(a, b, looks=5).comparisons
    assert (row.verdict, row.test) == ("scored differently", "sequential")


def test_what_could_not_be_decided_may_still_be(tmp_path: Path) -> None:
    """Futility is not binding: a run that goes on all the same is looked at again."""
    rng = np.random.default_rng(2)
    b = (rng.random(400) < 0.5).astype(float)
    order = rng.permutation(400)
    a = b.copy()
    a[order[:200]] = (rng.random(200) < 0.5).astype(float)
    a[order[200:]] = 1.0
    write(tmp_path / "b.csv", "b", range(400), b)
    found = []
    for n in (100, 200, 300, 400):
        write(tmp_path / "grow.csv", "a", order[:n], a)
        (row,) = hn.compare(tmp_path / "grow.csv", tmp_path / "b.csv", looks=4).sequential
        found.append((row.look, row.decision))
    assert "cannot be decided" in [decision for _, decision in found[:2]]
    assert found[-1][1] == "A better"

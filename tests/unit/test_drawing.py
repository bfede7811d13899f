"""Random parts of a benchmark, and what a run says of having stopped early."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.drawing import read_block, with_record
from harness_noise.analysis.mean import analyze_run
from harness_noise.analysis.repeats import as_repeats
from harness_noise.analysis.sample import scores_of_rows
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, ReadOptions, Run, Scores
from harness_noise.errors import InputError
from harness_noise.extra.drawing import check_against, draw, drawing_chances, number_wanted
from harness_noise.extra.references.estimating import expected_scores, full_differences, full_means
from harness_noise.extra.stopping.growing import observe
from harness_noise.io.joining import joined, select
from harness_noise.report.summary import summarise
from harness_noise.results.parts import Sequential
from harness_noise.settings import Settings

LOOKS = {
    "task": "t", "metric": "acc", "scorer": "none", "rule": "group-sequential", "looks": 5, "look": 2,
    "alpha_spent": 0.001, "n_asked": 40, "n_total": 100, "order_seed": 7, "decision": "A better", "estimate": 0.31,
    "ci_low": 0.12, "ci_high": 0.49, "estimate_unadjusted": 0.33, "p_value": 0.001,
}  # fmt: skip
DRAWN = {"task": "t", "n_asked": 40, "n_total": 100, "order_seed": 7, "stopped_early": True}


def bounded(run: Run) -> Scores:
    return replace(run.scores[0], bounds=(0.0, 1.0))


def run_of(rows: np.ndarray, name: str = "m") -> Run:
    rng = np.random.default_rng(3)
    values = (rng.random((200, 1)) < 0.6).astype(float)
    questions = Questions(tuple(f"q{i:03}" for i in rows), "doc_hash")
    return Run(model=name, name=name, harness="lm-eval", scores=(Scores("t", "acc", "none", questions, values[rows]),))


@pytest.mark.parametrize(
    ("size", "count"),
    [("0.2", 20), ("20%", 20), (0.999, 100), (1.0, 100), ("1.0", 100), ("100%", 100), ("2", 2), (40, 40), (500, 100)],
)
def test_sizes(size: str | float, count: int) -> None:
    assert number_wanted(size, 100) == count
    assert len(draw(100, size, seed=1)) == count


@pytest.mark.parametrize("size", ["0", "-1", "x", "1.5", "120%", "nan", "inf", ""])
def test_no_size(size: str) -> None:
    with pytest.raises(InputError, match="neither a share"):
        number_wanted(size, 100)


@pytest.mark.parametrize("size", [1, "1", 0.01, "1%", "0.004"])
def test_a_part_of_one_question_is_refused(size: str | float) -> None:
    with pytest.raises(InputError, match="says nothing of the others"):
        draw(100, size)
    assert draw(1, 0.2).tolist() == [0]  # all that there is


def test_whole_clusters_every_task_in_proportion_and_all_equally_often() -> None:
    clusters = np.repeat(np.arange(30), 3)
    tasks = ["a"] * 60 + ["b"] * 30
    often = np.zeros(90)
    for seed in range(300):
        rows = draw(90, "30", clusters, tasks, seed=seed)
        assert len(rows) == 30
        assert (np.bincount(clusters[rows], minlength=30) % 3 == 0).all()
        assert abs((rows < 60).sum() - 20) <= 3
        often[rows] += 1
    assert abs(often / 300 - 1 / 3).max() < 4.5 * np.sqrt(2 / 9 / 300)
    assert (draw(90, "30", clusters, tasks, seed=4) == draw(90, "30", clusters, tasks, seed=4)).all()


def test_uncertain_questions_are_drawn_more_often_with_the_probabilities_that_are_told() -> None:
    rng = np.random.default_rng(1)
    expected, tasks = rng.random(400) ** 4, np.repeat(["a", "b"], [300, 100])
    chances = drawing_chances("25%", expected, None, tasks)
    assert chances is not None
    for task, count in (("a", 75), ("b", 25)):
        rows = tasks == task
        assert chances[rows].sum() == pytest.approx(count)
        spread = 0.5 + 0.5 * np.sqrt(expected[rows] * (1 - expected[rows]))
        np.testing.assert_allclose(chances[rows] / spread, chances[rows][0] / spread[0])
    often = np.zeros(400)
    for seed in range(1500):
        rows = draw(400, "25%", None, tasks, seed=seed, chances=chances)
        assert len(rows) in (99, 100, 101)
        often[rows] += 1
    assert np.abs(often / 1500 - chances).max() < 4.5 * np.sqrt(0.25 / 1500)
    # a cluster is drawn whole, with the mean of its questions; what would be drawn more than once is certain
    clusters = np.repeat(np.arange(100), 4)
    whole = drawing_chances("95%", expected, clusters, None)
    assert whole is not None
    assert whole.sum() == pytest.approx(380)
    assert whole.max() == 1
    assert (whole.reshape(100, 4) == whole[::4, None]).all()
    assert (np.bincount(clusters[draw(400, "95%", clusters, chances=whole)], minlength=100) % 4 == 0).all()
    assert drawing_chances("20%", expected, np.repeat(np.arange(20), 20)) is None  # too few for a regression
    assert drawing_chances("100%", expected) is None
    assert drawing_chances("25%", np.round(expected)) is None  # one answer of one reference: all are as uncertain


@pytest.mark.simulation
def test_the_estimate_from_an_unequal_part_is_of_all_questions() -> None:
    """Most questions are easy for all, and so are drawn less often: unbiased all the same, and as wide as it says."""
    rng, easy = np.random.default_rng(2), np.where(np.arange(300) % 5 < 3, 9, -0.5)[:, None]
    errors, squares, covered, plains = [], [], 0, []
    for _ in range(300):
        latent = easy + np.linspace(-0.5, 0.5, 4) + rng.standard_normal((300, 1)) + rng.standard_normal((300, 4))
        Y = (latent > 0).astype(float)
        chances = drawing_chances(75, Y[:, :3].mean(axis=1))
        assert chances is not None
        rows = draw(300, 75, seed=int(rng.integers(1 << 30)), chances=chances)
        found = hn.estimate_from_part(Y[rows, 3], rows, Y[:, :2], against=Y[:, 2], chances=chances[rows])
        truth = float(Y[:, 3].mean() - Y[:, 2].mean())
        assert found.estimate is not None
        assert found.se is not None
        assert found.ci_low is not None
        assert found.ci_high is not None
        errors.append(found.estimate - truth)
        squares.append(found.se**2)
        covered += found.ci_low <= truth <= found.ci_high
        plains.append(Y[rows, 3].mean() - Y[:, 3].mean())
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(300)
    assert np.mean(plains) < -4 * np.std(plains) / np.sqrt(300)  # what is uncertain is harder than the benchmark
    assert 0.91 <= covered / 300 <= 0.98
    assert np.mean(squares) == pytest.approx(np.mean(np.square(errors)), rel=0.2)


def test_equal_chances_are_no_chances() -> None:
    rng = np.random.default_rng(3)
    Y, strata = rng.random((300, 4)), np.repeat([0, 1], [200, 100])
    rows = np.concatenate([rng.choice(200, 50, replace=False), 200 + rng.choice(100, 25, replace=False)])
    told = hn.estimate_from_part(Y[rows, 0], rows, Y[:, 1:], strata=strata, chances=np.full(75, 0.25))
    alone = hn.estimate_from_part(Y[rows, 0], rows, Y[:, 1:], strata=strata)
    for name in ("estimate", "se", "se_population", "gain", "r2"):
        assert getattr(told, name) == pytest.approx(getattr(alone, name), rel=1e-12)
    for wrong in (np.full(75, 0.0), np.full(75, 1.5), np.full(74, 0.25)):
        with pytest.raises(InputError, match="75 probabilities above 0"):
            hn.estimate_from_part(Y[rows, 0], rows, Y[:, 1:], chances=wrong)


def test_a_run_keeps_the_chances_of_its_questions() -> None:
    """Its rows have a code, and references and looks weight each question."""
    rng = np.random.default_rng(4)
    whole = run_of(np.arange(100), "reference")
    expected = expected_scores(whole.scores[0].questions, "t", [replace(whole, scores=(bounded(whole),))])
    assert expected is not None
    assert expected_scores(whole.scores[0].questions, "t", [whole]) is None  # no range: what is uncertain is not known
    np.testing.assert_array_equal(expected, whole.scores[0].values[:, 0])
    chances = drawing_chances(40, rng.random(100))
    assert chances is not None
    rows = draw(100, 40, seed=1, chances=chances)
    mine = dict(zip((f"q{i:03}" for i in rows), chances[rows].tolist(), strict=True))
    drawn = DRAWN | {"n_asked": len(rows), "stopped_early": False, "chances": mine}
    part = with_record(run_of(rows), *read_block(json.loads(json.dumps({"drawn": [drawn]}))))
    assert part.scores[0].chances == mine
    assert analyze_run(part, Settings()).estimates[0].diagnostics == ("single_repeat", "unequal_chances")
    other = replace(whole, scores=(replace(bounded(whole), values=rng.random((100, 1))),))
    ((row,), _) = full_means([part], [other], Settings())
    array = hn.estimate_from_part(part.scores[0].values, rows, other.scores[0].values, chances=chances[rows])
    assert (row.estimate, row.se) == (pytest.approx(array.estimate), pytest.approx(array.se))
    assert row.diagnostics == ()
    half = observe([scores_of_rows(part.scores[0], np.arange(0, len(rows), 2))], [other.scores[0]], Settings())
    at = rows[::2]
    array = hn.estimate_from_part(
        part.scores[0].values[::2], at, np.empty((100, 0)), against=other.scores[0].values[:, 0],
        chances=chances[at] * len(at) / len(rows),
    )  # fmt: skip
    assert (half.estimate, half.se) == (pytest.approx(array.estimate), pytest.approx(array.se_population))
    with pytest.raises(InputError, match="does not say with which"):
        full_means([with_record(run_of(rows), [], [drawn | {"chances": {"q000": 0.5}}])], [other], Settings())
    with pytest.raises(InputError, match="`se='cr2'`"):
        observe([part.scores[0]], [other.scores[0]], Settings(se="cr0"))


def unequal(seed: int, size: int = 80, name: str = "m", of: dict[int, float] | None = None) -> Run:
    """A part of 200 questions, of which the first are drawn more often; or a part of half of another part."""
    expected = np.where(np.arange(200) < 60, 0.5, 0.01)
    chances = drawing_chances(size, expected)
    assert chances is not None
    rows = draw(200, size, seed=seed, chances=chances)
    if of is not None:
        rows = np.sort(np.random.default_rng(seed).choice(list(of), len(of) // 2, replace=False))
        chances = np.array([of.get(i, 0.0) / 2 for i in range(200)])
    told = {f"q{i:03}": float(chances[i]) for i in rows}
    drawn = DRAWN | {"n_asked": len(rows), "n_total": 200, "stopped_early": False, "chances": told}
    run = run_of(rows, name)
    values = np.random.default_rng(seed).integers(0, 2, run.scores[0].values.shape).astype(float)
    return with_record(replace(run, scores=(replace(bounded(run), values=values),)), [], [drawn])


def test_parts_that_were_drawn_apart_have_no_known_chances() -> None:
    whole = run_of(np.arange(200), "reference")
    equal = run_of(np.sort(np.random.default_rng(5).permutation(200)[:80]))
    equal = with_record(equal, [], [DRAWN | {"n_asked": 80, "n_total": 200, "stopped_early": False}])
    one, other = unequal(1), unequal(2)
    for runs in ([equal, one], [one, equal], [one, other]):
        (both,) = as_repeats([replace(run, model="m") for run in runs])
        assert "unequal_chances" in both.scores[0].diagnostics
        with pytest.raises(InputError, match="does not say with which"):
            full_means([both], [whole], Settings())
    for runs in ([replace(whole, model="m"), one], [one, replace(whole, model="m")]):
        (both,) = as_repeats(runs)
        assert (
            "has answered all 200 questions"
            in full_means([both], [replace(whole, name="r")], Settings())[1][0].as_text()
        )
    for run in (equal, one):  # nor is what two such parts share a part with known chances
        rows, (note,) = full_differences([(run, replace(other, model="b"))], [whole], Settings())
        assert not rows
        assert "of 200 questions only" in note.as_text()


def test_a_part_of_an_unequal_part_has_its_chances_twice() -> None:
    """Among the questions of that part they are equal, and among all they are not."""
    half = unequal(1, 160, "b")
    other = half.scores[0]
    assert other.chances is not None
    known = {int(key[1:]): value for key, value in other.chances.items()}
    part = unequal(3, of=known).scores[0]
    at = [list(known).index(int(key[1:])) for key in part.questions.keys]
    seen = observe([part], [other], Settings())
    array = hn.estimate_from_part(part.values, at, np.empty((len(known), 0)), against=other.values[:, 0])
    assert (seen.estimate, seen.se) == (pytest.approx(array.estimate), pytest.approx(array.se_population))
    observe([part], [other], Settings(se="cr3"))


def test_the_looks_of_a_run_go_with_its_scores() -> None:
    """Of a task that was run twice the newest scores count, and no looks at the older ones."""
    one, other = run_of(np.arange(100)), run_of(np.arange(60))
    more = replace(one.scores[0], task="u")
    looks = [LOOKS, LOOKS | {"task": "u"}, LOOKS | {"task": "a group"}]
    old = replace(one, path="d/old", date="1", scores=(*one.scores, more), stops=tuple(looks))
    (run,) = joined([old, replace(other, path="d/new", date="2")], "d")
    assert {part.task: len(part.questions) for part in run.scores} == {"t": 60, "u": 100}
    assert [item["task"] for item in run.stops] == ["u", "a group"]


def test_each_file_of_a_run_says_which_score_of_its_tasks_counts() -> None:
    def named(name: str, date: str, *tasks: str, counts: str) -> hn.Run:
        (part,) = run_of(np.arange(20)).scores
        heads = frozenset((task, counts, "none") for task in tasks)
        scores = tuple(replace(part, task=task) for task in tasks)
        return replace(run_of(np.arange(20)), path=f"d/{name}", name=name, date=date, scores=scores, headline=heads)

    files = [named("old", "1", "t", "u", counts="f1"), named("new", "2", "t", counts="acc")]
    (run,) = joined(files, "d")
    assert run.headline == {("t", "acc", "none"), ("u", "f1", "none")}
    (together,) = as_repeats([named("one", "", "t", counts="acc"), named("two", "", "t", "u", counts="acc")])
    assert together.headline == {("t", "acc", "none"), ("u", "acc", "none")}


def test_a_run_that_stopped_says_so_everywhere() -> None:
    run = with_record(run_of(np.arange(40)), [LOOKS], [DRAWN])
    found = analyze_run(run, Settings())
    assert found.estimates[0].diagnostics.count("stopped_early") == 1
    assert found.to_dict()["sequential"] == [Sequential(**LOOKS).to_dict()]
    now = DRAWN | {"chances": None, "n_only": None}
    assert found.to_dict()["drawn"] == [now]
    assert read_block(json.loads(json.dumps(found.to_dict()))) == ([Sequential(**LOOKS).to_dict()], [now])
    assert read_block({"sequential": [LOOKS], "drawn": [DRAWN]}) == (
        [LOOKS],
        [DRAWN],
    )  # as written before there were rounds
    summary = summarise(found)
    (looks,) = [section for section in summary.sections if section.title]
    assert "40 of 100" in looks.rows[0]
    assert "A − B = 31.0 points, 95% CI [12.0, 49.0] on " in summary.lead[0]
    assert "Report these: they allow for the looks, and the plain difference, 33.0 points, does not." in summary.lead[0]
    assert "stopped early at look 2 of 5" in summary.lead[0]
    (code,) = [one.text for one in summary.legend if one.code == "stopped_early"]
    assert "decided" in code
    # reading again marks nothing twice
    again = with_record(run, *read_block(found.to_dict()))
    assert again.scores[0].diagnostics == run.scores[0].diagnostics
    compared = hn.compare(run, run_of(np.arange(100), "other")) if hasattr(hn, "compare") else None
    assert compared is None or "stopped_early" in compared.comparisons[0].diagnostics


def test_what_a_file_says_moves_no_cursor() -> None:
    hostile = LOOKS | {"decision": "\x1b[2JA better", "rule": "x\x1b[1m", "looks": "\u202e5"}
    summary = summarise(analyze_run(with_record(run_of(np.arange(40)), [hostile], [DRAWN]), Settings()))
    shown = [cell for section in summary.sections for row in section.rows for cell in row] + list(summary.sentences)
    assert all(text.isprintable() for text in shown)


def test_a_part_that_was_not_stopped_early_is_named_and_has_no_code() -> None:
    run = with_record(run_of(np.arange(40)), [], [DRAWN | {"stopped_early": False}])
    found = analyze_run(run, Settings())
    assert "stopped_early" not in found.estimates[0].diagnostics
    assert "t: 40 of 100 questions, drawn at random (seed 7)." in summarise(found).sentences


def test_a_task_that_is_left_out_says_nothing_of_its_drawing() -> None:
    run = with_record(run_of(np.arange(40)), [], [DRAWN | {"task": task, "stopped_early": False} for task in "tu"])
    run = replace(run, scores=(*run.scores, replace(run.scores[0], task="u")))
    assert [row.task for row in hn.analyze(run, tasks=["u"]).drawn] == ["u"]
    group = Group("g", run.scores[0].metric, run.scores[0].scorer, ("t",))
    grouped = select(replace(run, groups=(group,)), ReadOptions(tasks=("g",)))
    assert [record["task"] for record in grouped.drawn] == ["t"]


@pytest.mark.parametrize(
    "block",
    [
        None,
        3,
        {"sequential": 5, "drawn": "x"},
        {"sequential": [3, {}], "drawn": [DRAWN | {"n_asked": True}]},
        {"sequential": [LOOKS | {"estimate": float("nan")}], "drawn": []},
        {"drawn": [DRAWN | {"chances": {"q001": 1.2}}]},
        {"drawn": [DRAWN | {"chances": {"q001": "0.5"}, "order_seed": {}}]},
    ],
)
def test_what_others_have_written_is_left_out(block: object) -> None:
    assert read_block(block) == ([], [])


def test_a_part_that_the_run_says_was_drawn_needs_not_look_random() -> None:
    part, whole = run_of(np.arange(40)), run_of(np.arange(100), "reference")
    with pytest.raises(InputError, match="not drawn at random"):
        full_means([part], [whole], Settings())
    ((row,), notes) = full_means([part], [whole], Settings(), refuse=False)
    assert (row.estimate, row.se, row.diagnostics) == (None, None, ("not_a_random_part",))
    assert "not drawn at random" in notes[0].as_text()
    assert len(notes) == 1
    with pytest.raises(InputError, match="not drawn at random"):
        full_means([replace(part, drawn=(DRAWN | {"n_total": 50},))], [whole], Settings())  # of half of them
    ((row,), _) = full_means([replace(part, drawn=(DRAWN,))], [whole], Settings())
    assert (row.n_asked, row.n_total) == (40, 100)


def test_a_run_that_stopped_early_is_no_run_to_compare_with() -> None:
    run = run_of(np.arange(40))
    check_against(run, "t")
    check_against(with_record(run, [], [DRAWN | {"stopped_early": False}]), "t")
    stopped = with_record(run, [LOOKS], [DRAWN])
    check_against(stopped, "another")
    with pytest.raises(InputError, match=r"stopped early itself after 40 of 100 questions.*all questions"):
        check_against(stopped, "t")
    with pytest.raises(InputError, match="stopped early itself, because"):
        check_against(replace(stopped, drawn=()), "t")


def test_the_whole_benchmark_of_a_run_that_stopped_early_says_so() -> None:
    rows = np.random.default_rng(5).permutation(100)[:40]
    part, whole = run_of(rows), run_of(np.arange(100), "reference")
    stopped = with_record(part, [LOOKS], [DRAWN])
    for ours, expected in ((part, False), (stopped, True)):
        ((row,), _) = full_means([ours], [whole], Settings())
        assert ("stopped_early" in row.diagnostics) == expected
        ((row,), _) = full_differences([(ours, run_of(np.arange(100), "b"))], [whole], Settings())
        assert ("stopped_early" in row.diagnostics) == expected
    of_half = with_record(run_of(np.arange(40)), [LOOKS], [DRAWN | {"n_total": 50}])
    ((row,), _) = full_means([of_half], [whole], Settings(), refuse=False)
    assert row.diagnostics == ("not_a_random_part", "stopped_early")

"""The overall row: one number for all top-level tasks, which changes no other row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.data.questions import Questions, content_hash
from harness_noise.data.scores import Gradings, Group, Run, Scores
from harness_noise.stats.decision import holm
from support.notes import noted
from support.same_rows import assert_same_row

RNG = np.random.default_rng(7)


def scored(task, right, n, *, words=None, bounds=(0.0, 1.0), higher=True, metric="acc", clusters=None):
    """The first `right` of n questions are right."""
    values = (np.arange(n) < right).astype(float)[:, None]
    inputs = None if words is None else tuple(content_hash(f"{words} {i}") for i in range(n))
    questions = Questions(tuple(map(str, range(n))), inputs=inputs)
    more = {"clusters": clusters, "cluster_spec": None if clusters is None else "topic"}
    return Scores(task, metric, "none", questions, values=values, bounds=bounds, higher_is_better=higher, **more)


def run(name, *parts, groups=()):
    return Run(model=name, name=name, harness="test", scores=parts, groups=groups)


A = run("A", scored("big", 240, 400), scored("small", 36, 40))
B = run("B", scored("big", 260, 400), scored("small", 20, 40))


def overall(result):
    return [row for row in result.rows if row.is_overall]


def drawn(name, gains, seed, n=60):
    rng = np.random.default_rng(seed)
    parts = [
        replace(scored(f"t{t}", 0, n), values=(rng.random((n, 2)) < 0.5 + gain).astype(float))
        for t, gain in enumerate(gains)
    ]
    return run(name, *parts)


@pytest.mark.parametrize(("weights", "diff"), [("equal", 0.175), ("size", -4 / 440), ({"big": 3, "small": 1}, 0.0625)])
def test_one_answer_over_all_tasks(weights, diff):
    (row,) = overall(hn.compare(A, B, weights=weights))
    assert row.diff == pytest.approx(diff)
    assert row.weights == (weights if isinstance(weights, str) else "file")
    means = [overall(hn.analyze(side, weights=weights))[0].mean for side in (A, B)]
    assert (row.mean_a, row.mean_b) == pytest.approx(means)


def test_by_size_missing_answers_count_with_the_weight_that_they_would_have():
    """A task of 40 questions has 2 answers of A. By these it weighs 2 of 62, and 40 of 100 if none is missing."""
    filled = {}
    for worth in (np.nan, 0.0, 1.0):
        lone = replace(scored("lone", 40, 40), values=np.r_[np.ones(2), np.full(38, worth)][:, None])
        lone = replace(lone, n_missing=int(np.isnan(lone.values).sum()))
        a, b = run("A", lone, scored("big", 54, 60)), run("B", scored("lone", 40, 40), scored("big", 30, 60))
        groups = (Group("both", "acc", "none", ("lone", "big")),)
        for groups_of, weights in (((), "size"), (groups, "equal")):
            rest = scored("rest", 3, 6) if groups_of else scored("big", 54, 60)
            sides = [replace(x, groups=groups_of, scores=(*x.scores, rest)[: 3 if groups_of else 2]) for x in (a, b)]
            (row,) = overall(hn.compare(*sides, weights=weights))
            (mean,) = overall(hn.analyze(sides[0], weights=weights))
            filled.setdefault(weights, []).append((row, mean))
    for (row, mean), *worst_and_best in filled.values():
        assert (row.verdict, row.if_missing) == ("A better", "could change the verdict")
        assert row._diff_if_missing == pytest.approx([other.diff for other, _ in worst_and_best])
        ends = mean.mean_if_missing_wrong, mean.mean_if_missing_right
        assert ends == pytest.approx([other.mean for _, other in worst_and_best])
        assert {"B better", "not separable"} & {other.verdict for other, _ in worst_and_best}


def test_a_task_that_lies_in_the_largest_cluster_leaves_no_bounds_of_missing_answers_without_it():
    """What would change the verdict is asked without that cluster, where the task has no question left."""
    small = scored("small", 2, 4, clusters=("most",) * 4)
    large = scored("large", 9, 24, clusters=tuple("most" if i < 8 else f"c{i % 5}" for i in range(24)))
    gap = replace(large, values=np.where(np.arange(24) == 20, np.nan, large.values[:, 0])[:, None], n_missing=1)
    (row,) = overall(hn.compare(run("A", small, gap), run("B", replace(small, values=1 - small.values), large)))
    assert (row.n_missing, row.if_missing) == (1, "not known")


def test_equal_weights_are_the_mean_of_the_rows_with_satterthwaites_df():
    *tasks, row = hn.compare(A, B).comparisons
    V = np.array([task.se**2 for task in tasks])
    assert row.se == pytest.approx(V.sum() ** 0.5 / 2)
    n = np.array([task.n_questions for task in tasks])  # as the group kernel has it: questions vary alike in all tasks
    assert row.df == pytest.approx((1 / n).sum() ** 2 / (n**-2.0 / (n - 1)).sum())


def test_it_is_in_no_family():
    a, b = (drawn(name, gains, seed) for name, gains, seed in (("a", (0.1, 0.05, 0, 0), 1), ("b", (0, 0, 0, 0), 2)))
    found, without = hn.compare(a, b), hn.compare(a, b, weights="none")
    assert found.comparisons[:-1] == without.comparisons
    assert found.comparisons[-1].p_adjusted == found.comparisons[-1].p_value
    assert not overall(without)
    assert hn.analyze(a).estimates[:-1] == hn.analyze(a, weights="none").estimates


def test_a_group_counts_once():
    parts = [scored(f"mmlu_{i}", right, 20) for i, right in enumerate((10, 12, 20))]
    groups = (
        Group("mmlu", "acc", "none", ("mmlu_0", "mmlu_1", "mmlu_2")),
        Group("mmlu_stem", "acc", "none", ("mmlu_0", "mmlu_1")),
    )
    (row,) = overall(hn.analyze(run("m", *parts, scored("gsm8k", 3, 10), groups=groups)))
    assert row.mean == pytest.approx((0.7 + 0.3) / 2)
    assert not overall(hn.analyze(run("m", *parts, groups=groups)))


def test_a_nested_group_keeps_the_mean_of_its_row():
    """The tasks of a group by size have the sizes that are compared."""
    parts = [scored("g1", 5, 10), scored("g2", 30, 40), scored("alone", 4, 8)]
    parts[1] = replace(parts[1], values=np.where(np.arange(40)[:, None] < 8, np.nan, parts[1].values))
    group = Group("g", "acc", "none", ("g1", "g2"))
    *_, of_group, row = hn.analyze(run("m", *parts, groups=(group,))).estimates
    assert (of_group.task, of_group.mean) == ("g", pytest.approx((5 + 22) / 42))
    assert row.mean == pytest.approx((of_group.mean + 0.5) / 2)


@pytest.mark.parametrize(
    ("other", "note"),
    [
        (scored("b", 5, 10, higher=False), "lower is better in b"),
        (scored("b", 5, 10, bounds=(0.0, 100.0)), "ranges differ"),
    ],
)
def test_none_where_there_is_no_common_mean(other, note):
    for found in (
        hn.analyze(run("m", scored("a", 5, 10), other)),
        hn.compare(run("m", scored("a", 5, 10), other), run("n", scored("a", 4, 10), other)),
    ):
        assert not overall(found)
        assert any("no overall row" in said and note in said for said in noted(found))


def test_none_where_something_is_called_so():
    parts = [scored(name, 5, 10) for name in ("a", "b", "overall")]
    assert not overall(hn.analyze(run("m", *parts)))
    group = Group("overall", "acc", "none", ("a", "b"))
    assert not overall(hn.analyze(run("m", *parts[:2], groups=(group,))))


@pytest.mark.parametrize("shared", ["words", "clusters", "both"])
def test_what_tasks_share_is_one_sample(shared):
    """Ten tasks of the same questions are no ten samples of questions: by their words, or by a cluster's label."""
    rng = np.random.default_rng(3)
    difficulty = rng.normal(size=50)
    runs = []
    for name in "ab":
        parts = []
        for t in range(10):
            words = "q" if shared != "clusters" else f"task {t}"
            labels = tuple(f"c{i}" for i in range(50)) if shared != "words" else None
            part = scored(f"t{t}", 0, 50, words=words, clusters=labels)
            own = difficulty[:, None] if name == "a" else 0
            parts.append(replace(part, values=(own + rng.normal(size=(50, 1)) > 0).astype(float)))
        runs.append(run(name, *parts))
    found = hn.compare(*runs)
    row = overall(found)[0]
    assert row.n_clusters == 50
    assert row.df == pytest.approx(49)
    assert row.se > 1.5 * np.sqrt(sum(task.se**2 for task in found.comparisons[:-1])) / 10
    assert row.cluster == {"words": "same question", "clusters": "topic", "both": "topic, same question"}[shared]
    assert {item.diagnostics for item in found.combined} == {("tasks_share_questions",)}
    assert {item.p_value for item in found.combined} == {None}
    (board,) = [board for board in hn.arena(runs).boards if board.is_overall]
    pair = board.pairs[0]
    assert_same_row(pair, row, 1e-9)
    assert pair.diagnostics == row.diagnostics


def test_questions_and_clusters_together_are_connected_components():
    """Task two asks question 0 of cluster x again, in its own cluster y: the two clusters are one."""
    one = scored("one", 3, 6, words="w", clusters=("x", "x", "u", "u", "v", "v"))
    two = scored("two", 2, 6, words="other", clusters=("y", "y", "z", "z", "s", "s"))
    inputs = (one.questions.inputs[0], *two.questions.inputs[1:])
    two = replace(two, questions=Questions(two.questions.keys, inputs=inputs), cluster_spec="theme")
    (row,) = overall(hn.analyze(run("m", one, two)))
    assert row.n_clusters == 5


def test_row_numbers_are_no_questions():
    (row,) = overall(hn.analyze(A))
    assert (row.cluster, row.n_clusters) == (None, 440)


def test_a_group_whose_sides_lack_different_tasks_is_over_the_common_ones():
    group = Group("g", "acc", "none", ("t0", "t1", "t2"))
    a = run("A", scored("t0", 6, 10), scored("t1", 7, 10), groups=(replace(group, tasks=("t0", "t1")),))
    b = run("B", scored("t1", 5, 10), scored("t2", 9, 30), groups=(replace(group, tasks=("t1", "t2")),))
    found = hn.compare(a, b)
    row = next(row for row in found.comparisons if row.task == "g")
    assert (row.mean_a, row.mean_b, row.n_only_a, row.n_only_b) == (0.7, 0.5, 10, 30)
    assert "unpaired_questions" in row.diagnostics
    said = next(note for note in noted(found) if note.startswith("g acc"))
    assert "over the one task that both runs have" in said
    assert "t0 (10 questions), which only A has" in said
    assert "t2 (30 questions), which only B has" in said
    assert any("average different tasks" in note for note in noted(hn.analyze([a, b])))
    none = hn.compare(run("A", *a.scores[:1], scored("x", 1, 5), groups=(replace(group, tasks=("t0",)),)),
                      run("B", *b.scores[1:], scored("x", 2, 5), groups=(replace(group, tasks=("t2",)),)))  # fmt: skip
    assert [row.task for row in none.comparisons] == ["x"]
    assert any("have no task of it in common" in note for note in noted(none))


def test_arena_models_have_the_row_and_its_pairs_are_those_of_compare():
    runs = [
        drawn(name, gains, seed) for name, gains, seed in (("a", (0.2, 0), 1), ("b", (0, 0), 2), ("c", (0, 0.1), 3))
    ]
    found = hn.arena(runs)
    rows = {model.model: model for model in found.models if model.is_overall}
    for one in runs:
        assert rows[one.model].mean == overall(hn.analyze(one))[0].mean
    (board,) = [board for board in found.boards if board.is_overall]
    row = overall(hn.compare(runs[0], runs[1]))[0]
    pair = board.pairs.find("a", "b")
    assert (pair.diff, pair.se, pair.p_value) == pytest.approx((row.diff, row.se, row.p_value))
    assert pair.weights == "equal"
    assert {question.task for question in found.questions} == {"t0", "t1"}


def test_the_rows_of_several_pairs_are_a_family_as_in_an_arena():
    """Of one pair the adjusted p is the p; the tasks' adjusted p are the same with and without the overall rows."""
    a, b, c = (
        drawn(name, gains, seed) for name, gains, seed in (("a", (0.2, 0), 1), ("b", (0.1, 0), 2), ("c", (0, 0), 3))
    )
    rows = overall(hn.compare([a, b], against=c))
    p = np.array([row.p_value for row in rows])
    assert [row.p_adjusted for row in rows] == pytest.approx(holm(p).tolist())
    assert (rows[0].p_adjusted, rows[1].p_adjusted) != (rows[0].p_value, rows[1].p_value)
    (alone,) = overall(hn.compare(a, c))
    assert (alone.p_value, alone.p_adjusted) == (rows[0].p_value, rows[0].p_value)
    tasks = [
        [row.p_adjusted for row in hn.compare([a, b], against=c, weights=weights).rows if row.task != "overall"]
        for weights in ("equal", "none")
    ]
    assert tasks[0] == tasks[1]
    (board,) = [board for board in hn.arena([a, b, c]).boards if board.is_overall]
    of_board = [board.pairs[i] for i in range(3)]
    assert [row.p_adjusted for row in of_board] == pytest.approx(holm([row.p_value for row in of_board]).tolist())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\nbig,1\n", "has the columns task,weight or field,value,weight"),
        ("task,weight\nbig,-1\n", "line 2: the weight '-1' must be a number"),
        ("task,weight\nbig,1\nbig,2\n", "line 3: big has a weight already"),
        ("task,weight\nbig,1\n", "no line for small"),
        ("task,weight\nbig,0\nsmall,0\n", "not all 0"),
        ("task,weight\n", "no line with a weight"),
        ("field,value,weight\nf,x,1\ng,y,1\n", "strata are of one field"),
    ],
)
def test_files_of_weights_that_cannot_be_used(tmp_path, text, message):
    path = tmp_path / "weights.csv"
    path.write_text(text)
    with pytest.raises(hn.InputError, match=message):
        hn.compare(A, B, weights=path)


def test_a_file_of_weights(tmp_path):
    path = tmp_path / "weights.csv"
    path.write_text("Weight, task\n1,small\n3,big\n0,other\n")
    found = hn.compare(A, B, weights=str(path))
    assert overall(found)[0].diff == pytest.approx(0.0625)
    assert found.to_dict()["settings"]["weights"] == (("small", 1.0), ("big", 3.0), ("other", 0.0))
    assert any("weights name other, which is not there" in note for note in noted(found))
    with pytest.raises(hn.InputError, match="no such file"):
        hn.compare(A, B, weights="nowhere.csv")


def test_a_gate_judges_it_with_pooled_alone():
    parts = [scored(f"mmlu_{i}", right, 20) for i, right in enumerate((10, 12, 20))]
    group = Group("mmlu", "acc", "none", tuple(f"mmlu_{i}" for i in range(3)))
    base = run("base", *parts, scored("gsm8k", 8, 10), groups=(group,))
    new = run("new", *parts, scored("gsm8k", 3, 10), groups=(group,))
    assert {row.task for row in hn.gate(new, base).rows} == {"mmlu_0", "mmlu_1", "mmlu_2", "mmlu", "gsm8k"}
    decides = hn.gate(new, base, pooled=True).rows[0]
    assert decides.estimate == pytest.approx(overall(hn.compare(new, base))[0].diff) == pytest.approx(-0.25)
    by_size = hn.gate(new, base, pooled=True, weights="size").rows[0]
    assert by_size.estimate == pytest.approx(-0.5 * 10 / 70)
    weights = {"mmlu": 0, "gsm8k": 2}
    assert hn.gate(new, base, pooled=True, weights=weights).rows[0].estimate == pytest.approx(-0.5)
    assert hn.gate(new, floor=0.5, pooled=True).rows[0].estimate == pytest.approx((0.7 + 0.3) / 2)
    with pytest.raises(hn.InputError, match="`weights` are of the mean over all tasks"):
        hn.gate(new, base, weights="size")


def mixed(path, model, right, seed):
    """Two tasks of easy and hard questions, of which 9 in 10 are easy."""
    rng = np.random.default_rng(seed)
    lines = ["task,question,level,model,score"]
    for task in ("one", "two"):
        for i in range(100):
            level = "hard" if i % 10 == 0 else "easy"
            lines.append(f"{task},{i},{level},{model},{int(rng.random() < right[level])}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_a_traffic_mix_weights_the_questions_of_every_task(tmp_path):
    a = mixed(tmp_path / "a.csv", "a", {"easy": 0.9, "hard": 0.5}, 1)
    b = mixed(tmp_path / "b.csv", "b", {"easy": 0.9, "hard": 0.1}, 2)
    mix = tmp_path / "mix.csv"
    mix.write_text("field,value,weight\nlevel,hard,3\nlevel,easy,1\nlevel,odd,1\n")
    slices = {(row.task, row.slice): row for row in hn.analyze(a, by="level").slices}
    found = hn.analyze(a, weights=mix)
    for row in found.estimates[:2]:
        hard, easy = (slices[row.task, level] for level in ("hard", "easy"))
        assert (row.weights, row.mean) == ("file", pytest.approx(0.75 * hard.mean + 0.25 * easy.mean))
        assert row.se == pytest.approx(((0.75 * hard.se) ** 2 + (0.25 * easy.se) ** 2) ** 0.5)
    assert found.estimates[2].mean == pytest.approx(np.mean([row.mean for row in found.estimates[:2]]))
    assert any("no question has the level odd" in note for note in noted(found))
    differences = hn.compare(a, b, weights=mix).comparisons
    assert [row.task for row in differences] == ["one", "two", "overall"]
    assert differences[0].mean_a == pytest.approx(found.estimates[0].mean)
    assert [model.weights for model in hn.arena([a, b], weights=mix).models] == ["file"] * 4 + ["equal"] * 2
    assert hn.gate(a, b, weights=mix).rows[0].estimate == pytest.approx(differences[0].diff)
    with pytest.raises(hn.InputError, match="mix within each task, and `pooled` is the mean over tasks"):
        hn.gate(a, b, weights=mix, pooled=True)
    with pytest.raises(hn.InputError, match="strata"):
        hn.compare(a, b, weights=mix, by="level")
    mix.write_text("field,value,weight\nsize,hard,3\n")
    with pytest.raises(hn.InputError, match="size"):
        hn.analyze(a, weights=mix)


def test_a_task_that_is_all_right_has_the_range_of_the_others():
    """A table declares none: 1 throughout may be of any scale, but beside shares it is one."""
    parts = [scored("all", 10, 10, bounds=None, metric="score"), scored("some", 5, 10, bounds=None, metric="score")]
    (row,) = overall(hn.analyze(run("m", *parts)))
    assert (row.mean, row.range) == (0.75, (0.0, 1.0))
    alone = hn.analyze(run("m", *(replace(parts[0], task=name) for name in "ab")))
    assert not overall(alone)
    assert any("range of the metric is not known" in note.as_text() for note in alone.notes)


def test_a_page_begins_with_the_verdict_over_all_tasks(tmp_path):
    page = hn.write_html(hn.compare(A, B), tmp_path / "page.html")[0].read_text()
    assert "A is better than B by 17.5 points over all tasks with equal weights." in page
    assert "A against B, 2 rows: 1 better, 1 worse" in page


def test_what_is_withheld_of_a_task_is_withheld_of_all():
    """40 equal answers of a small task are scored differently; of all 1,040 equal ones that is less than 5%."""

    def side(name, small):
        parts = []
        for task, right, n in (("big", 500, 1000), ("small", small, 40)):
            texts = np.arange(1, n + 1, dtype=np.uint64)[:, None]
            parts.append(replace(scored(task, right, n, words=task), gradings=Gradings(texts)))
        return run(name, *parts)

    *tasks, row = hn.compare(side("A", 40), side("B", 0)).comparisons
    assert [task.verdict for task in tasks] == ["not separable", "scored differently"]
    assert row.verdict == "scored differently"
    assert str(hn.compare(side("A", 40), side("B", 0)))


def test_tasks_that_one_run_lacks_are_counted(tmp_path):
    for name, tasks in (("one", "abc"), ("two", "ab")):
        rows = [f"{task},{task}{i},{int((i * len(name + task) * 3) % 5 < 3)}" for task in tasks for i in range(20)]
        (tmp_path / f"{name}.csv").write_text("task,question,score\n" + "\n".join(rows) + "\n")
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for given, only in ((paths, (20, 0)), (paths[::-1], (0, 20))):
        found = hn.compare(*given)
        (row,) = [row for row in found.comparisons if row.task == "overall"]
        assert (row.n_questions, row.n_only_a, row.n_only_b) == (40, *only)
        assert "unpaired_questions" in row.diagnostics
        (note,) = [note for note in found.notes if note.code == "overall_in_part"]
        assert "without c (20 questions)" in note.as_text()

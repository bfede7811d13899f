"""What a user says of tables: sides, wide columns, paths; and what a table itself must not be taken for."""

from __future__ import annotations

import json
import random

import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.errors import InputError
from support.notes import noted
from support.tables import array, one, table


@pytest.fixture
def cli(capsys):
    """Exit code, stdout and stderr of a command."""
    return lambda *words: (main([str(word) for word in words]), *capsys.readouterr())


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def pair(tmp_path):
    draw = random.Random(1)
    rows = [(f"q{i}", int(draw.random() < 0.9), int(draw.random() < 0.5)) for i in range(40)]
    return table(tmp_path / "pair.csv", ("id", "gpt", "opus"), *rows), rows


@pytest.mark.parametrize("name", ["pair.csv", "A.csv"])
def test_the_columns_of_a_side_are_of_that_side_alone(pair, name, cli):
    path, rows = pair
    path = path.rename(path.with_name(name))
    (row,) = hn.compare(path, path, columns={"A:score": "gpt", "B:score": "opus"}).comparisons
    assert row.diff == pytest.approx(sum(gpt - opus for _, gpt, opus in rows) / 40)
    _, out, _ = cli("compare", path, path, "--columns", "A:score=gpt", "--columns", "B:score=opus", "--format", "json")
    assert json.loads(out)["comparisons"][0]["diff"] == pytest.approx(row.diff)
    with pytest.raises(InputError, match="A and B are the two runs of a comparison"):
        hn.compare([path], against=path, columns={"A:score": "gpt"})


def test_an_option_says_one_thing(pair, cli):
    path, _ = pair
    code, _, error = cli("analyze", path, "--columns", "score=gpt", "--columns", "score=opus")
    assert code == 2
    assert "--columns score is both 'gpt' and 'opus'" in error
    code, _, error = cli("analyze", path, "--level", ".9", "--level", ".8")
    assert code == 2
    assert "--level is given 2 times" in error
    template = "score={{ [gpt | int, opus | int] | max }},question=id"
    _, out, _ = cli("analyze", path, "--columns", template, "--format", "json")
    assert json.loads(out)["estimates"][0]["n_questions"] == 40


def test_columns_of_models_and_of_repeats_are_known_by_their_names(pair, tmp_path):
    path, rows = pair
    assert [(run.model, array(run).mean()) for run in hn.read(path)] == [
        (model, sum(row[1 + k] for row in rows) / 40) for k, model in enumerate(("gpt", "opus"))
    ]
    runs = table(tmp_path / "runs.csv", ("question_id", "run_1", "run_2"), *rows)
    assert array(one(runs)).tolist() == [[a, b] for _, a, b in rows]


def test_one_answer_that_is_graded_twice_tells_of_the_judge(tmp_path):
    draw = random.Random(2)
    rows = [
        (f"q{q}", f"I say {q}, because", int(draw.random() < (0.9, 0.1)[q % 2])) for q in range(40) for _ in range(5)
    ]
    path = table(tmp_path / "t.csv", ("id", "response", "score"), *rows)
    with pytest.raises(InputError, match=r"rows with one answer.*the scores differ"):
        one(path)
    assert any(
        "grading the same text twice flips" in note for note in noted(hn.analyze(path, columns={"repeat": "none"}))
    )


def test_a_plain_label_is_never_a_crossed_one(csv_file):
    rows = [(f"q{i}", f"t{i % 3} ⨯ l{i % 2}", i % 2) for i in range(12)]
    path = table(csv_file, ("question", "cluster", "score"), *rows)
    assert one(path).scores[0].clusters[0] == "t0 × l0"
    assert one(path, cluster="cluster").scores[0].clusters[1] == "t1 × l1"


def test_files_are_no_repeats_by_numbers_of_rows_alone(tmp_path):
    rows = [("m", i, i % 2) for i in range(20)]
    paths = [table(tmp_path / name, ("model", "id", "score"), *rows) for name in ("alpha.csv", "beta.csv")]
    with pytest.raises(InputError, match="cannot be taken for repeats: their ids only number the questions"):
        hn.analyze(paths, as_repeats=True)
    runs = [path.rename(tmp_path / f"run_{k}.csv") for k, path in enumerate(paths)]
    (row,) = hn.analyze(runs, as_repeats=True).estimates
    assert (row.n_questions, row.repeats_max) == (20, 2)
    for k, path in enumerate(runs):  # the same model, whose name is that of the file but for its number
        table(path.with_name(f"output-rs{k}.csv"), ("id", "score"), *(row[1:] for row in rows))
    (row,) = hn.analyze([tmp_path / f"output-rs{k}.csv" for k in range(2)], as_repeats=True).estimates
    assert (row.model, row.repeats_max) == ("output", 2)


def test_the_names_of_files_and_folders_are_tasks_and_models(tmp_path):
    for model in ("opal", "quartz"):
        (tmp_path / "grid" / model).mkdir(parents=True)
        for task in ("maths", "history"):
            table(tmp_path / "grid" / model / f"{task}.csv", ("id", "score"), *((i, i % 2) for i in range(9)))
    said = hn.read(tmp_path / "grid", columns={"task": "@file", "model": "@folder"})
    for runs in (said, hn.read(tmp_path / "grid")):
        assert {(run.model, part.task) for run in runs for part in run.scores} == {
            (model, task) for model in ("opal", "quartz") for task in ("maths", "history")
        }
    with pytest.raises(InputError, match="may be tasks or models"):
        hn.read(tmp_path / "grid" / "opal")


def test_two_columns_of_one_name_in_parquet_are_refused(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = [arrow.array(["a", "b"]), arrow.array([1, 0]), arrow.array([0, 1])]
    parquet.write_table(arrow.Table.from_arrays(columns, names=["question", "score", "score"]), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="two columns are called 'score'"):
        hn.read(tmp_path / "t.parquet")


def test_objects_in_a_column_of_tasks_are_no_tasks(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [{"task": {"task_id": i, "prompt": f"do {i}"}, "success": i % 2 == 0} for i in range(9)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (part,) = one(path).scores
    assert (part.task, part.values.shape) == ("table", (9, 1))


def test_an_answer_without_a_score_needs_no_level(csv_file):
    rows = [
        (q, "" if (q, k) == (3, 1) else f"p{k}", "" if (q, k) == (3, 1) else (q + k) % 2)
        for q in range(8)
        for k in (0, 1)
    ]
    path = table(csv_file, ("question", "prompt_id", "score"), *rows)
    run = one(path, columns={"question": "question", "score": "score"}, factors=("prompt_id",))
    assert run.scores[0].factors["prompt_id"][3] == ("p0", "")
    table(csv_file, ("question", "prompt_id", "score"), *[(q, "", 1) if q == 3 else (q, p, s) for q, p, s in rows])
    with pytest.raises(InputError, match="factor 'prompt_id' is not there or empty"):
        one(path, columns={"question": "question", "score": "score"}, factors=("prompt_id",))


@pytest.mark.parametrize(
    ("name", "bad", "good"), [("error", "boom", ""), ("valid", "False", "True"), ("status", "timeout", "completed")]
)
def test_rows_that_failed_keep_their_score_and_are_counted(csv_file, name, bad, good):
    rows = [(f"q{i}", 0 if i < 3 else int(i % 3 > 0), bad if i < 3 else good) for i in range(12)]
    path = table(csv_file, ("question_id", "score", name), *rows)
    run = one(path)
    assert array(run).sum() == 6
    said = f"3 of 12 rows failed by {name!r} and have the lowest score, 0: they count as that (mean 0.5)"
    (note,) = [note for note in noted(run) if said in note]
    assert f"To leave them out (mean 0.6667), say `columns={{'missing': '{name}'}}`" in note
    (part,) = one(path, columns={"missing": name}).scores
    assert (part.n_missing, part.missing) == (3, {"agent": 3})
    empty = table(csv_file, ("question_id", "score", name), *((q, "" if e == bad else s, e) for q, s, e in rows))
    assert one(empty).scores[0].missing == {"agent": 3}


def test_a_problem_of_evalplus_passes_plus_with_both_test_sets(tmp_path):
    said = [("pass", "pass"), ("pass", "fail"), ("fail", "pass"), ("timeout", "timeout")]
    problems = {f"HumanEval/{i}": [{"base_status": base, "plus_status": plus}] for i, (base, plus) in enumerate(said)}
    path = tmp_path / "samples_eval_results.json"
    for whole in ({"eval": problems}, {"date": "2026-01-01 10:00", "hash": "x", "eval": problems}):
        path.write_text(json.dumps(whole))
        (run,) = hn.read(path)
        assert {part.metric: part.values.ravel().tolist() for part in run.scores} == {
            "base": [1, 1, 0, 0], "plus": [1, 0, 0, 0],
        }  # fmt: skip
    assert run.scores[0].questions.keys[:2] == ("HumanEval/0", "HumanEval/1")


def test_a_trial_of_tau_bench_that_raised_is_missing(tmp_path):
    def trial(i, k):
        failed = (i, k) == (2, 1)
        info = {"error": "boom", "traceback": "…"} if failed else {"task": {"user_id": "u"}}
        return {"task_id": i, "reward": 0.0 if failed else 1.0, "info": info, "traj": [], "trial": k}

    path = tmp_path / "run.json"
    path.write_text(json.dumps([trial(i, k) for k in range(2) for i in range(4)]))
    (part,) = hn.read(path)[0].scores
    assert (part.metric, part.values.shape, part.missing) == ("reward", (4, 2), {"infrastructure": 1})
    assert hn.analyze(path, missing="zero").estimates[0].mean == pytest.approx(7 / 8)


def test_the_results_of_swe_bench_pro_are_known_by_what_is_in_them(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({f"instance_org__repo-{i}": i % 2 == 0 for i in range(6)}))
    (run,) = hn.read(path, cluster="auto")
    assert (run.harness, run.scores[0].values.ravel().tolist()) == ("swe-bench", [1, 0, 1, 0, 1, 0])


def test_two_runs_with_one_score_and_other_answers_are_told_of(tmp_path):
    draw = random.Random(4)
    scores = [draw.random() < 0.5 for _ in range(40)]

    def run(name, differs):
        rows = [(f"q{i}", f"I say {name if differs(i) else ''}{i} here", int(score)) for i, score in enumerate(scores)]
        return table(tmp_path / f"{name}.csv", ("question_id", "response", "score"), *rows)

    a, b, c = run("a", lambda i: True), run("b", lambda i: True), run("c", lambda i: i < 4)
    said = "may be a property of the question"
    assert any(said in note for note in noted(hn.compare(a, b)))
    c_again = c.rename(tmp_path / "d.csv")
    assert not any(said in note for note in noted(hn.compare(run("c", lambda i: i < 4), c_again)))


def test_checkpoints_of_one_table_are_told_apart_by_the_column_of_their_steps(tmp_path):
    rows = [("m", step, f"q{i}", int(i < step / 100)) for step in (300, 600, 900) for i in range(12)]
    path = table(tmp_path / "t.csv", ("model", "step", "question_id", "score"), *rows)
    with pytest.raises(InputError, match="differ in 'step'"):
        one(path)
    found = hn.arena(path, over="step")
    assert [(row.step, row.mean) for row in found.checkpoints] == [
        (step, pytest.approx(step / 1200)) for step in (300, 600, 900)
    ]
    bare = table(tmp_path / "run.csv", ("step", "question_id", "score"), *(row[1:] for row in rows))
    assert [row.step for row in hn.arena(bare, over="step").checkpoints] == [300, 600, 900]


def test_who_asks_for_pass_at_k_is_not_asked_what_retries_are(csv_file):
    draw, rows = random.Random(0), []
    for i in range(60):
        for _ in range(3):
            rows.append((f"q{i}", int(draw.random() < 0.5)))
            if rows[-1][1]:
                break
    path = table(csv_file, ("question_id", "score"), *rows)
    with pytest.raises(InputError, match=r"first attempts, or the chance within 3 \(`measures=\['pass@3'\]`"):
        hn.analyze(path)
    within = sum(any(score for q, score in rows if q == f"q{i}") for i in range(60)) / 60
    (row,) = hn.analyze(path, measures=["pass@3"]).estimates
    assert row.mean == pytest.approx(within)
    score, _ = hn.analyze(path, measures=["score", "pass@3"]).estimates
    assert "stopped_on_success" in score.diagnostics
    assert score.mean == pytest.approx(sum(dict(reversed(rows)).values()) / 60)


def test_a_model_without_a_step_keeps_its_name_beside_checkpoints(tmp_path):
    told = [("m", 300, 0.3), ("m", 600, 0.6), ("base", "", 0.5)]
    rows = [(model, step, f"q{i}", int(i < 12 * share)) for model, step, share in told for i in range(12)]
    path = table(tmp_path / "t.csv", ("model", "step", "question_id", "score"), *rows)
    found = hn.arena(path, over="step")
    assert {model.model for model in found.models} == {"base", "m step_300", "m step_600"}
    assert [row.step for row in found.checkpoints] == [300, 600]


def test_models_times_metrics_in_objects_are_asked_about(tmp_path):
    """One of the metrics must not be taken in silence."""
    draw = random.Random(2)
    scores = [
        {m: {"chrf": draw.uniform(30, 99), "fluency": draw.randint(1, 5)} for m in ("llama_8b", "gpt_4o")}
        for _ in range(30)
    ]
    path = tmp_path / "mt.jsonl"
    path.write_text("".join(json.dumps({"id": i, "scores": s}) + "\n" for i, s in enumerate(scores)), encoding="utf-8")
    with pytest.raises(InputError, match=r"models or conditions times metrics.*\(models, chrf\).*\(models, fluency\)"):
        one(path)
    (row,) = hn.compare(path, columns={"models": "scores.llama_8b.chrf+scores.gpt_4o.chrf"}).comparisons
    assert row.mean_b == pytest.approx(sum(s["gpt_4o"]["chrf"] for s in scores) / 30)


@pytest.mark.parametrize("name", ["answers.csv", "answers.jsonl"])
def test_answers_without_a_score_say_how_to_compare_them(name, tmp_path):
    rows = [{"qid": f"q{i}", "gold": "ABC"[i % 3], "pred": "aBX"[(i // 2) % 3]} for i in range(36)]
    path = tmp_path / name
    if name.endswith("csv"):
        table(path, list(rows[0]), *(row.values() for row in rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    same = sum(row["gold"].lower() == row["pred"].lower() for row in rows) / 36
    with pytest.raises(InputError, match="To score whether 'pred' is 'gold', say `columns=") as error:
        one(path)
    assert f"(mean {same:.4g})" in str(error.value)
    template = str(error.value).rpartition("{'score': ")[2].rpartition("}`")[0].strip("\"'")
    assert array(one(path, columns={"score": template})).mean() == pytest.approx(same)


@pytest.mark.parametrize("cells", [("A", 1), ("A", ""), ("What a long text it is", "B")])
def test_what_cannot_be_compared_word_for_word_is_not_offered(cells, tmp_path):
    rows = [{"qid": i, "gold": cells[0], "pred": cells[i % 2]} for i in range(20)]
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(InputError, match="no column holds the scores") as error:
        one(path)
    assert "To score" not in str(error.value)


def test_an_answer_with_several_scores_is_told_once_what_to_say(csv_file):
    rows = [(f"q{i}", f"It is {i} metres long, I think.", int(j and i % 5 < 2)) for i in range(10) for j in (0, 1)]
    table(csv_file, ("question_id", "response", "exact_match"), *rows)
    with pytest.raises(InputError, match=r"If the rows are repeats all the same, say `columns=\{'repeat': 'none'\}`"):
        one(csv_file)


@pytest.mark.parametrize("name", ["run", "run_name"])
def test_models_in_a_column_of_runs_are_no_repeats(name, csv_file):
    rows = [(f"q{i}", model, int(i % 3 > j)) for i in range(30) for j, model in enumerate(("gpt-4o", "ours"))]
    table(csv_file, ("id", name, "score"), *rows)
    with pytest.raises(InputError, match=rf"differ in '{name}' \('gpt-4o', 'ours'\).*a model: `columns="):
        one(csv_file)
    runs = [(i, model.replace("ours", "gpt-4o run 2"), score) for i, model, score in rows]
    assert array(one(table(csv_file, ("id", "run", "score"), *runs))).shape == (30, 2)  # names of one model


@pytest.mark.parametrize("form", ["{}", "points_{}", "{} correct"])
def test_a_baseline_beside_models_is_asked_about(form, csv_file):
    names = [form.format(name) for name in ("gpt-4o", "opus", "baseline")]
    rows = [(f"q{i}", i % 2, int(i % 3 > 0), int(i % 5 > 1)) for i in range(30)]
    table(csv_file, ("id", *names), *rows)
    with pytest.raises(InputError, match="3 columns hold scores"):
        one(csv_file)
    table(csv_file, ("id", *names), *((*row[:3], 1) for row in rows))  # a bar, the same for all questions
    assert len(hn.read(csv_file)) == 2


def test_of_right_answers_a_baseline_is_asked_about_beside_any_name(csv_file):
    rows = [(f"q{i}", i % 2, int(i % 3 > 0)) for i in range(30)]
    table(csv_file, ("id", "ours correct", "baseline correct"), *rows)
    with pytest.raises(InputError, match="2 columns hold scores"):
        one(csv_file)
    table(csv_file, ("id", "correct", "baseline"), *rows)
    assert array(one(csv_file)).shape == (30, 1)


def test_per_cent_named_like_a_score_are_asked_about(csv_file):
    rows = [(f"q{i}", f"{100 * (i % 2)}%", i % 5 + 1) for i in range(30)]
    table(csv_file, ("id", "accuracy", "fluency"), *rows)
    with pytest.raises(
        InputError, match=r"holds percentages: write them as numbers. If it is none, say `columns="
    ) as error:
        one(csv_file)
    assert "'fluency'}` (mean 3)" in str(error.value)


@pytest.mark.parametrize("words", [("y", "n"), ("✓", "✗"), ("T", "F")])
def test_words_that_are_no_verdicts_are_asked_about_and_another_score_is_not_taken(words, csv_file):
    rows = [(f"q{i}", words[i % 3 > 0], i % 5 + 1) for i in range(30)]
    for header in (("id", "is_correct"), ("id", "score", "fluency"), ("id", "is_correct", "fluency")):
        table(csv_file, header, *(row[: len(header)] for row in rows))
        with pytest.raises(InputError, match=f"'{header[1]}' is named like a score, but") as error:
            one(csv_file)
        assert f"({words[1]} is right, mean 0.6667)" in str(error.value)
        assert ("{'score': 'fluency'}` (mean 3)" in str(error.value)) == (len(header) == 3)
    got = array(one(csv_file, columns={"score": f"{{{{ (is_correct == '{words[1]}') | int }}}}"}))
    assert got.mean() == pytest.approx(2 / 3)
    table(csv_file, header, *((row[0], 1 if row[1] == words[1] else -1, row[2]) for row in rows))
    with pytest.raises(InputError, match=r"'-?1' and '-?1' are not known as words .*'is_correct'}` \(mean 0.3333\)"):
        one(csv_file)


@pytest.mark.parametrize("values", [(-1, 1), (0, 2e22), (1, 5)])
def test_two_numbers_are_a_score(values, csv_file):
    table(csv_file, ("id", "score"), *((f"q{i}", values[i % 3 > 0]) for i in range(30)))
    assert array(one(csv_file)).mean() == pytest.approx((10 * values[0] + 20 * values[1]) / 30)


def test_a_list_of_questions_beside_a_list_of_scores_is_no_question_with_repeats(tmp_path):
    """As a file of pythia has them: one row for a checkpoint, with the scores and ids of all questions."""
    rows = [(task, [i % 2 for i in range(6)], [f"{task}_{i}" for i in range(6)]) for task in ("x", "y")]
    path = tmp_path / "t.csv"
    path.write_text("task,acc,id\n" + "".join(f'{task},"{scores}","{ids}"\n' for task, scores, ids in rows))
    with pytest.raises(InputError, match=r"list scores, and those of 'id' as many items.*explode\(\['acc', 'id'\]\)"):
        one(path)
    path.write_text("task,acc,id\n" + "".join(f'{task},"{scores}",q{task}\n' for task, scores, _ in rows))
    assert array(one(path)).shape == (2, 6)


@pytest.mark.parametrize("ids", ["id", "qids", "question_ids"])
def test_lists_of_ids_are_not_asked_for_as_the_question(ids, tmp_path):
    rows = [{"task": task, "acc": [i % 2 for i in range(6)], ids: [f"{task}{i}" for i in range(6)]} for task in "xy"]
    as_json = jsonl(tmp_path / "t.jsonl", rows)
    as_text = table(tmp_path / "t.csv", tuple(rows[0]), *(tuple(map(str, row.values())) for row in rows))
    for path in (as_json, as_text):
        for columns in ({}, {"question": ids}):
            with pytest.raises(InputError, match=f"those of '{ids}' as many items"):
                one(path, columns=columns)


def test_repeats_with_their_answers_in_lists_are_read(tmp_path):
    rows = [{"id": f"q{i}", "scores": [1, i % 2, 0], "responses": ["a", "b", "c"]} for i in range(8)]
    assert array(one(jsonl(tmp_path / "t.jsonl", rows))).shape == (8, 3)


@pytest.mark.parametrize("answer", [["a", "b"], {"text": "a"}])
def test_answers_that_are_lists_or_objects_leave_a_rating_the_score(answer, tmp_path):
    rows = [{"id": f"q{i}", "response": answer, "rating": i % 5 + 1} for i in range(20)]
    path = jsonl(tmp_path / "t.jsonl", rows)
    assert array(one(path)).mean() == pytest.approx(3)
    path = jsonl(path, [row | {"is_correct": "yn"[i % 2]} for i, row in enumerate(rows)])
    with pytest.raises(InputError, match="'is_correct' is named like a score, but 'y' and 'n' are not known"):
        one(path)


def test_lists_of_rising_numbers_are_places_and_no_scores(tmp_path):
    """As in a file of the questions that were drawn: the mean of their numbers was read as the score."""
    drawn = {f"part {i}": [i + 3 * j for j in range(12)] for i in range(6)}
    for data in (drawn, {"seed": 1, "drawn": drawn}):
        path = tmp_path / "t.json"
        path.write_text(json.dumps(data))
        with pytest.raises(InputError, match="no column holds the scores"):
            one(path)


@pytest.mark.parametrize("names", [("answer1_id", "answer2_id"), ("model_a", "model_b"), ("Answer1", "Answer2")])
def test_a_list_with_a_score_for_each_of_the_numbered_columns_is_asked_about(names, tmp_path):
    """As in a judge's reviews of two models, whose scores were read as repeats of one."""
    rows = [{"question_id": i, "score": [9, i % 3]} | {name: f"{name} {i}" for name in names} for i in range(12)]
    path = jsonl(tmp_path / "t.jsonl", rows)
    with pytest.raises(InputError, match="list 2 scores, as many as there are") as asked:
        one(path)
    assert f"'score.1'}}` (of {names[1]}, mean 1)" in str(asked.value)
    assert array(one(path, columns={"score": "score.1"})).mean() == pytest.approx(1)
    assert array(one(path, columns={"score": "score"})).shape == (12, 2)
    told = jsonl(path, [row | {"score": str(row["score"])} for row in rows])  # lists as texts, as pandas writes them
    assert array(one(told, columns={"score": "score.1"})).mean() == pytest.approx(1)


def test_a_count_in_an_object_of_counts_is_no_task(tmp_path):
    rows = [
        {"id": f"q{i}", "tool_calls": {"bash": 2} | ({"task": i % 2} if i % 3 else {}), "resolved": i % 2 == 0}
        for i in range(30)
    ]
    run = one(jsonl(tmp_path / "t.jsonl", rows))
    assert array(run).mean() == pytest.approx(0.5)


@pytest.mark.parametrize("passed", [12, 0])
def test_a_last_line_with_totals_is_named_and_told_to_be_deleted(passed, tmp_path):
    rows = [{"task_id": f"H/{i}", "completion": "x", "passed": i % 3 == 0} for i in range(30)]
    path = jsonl(tmp_path / "t.jsonl", [*rows, {"model": "m", "passed": passed, "failed": 18}])
    with pytest.raises(InputError, match=r"line 31: no 'task_id': .* If the line has totals, delete it"):
        one(path)
    assert array(one(jsonl(path, rows))).mean() == pytest.approx(1 / 3)


@pytest.mark.parametrize("words", [("PASS", "FAIL"), ("correct", "incorrect"), ("passed", "failed")])
@pytest.mark.parametrize("name", ["result", "label", "status"])
@pytest.mark.parametrize("scores", [("f1",), ("score",), ("f1", "bleu")])
def test_a_verdict_in_words_beside_a_metric_is_asked_about(name, words, scores, csv_file):
    """The metric was taken, and the verdict was among the columns that are not used."""
    rows = [(f"q{i}", *(i % 7 / 10 for _ in scores), words[i % 3 > 0]) for i in range(30)]
    table(csv_file, ("id", *scores, name), *rows)
    with pytest.raises(InputError, match=f"'{name}' could each be the score") as asked:
        one(csv_file)
    assert f"{{'score': '{name}'}}` (mean 0.3333)" in str(asked.value)
    assert array(one(csv_file, columns={"score": name})).mean() == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("name", "words"), [("status", ("ok", "error")), ("valid", ("yes", "no")), ("refused", ("true", "false"))]
)
def test_a_state_or_a_property_of_an_answer_beside_a_metric_is_no_rival(name, words, csv_file):
    table(csv_file, ("id", "f1", name), *((f"q{i}", i % 7 / 10 + 0.1, words[i % 3 == 0]) for i in range(30)))
    one(csv_file)


def test_a_label_with_the_words_of_the_predictions_is_the_right_answer(csv_file):
    words = ("correct", "incorrect")
    rows = ((f"q{i}", i % 7 / 10, words[i % 2], words[i % 3 > 0]) for i in range(30))
    one(table(csv_file, ("id", "f1", "label", "prediction"), *rows))


@pytest.mark.parametrize("key", ["@key", "name"])
def test_names_with_one_fractional_accuracy_each_may_be_groups(key, tmp_path):
    """As in a summary of prompts, or of categories: each row was a question."""
    means = {f"group {i}": 0.3 + 0.05 * i for i in range(8)}
    path = tmp_path / "t.json"
    rows = [{"name": name, "accuracy": mean} for name, mean in means.items()]
    path.write_text(json.dumps({name: {"accuracy": mean} for name, mean in means.items()} if key == "@key" else rows))
    with pytest.raises(InputError, match="have one accuracy each, perhaps a mean"):
        one(path)
    assert array(one(path, columns={"question": key})).shape == (8, 1)


def test_several_words_of_a_grade_are_asked_about_with_the_mean_of_each(tmp_path):
    grades = ("PASS", "SOFT_FAIL", "HARD_FAIL")
    path = jsonl(tmp_path / "t.jsonl", [{"test_id": f"t{i}", "grade": grades[i % 3]} for i in range(18)])
    with pytest.raises(InputError, match=r"are not known as words for right and wrong.*PASS is right, mean 0.3333"):
        one(path)


def test_of_several_conditions_the_one_with_the_fewest_values_is_asked_about(tmp_path):
    """As in MT-Bench, whose judge has a prompt for each kind of question and turn."""
    rows = [
        {
            "question_id": q,
            "model": "m",
            "mode": q % 2,
            "judge": ["gpt-4", f"{kind}-{turn}"],
            "score": q % 9,
            "turn": turn,
        }
        for turn in (1, 2)
        for q, kind in enumerate(["math", "single"] * 10)
    ]
    with pytest.raises(InputError, match="which differ in 'turn'"):
        one(jsonl(tmp_path / "t.jsonl", rows))
    rows = [row | {"method": row["turn"] > 2, "turn": row["turn"] + more} for row in rows for more in (0, 2)]
    with pytest.raises(InputError, match="which differ in 'turn'"):  # the method alone leaves several rows
        one(jsonl(tmp_path / "t.jsonl", rows))


def test_what_tells_answers_with_one_number_and_two_scores_apart_is_asked_about(tmp_path):
    """The message named two lines, and the user had to look for the column."""
    rows = [
        {
            "prompt": f"who is {q} in it",
            "run_index": r,
            "score": (q + r) % 3 % 2,
            "config": {"profile": p},
            "path": p + str(9 * q + r),
        }
        for p in ("shallow", "deep")
        for r in (1, 2, 3)
        for q in range(12)
    ]
    rows = [row | {"score": 1 - row["score"]} if row["config"]["profile"] == "deep" else row for row in rows]
    path = jsonl(tmp_path / "t.jsonl", rows)
    with pytest.raises(InputError, match=r"which differ in 'config\.profile'"):
        one(path)
    assert len(hn.analyze(path, columns={"task": "config.profile"}).estimates) == 3


_WIDE = [
    (("gpt-4o", "opus"), "named like models.*'models': 'gpt-4o\\+opus'"),
    (("gpt-4o_score", "opus_score"), "named like models.*'models': 'gpt-4o_score\\+opus_score'"),
    (("run1", "run2"), "named like repeats, and are read as such if you leave 'rouge' out"),
    (("score_1", "score_2"), "named like repeats, and are read as such if you leave 'rouge' out"),
]


@pytest.mark.parametrize(("names", "words"), _WIDE)
def test_a_metric_beside_columns_of_models_or_repeats_is_not_taken_unasked(names, words, csv_file):
    rows = [(f"q{i}", int(i % 3 > 0), int(i % 5 > 1), i / 40) for i in range(30)]
    table(csv_file, ("id", *names, "rouge"), *rows)
    with pytest.raises(InputError, match=words) as error:
        one(csv_file)
    assert "{'score': 'rouge'}` (mean 0.3625)" in str(error.value)
    table(csv_file, ("id", *names), *(row[:3] for row in rows))
    assert sum(array(run).size for run in hn.read(csv_file)) == 60


@pytest.mark.parametrize(
    ("name", "cell"), [("accuracy", "{:.1f}"), ("passed", "{:.0f}"), ("judge_score", "{:.0f}%"), ("rating", "{:.0f}%")]
)
def test_a_metric_beside_a_score_that_is_not_known_as_one_is_not_taken_unasked(name, cell, csv_file):
    rows = [(f"q{i}", cell.format(3.1 * i), i / 40) for i in range(30)]
    table(csv_file, ("id", name, "rouge"), *rows)
    with pytest.raises(InputError, match=f"'{name}' is named like a score, but.*'rouge'}}` \\(mean 0.3625"):
        one(csv_file)
    table(csv_file, ("id", name, "score"), *rows)  # a score that is called so stands before all
    if name != "accuracy":
        assert array(one(csv_file)).mean() == pytest.approx(0.3625)


def test_a_condition_that_is_said_to_be_the_task_leaves_a_column_task_the_question(csv_file):
    """The condition became the question, and the next message was about its 4 questions."""
    rows = [(f"trap {q}", on, (q + on) % 3 % 2) for on in (0, 1) for q in range(12)]
    table(csv_file, ("task", "condition", "score"), *rows)
    estimates = hn.analyze(csv_file, columns={"task": "condition"}).estimates
    assert [row.n_questions for row in estimates if row.task in "01"] == [12, 12]


@pytest.mark.parametrize("count", ["overall_questions", "n_questions"])
def test_a_row_that_counts_its_questions_is_a_mean(count, tmp_path):
    """Three benchmarks were read as three questions."""
    rows = [{"benchmark": f"b{b}", "seed": s, "accuracy": (b + s) / 9, count: 250} for b in range(3) for s in range(5)]
    with pytest.raises(InputError, match=f"means of many answers, not single answers: it has a column '{count}'"):
        one(jsonl(tmp_path / "t.jsonl", rows))

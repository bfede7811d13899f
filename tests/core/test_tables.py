"""Score tables in all their forms, and the published figures through them."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import harness_noise as hn
from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_run
from harness_noise.cli import main
from harness_noise.data.scores import ReadOptions, Run
from harness_noise.errors import InputError
from harness_noise.settings import Settings
from harness_noise_adapters.tables import adapter
from support.notes import noted
from support.tables import array, one, read, table

# forms
ROWS = [("a", 1, 1), ("a", 2, 0), ("b", 1, 1), ("b", 2, 1)]


def write_as(path: Path) -> Path:
    records = [dict(zip(("question", "repeat", "score"), row, strict=True)) for row in ROWS]
    if path.suffix in (".csv", ".tsv"):
        return table(path, ("question", "repeat", "score"), *ROWS, delimiter="\t" if path.suffix == ".tsv" else ",")
    if path.suffix == ".json":
        path.write_text(json.dumps(records, indent=1))
    elif path.suffix == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
        import pyarrow

        parquet.write_table(pyarrow.Table.from_pylist(records), path)
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in records) + "\n")
    return path


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "ndjson", "json", "parquet"])
def test_one_table_in_every_format(tmp_path, suffix):
    path = write_as(tmp_path / f"model-x.{suffix}")
    assert adapter.sniff(path)
    run = one(path)
    assert run.model == "model-x"
    assert array(run).tolist() == [[1, 0], [1, 1]]
    (part,) = run.scores
    assert (part.task, part.metric, part.scorer, part.higher_is_better) == ("table", "score", "none", None)
    assert part.questions.keys == ("a", "b")
    assert [type(run) for run in hn.read(path)] == [Run]


def test_a_semicolon_and_a_byte_order_mark(csv_file):
    csv_file.write_text("\ufeffquestion;score\na;1\n", encoding="utf-8")
    assert array(one(csv_file)).tolist() == [[1]]


def test_sniff_leaves_other_files_alone(tmp_path):
    (tmp_path / "log.json").write_text('{"version": 2}')
    (tmp_path / "notes.txt").write_text("question,score\n")
    assert not any(adapter.sniff(tmp_path / name) for name in ("log.json", "notes.txt", "."))


# which column is what
@pytest.mark.parametrize("name", ["item_id", "example_id", "sample_id", "Question", "question id", "qid", "id"])
@pytest.mark.parametrize("score", ["score", "correct", "acc", "value", "Pass"])
def test_usual_names(csv_file, name, score):
    run = one(table(csv_file, (name, score), ("a", 1), ("b", 0)))
    assert array(run).tolist() == [[1], [0]]
    if name != "question":
        assert f"question: {name}" in noted(run)[0]


def test_models_tasks_metrics_and_repeats(csv_file):
    header = ("model_name", "benchmark", "metric", "example_id", "epoch", "value", "comment")
    rows = [
        (model, task, metric, q, epoch, i % 2, "x")
        for i, (model, task, metric, q, epoch) in enumerate(
            (model, task, metric, q, epoch)
            for model in ("m1", "m2") for task in ("t1", "t2") for metric in ("acc", "f1")
            for q in ("q1", "q2", "q3") for epoch in (2, 10, 1)
        )
    ]  # fmt: skip
    first, second = read(table(csv_file, header, *rows))
    assert (first.model, second.model) == ("m1", "m2")
    assert [(part.task, part.metric) for part in first.scores] == [
        ("t1", "acc"), ("t1", "f1"), ("t2", "acc"), ("t2", "f1"),
    ]  # fmt: skip
    assert first.scores[0].values.shape == (3, 3)
    assert first.scores[0].values[0].tolist() == [0, 0, 1]  # epochs 1, 2, 10 by number
    assert "not used: comment" in noted(first)[0]
    assert "not used" not in noted(read(csv_file, factors=["comment"])[0])[0]


def test_a_measure_that_was_asked_for_is_used_whatever_its_column_is_called(csv_file, capsys):
    rows = [(f"q{i}", i % 2, i / 100, i / 7, f"c{i % 3}") for i in range(20)]
    (run,) = read(table(csv_file, ("id", "score", "usd", "cost_usd", "comment"), *rows))
    assert run.measurable == ("usd", "cost_usd")
    assert noted(run)[0].endswith("; question: id; not used: usd, cost_usd, comment")
    main(["list", str(csv_file)])
    assert "measures  usd, cost_usd (with --measure)" in capsys.readouterr().out
    (asked,) = read(csv_file, measures=["usd"])
    assert noted(asked)[0].endswith("; question: id; not used: cost_usd, comment")
    (asked,) = read(csv_file, measures=["cost"])  # read from the column of another name
    assert noted(asked)[0].endswith("; question: id; not used: usd, comment")


def test_the_notes_say_what_was_taken_for_what(csv_file):
    rows = [("a", 1, 1), ("a", 2, 0), ("b", 1, 1), ("b", 2, 1)]
    run = one(table(csv_file, ("item_id", "trial", "acc"), *rows))
    assert noted(run) == ("t.csv: score: acc, 0/1, 75% ones; question: item_id; repeat: trial",)


def test_columns_say_the_rest(csv_file):
    path = table(csv_file, ("frage", "punkte", "lauf", "score"), ("a", 0.5, 1, 9), ("a", 0.25, 2, 9))
    run = one(path, columns={"question": "frage", "score": "punkte", "repeat": "lauf"})
    assert array(run).tolist() == [[0.5, 0.25]]
    with pytest.raises(InputError, match=r"no such column. There are frage, punkte, lauf, score"):
        read(path, columns={"question": "nope"})
    with pytest.raises(InputError, match="accepted names are question, score"):
        read(path, columns={"punkte": "score"})


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (("item_id", "example_id", "score"), r"'item_id' and 'example_id' could each be the question.*`columns="),
        (("item_id", "acc", "correct"), r"'acc' and 'correct' could each be the score"),
        (("answer", "score"), r"no column says which question.*`columns={'question'"),
        (("question", "result"), r"no column holds the scores. There are question, result.*`columns={'score'"),
        (("question", "question", "score"), r"two columns are called 'question'"),
    ],
)
def test_missing_and_ambiguous_columns(csv_file, header, message):
    def cell(name, i):
        return "x" if name == "result" else f"{name}{i}" if "id" in name else int(i % 2 == (name == "acc"))

    rows = [[cell(name, i) for name in header] for i in range(3)]
    with pytest.raises(InputError, match=message):
        read(table(csv_file, header, *rows))


def test_our_own_name_of_the_question_wins(csv_file):
    run = one(table(csv_file, ("question", "sample_id", "score"), ("a", "z", 1), ("b", "y", 0)))
    assert run.scores[0].questions.keys == ("a", "b")


def test_a_column_of_models_by_another_name_is_taken_or_pointed_at(csv_file):
    rows = [(q, llm, "x", 1) for q in ("a", "b") for llm in ("gpt", "claude")]
    assert [run.model for run in read(table(csv_file, ("question", "llm", "same", "score"), *rows))] == [
        "gpt", "claude",
    ]  # fmt: skip
    path = table(csv_file, ("question", "who", "same", "score"), *rows)
    with pytest.raises(InputError, match=r"differ in 'who' \('gpt', 'claude'\).*a model: `columns={'model': 'who'}`"):
        read(path)
    assert [run.model for run in read(path, columns={"model": "who"})] == ["gpt", "claude"]


def test_a_wide_table_is_read_once_it_is_said_what_its_columns_are(csv_file, shared_data):
    path = table(csv_file, ("Question", "m1", "m2"), (1, 0, 1), (2, 1, 1))
    with pytest.raises(InputError, match=r"wide table: say which.*'models': 'm1\+m2'.*'metrics': 'm1\+m2'"):
        read(path)
    models = read(path, columns={"models": "m1+m2"})
    assert [(run.model, array(run).ravel().tolist()) for run in models] == [("m1", [0, 1]), ("m2", [1, 1])]
    metrics = one(path, columns={"metrics": "m1+m2"})
    assert [(part.metric, part.values.ravel().tolist()) for part in metrics.scores] == [("m1", [0, 1]), ("m2", [1, 1])]
    with pytest.raises(InputError, match=r"wide table \(some rows look like repeats of others: 1, 1.1, 1.2\)"):
        read(shared_data / "tables" / "matharena_aime_II.csv")


# repeats, missing scores, counts
def test_rows_of_a_question_are_its_repeats_in_order(csv_file):
    run = one(table(csv_file, ("question", "score"), ("a", 1), ("b", 0), ("a", 0.5), ("a", 0)))
    np.testing.assert_array_equal(array(run), [[1, 0.5, 0], [0, np.nan, np.nan]])
    assert run.scores[0].n_missing == 0
    assert "rows of one question are its repeats" in noted(run)[0]


def test_a_seed_for_each_answer_makes_no_column_for_each_seed(csv_file):
    rows = [(f"q{i}", 1000 * i + k, k % 2) for i in range(50) for k in (2, 0, 1)]
    values = array(one(table(csv_file, ("question", "seed", "score"), *rows)))
    assert values.tolist() == [[0, 1, 0]] * 50


def test_missing_cells_count(csv_file):
    cells = ("", "nan", "NA", "null", "1")
    path = table(csv_file, ("question", "score"), *(("a", cell) for cell in cells), ("b", 1))
    with pytest.raises(InputError, match="no column is surely the score, but 'score' may be"):  # it is all but empty
        one(path)
    said = {"score": "score"}
    (part,) = one(path, columns=said).scores
    assert part.n_missing == 4
    assert np.isnan(part.values).sum() == 4 + 4
    (part,) = one(path, columns=said, missing="zero").scores
    assert part.n_missing == 4
    np.testing.assert_array_equal(part.values[0], [0, 0, 0, 0, 1])
    assert np.isnan(part.values[1]).sum() == 4  # those were never asked


def test_truth_values(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(
        "".join(
            json.dumps({"id": i, "correct": v}) + "\n" for i, v in enumerate([True, False, "true", "False", 1, None])
        )
    )
    np.testing.assert_array_equal(array(one(path))[:, 0], [1, 0, 1, 0, 1, np.nan])


def test_a_repeat_with_two_scores_names_both_lines(csv_file):
    rows = (("a", 1, 1), ("b", 1, 1), ("a", 1, 0))
    with pytest.raises(InputError, match=r"question 'a', repeat '1' has the score 1 on line 2 and 0 on line 4"):
        read(table(csv_file, ("question", "repeat", "score"), *rows))


def test_a_row_that_is_there_twice_counts_once(csv_file):
    run = one(table(csv_file, ("question", "repeat", "score"), ("a", 1, 1), ("a", 2, 0), ("a", 1, 1)))
    assert array(run).tolist() == [[1, 0]]
    assert any("1 row repeats" in note for note in noted(run))


def test_counts_of_eval_arena(csv_file):
    path = table(
        csv_file, ("benchmark_id", "model", "example_id", "pass1", "count"),
        ("he", "m", "q1", 0.3, 10), ("he", "m", "q2", 1, 10), ("he", "m", "q3", 1 / 3, 3),
    )  # fmt: skip
    run = one(path)
    assert (run.model, run.scores[0].task) == ("m", "he")
    values = array(run)
    assert values.shape == (3, 10)
    np.testing.assert_allclose(np.nanmean(values, axis=1), [0.3, 1, 1 / 3])
    assert (~np.isnan(values)).sum(axis=1).tolist() == [10, 10, 3]
    assert array(one(path)).tobytes() == values.tobytes()  # the drawn order is always the same
    assert "count as the number of answers" in noted(run)[0]


def test_rows_of_one_question_that_count_answers_add_up(csv_file):
    rows = ("a", "g", 0.5, 2), ("a", "g", 1, 3), ("b", "g", 0, 4), ("c", "h", 0.25, 4), ("c", "h", 1, 1)
    run = one(table(csv_file, ("example_id", "subject", "pass1", "count"), *rows), cluster="subject")
    values = array(run)
    assert np.nansum(values, axis=1).tolist() == [4, 0, 2]
    assert (~np.isnan(values)).sum(axis=1).tolist() == [5, 4, 5]
    assert run.scores[0].clusters == ("g", "g", "h")
    single = array(one(table(csv_file, ("example_id", "pass1", "count"), ("a", 1, 1), ("b", 0, 1), ("a", 0, 1))))
    np.testing.assert_array_equal(single, [[1, 0], [0, np.nan]])


def test_counts_hold_no_drift_between_repeats(csv_file):
    """Sorted right answers would look like a run component that moves all questions together."""
    path = table(csv_file, ("example_id", "pass1", "count"), *((f"q{i}", 0.5, 4) for i in range(400)))
    means = array(one(path)).mean(axis=0)
    assert means.max() - means.min() < 0.2


@pytest.mark.parametrize(
    ("pass1", "count", "message"),
    [
        (0.35, 10, "no whole number"),
        (1.2, 10, "share in"),
        (0.5, 0, "share in"),
        (0.5, 2.5, "share in"),
        (0.5, "", "share"),
    ],
)
def test_counts_that_cannot_be(csv_file, pass1, count, message):
    with pytest.raises(InputError, match=rf"t\.csv, line 2: .*{message}"):
        read(table(csv_file, ("example_id", "pass1", "count"), ("a", pass1, count)))


# clusters and groups
def test_clusters(csv_file):
    header = ("question", "passage", "cluster", "score")
    path = table(csv_file, header, ("a", "p1", "c1", 1), ("b", "p1", "c2", 0), ("c", "p2", "c2", 0))
    carried = one(path).scores[0]
    assert (carried.clusters, carried.cluster_spec) == (("c1", "c2", "c2"), "cluster")
    chosen = one(path, cluster="passage").scores[0]
    assert (chosen.clusters, chosen.cluster_spec) == (("p1", "p1", "p2"), "passage")
    assert one(path, cluster="none").scores[0].clusters is None
    assert one(path, cluster="{{passage}}-{{cluster}}").scores[0].clusters[0] == "p1-c1"
    assert one(path, columns={"cluster": "passage"}).scores[0].clusters == ("p1", "p1", "p2")
    with pytest.raises(
        InputError, match=r"line 2: cluster column 'story'.*There are cluster, passage, question, score"
    ):
        read(path, cluster="story")
    with pytest.raises(InputError, match=r"`cluster='auto'` knows the tasks of harnesses"):
        read(path, cluster="auto")


@pytest.mark.parametrize("last", ["c3", ""])
def test_a_task_that_the_clusters_do_not_name_keeps_its_own(tmp_path, last):
    rows = [(task, i, i % 2, f"c{i // 3}", f"t{i % 4}") for task in "ab" for i in range(12)]
    rows[-1] = (*rows[-1][:3], last, "t3")
    path = tmp_path / "run.csv"
    path.write_text("task,question,score,cluster,topic\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    wanted = None if last == "" else "cluster"  # as without the option: some questions have none

    def spec(task, **choices):
        (row,) = [row for row in hn.analyze(path, **choices).estimates if row.task == task]
        return row.cluster

    assert (spec("b"), spec("b", cluster="a=topic"), spec("a", cluster="a=topic")) == (wanted, wanted, "topic")
    assert spec("b", cluster="a=topic,b=none") is None


def test_clusters_are_only_taken_from_columns_of_that_name(csv_file):
    path = table(csv_file, ("question", "passage", "group", "template", "score"), ("a", "p", "g", "t", 1))
    assert one(path).scores[0].clusters is None


def test_a_question_in_two_clusters_or_in_none_of_a_named_column(csv_file):
    header = ("question", "cluster", "score")
    with pytest.raises(InputError, match=r"'a' is in cluster 'c' on line 2 and in 'd' on line 3"):
        read(table(csv_file, header, ("a", "c", 1), ("a", "d", 0)))
    some = table(csv_file, header, ("a", "c", 1), ("b", "", 0))
    with pytest.raises(InputError, match=r"line 3: no 'cluster', the cluster that you named"):
        read(some, columns={"cluster": "cluster"})
    with pytest.raises(InputError, match=r"line 3: cluster column 'cluster' is not there or empty"):
        read(some, cluster="cluster")


def test_named_groups(csv_file):
    rows = [(task, "q", 1) for task in ("mgsm_de", "mgsm_fr", "other")]
    (run,) = hn.read(table(csv_file, ("task", "question", "score"), *rows), groups={"mgsm": "mgsm_*"})
    assert [(group.name, group.tasks) for group in run.groups] == [("mgsm", ("mgsm_de", "mgsm_fr"))]


# bad input
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "", "the file is empty"),
        ("t.csv", "\nquestion,score\na,1\n", "the first line is empty: a table begins with the names of its columns"),
        ("t.csv", "question,score\n", "the table has no rows"),
        ("t.csv", "question,score\na,1\nb\n", r"t\.csv, line 3: 1 cells, but the header has 2 columns"),
        ("t.csv", "question,score\na,good\n", r"line 2: score 'good' is not a finite number"),
        ("t.csv", "question,score\na,inf\n", r"line 2: score 'inf' is not a finite number"),
        ("t.csv", 'question,score\n"a,1\n', r"not CSV that can be read"),
        ("t.csv", "question,score\n,1\n", r"line 2: no 'question'"),
        ("t.csv", "question,repeat,score\na,,1\na,1,0\na,2,0\n", r"line 2: no 'repeat'"),
        ("t.jsonl", '{"question": 1, "score": 1}\n{"question": 2, "sco', r"t\.jsonl, line 2: not JSON"),
        ("t.jsonl", "[1, 2]\n", r"line 1: not an object with columns, but list"),
        ("t.jsonl", '{"question": 1, "score": [[1]]}\n', r"line 1: score \[\[1\]\] is not a finite number"),
        (
            "t.jsonl",
            '{"question": 1, "score": 1' + "0" * 400 + "}\n",
            r"line 1: score 1000.* is beyond 1e70, and counts",
        ),
        ("t.csv", "question,score\na,-1e300\n", r"line 2: score '-1e300' is beyond 1e70, and counts as infinite"),
        ("t.jsonl", "[" * 100_000 + "\n", r"line 1: not JSON"),
        ("t.jsonl", "\n\n", "the table has no rows"),
        ("t.json", '[{"question": 1},\n oops]', r"t\.json, line 2: not JSON"),
        ("t.json", '{"question": 1}', "must be a list"),
        ("t.json", "[1]", r"entry 1: not an object"),
        ("t.parquet", "PAR1 no", "not a Parquet file"),
    ],
)
def test_bad_input_says_where(tmp_path, name, text, message):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read(path)


def test_bytes_that_are_not_text(csv_file):
    csv_file.write_bytes(b"question,score\n\xff\xfe,1\n")
    with pytest.raises(InputError, match="not UTF-8"):
        read(csv_file)


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"pip install 'harness-noise\[parquet\]'"):
        read(tmp_path / "t.parquet")


def test_there_is_nothing_to_export_into(csv_file, tmp_path):
    with pytest.raises(InputError, match="no place for error bars"):
        adapter.write(csv_file, tmp_path, lambda run: analyze_run(run, Settings()), ReadOptions())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path, data):
    for suffix in ("csv", "jsonl", "json"):
        path = tmp_path / f"x.{suffix}"
        path.write_bytes(b"question,score\n" + data if suffix == "csv" else data)
        try:
            said = [note for run in read(path) for note in noted(run)]
        except InputError as error:
            said = [str(error)]
        assert any(path.name in text for text in said)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=5),
        st.lists(st.one_of(st.none(), st.floats(-10, 10)), min_size=1, max_size=4),
        min_size=1,
        max_size=8,
    )
)
def test_what_is_written_is_read(tmp_path, questions):
    path = tmp_path / "t.jsonl"
    rows = [{"question": key, "repeat": j, "score": v} for key, vs in questions.items() for j, v in enumerate(vs)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (part,) = one(path, columns={"score": "score", "repeat": "repeat"}).scores
    assert part.questions.keys == tuple(questions)
    assert part.n_missing == sum(value is None for values in questions.values() for value in values)
    for row, values in zip(part.values, questions.values(), strict=True):
        np.testing.assert_array_equal(row[: len(values)], [np.nan if v is None else v for v in values])
        assert np.isnan(row[len(values) :]).all()


# the figures of statistics.md, §8
def test_gpqa_figures(shared_data):
    a, b = read(shared_data / "tables" / "gpqa_diamond_scores.csv")
    (one_a, one_b) = (analyze_run(run, Settings()).estimates[0] for run in (a, b))
    assert (one_a.n_questions, one_a.repeats_min, one_a.repeats_max) == (198, 5, 5)
    near = {"abs": 5e-7}
    assert one_a.mean == pytest.approx(0.675758, **near)
    assert one_b.mean == pytest.approx(0.617172, **near)
    assert one_a.se == pytest.approx(0.027596, **near)
    assert one_b.se == pytest.approx(0.029620, **near)
    assert one_a.se_total == pytest.approx(0.033324, **near)
    assert one_a.se_data == pytest.approx(0.025967, **near)
    assert one_a.se_prediction == pytest.approx(0.020885, **near)
    (d,) = compare_runs([(a, b)], Settings()).comparisons
    assert d.diff == pytest.approx(0.058586, **near)
    assert d.se == pytest.approx(0.027788, **near)
    assert d.p_value == pytest.approx(0.03627, abs=5e-6)
    assert d.df == pytest.approx(197)
    assert (d.ci_low, d.ci_high) == (pytest.approx(0.00378, abs=5e-6), pytest.approx(0.11339, abs=5e-6))
    assert d.se_total == pytest.approx(0.037967, **near)
    assert d.se_data == pytest.approx(0.024594, **near)
    assert d.se_prediction == pytest.approx(0.028925, **near)
    assert d.correlation == pytest.approx(0.53014, abs=5e-6)
    assert d.se_unpaired == pytest.approx(0.040483, **near)


def test_cruxeval_figures(shared_data, tmp_path):
    raw = json.loads((shared_data / "tables" / "cruxeval_output_codellama-7b_T0.2.json").read_text())
    rows = [(key, graded) for key, answers in raw["raw_scored_generations"].items() for graded in answers]
    (item,) = analyze_run(one(table(tmp_path / "crux.csv", ("id", "pass"), *rows)), Settings()).estimates
    near = {"abs": 5e-7}
    assert (item.n_questions, item.repeats_max) == (800, 10)
    assert item.mean == pytest.approx(0.342125, **near)
    assert item.se == pytest.approx(0.015780, **near)
    assert item.se_total == pytest.approx(0.016783, **near)
    assert item.se_data == pytest.approx(0.015665, **near)
    assert item.se_prediction == pytest.approx(0.006022, **near)
    counts = [
        (key, sum(answers) / len(answers), len(answers)) for key, answers in raw["raw_scored_generations"].items()
    ]
    arena = table(tmp_path / "arena.csv", ("example_id", "pass1", "count"), *counts)
    (same,) = analyze_run(one(arena), Settings()).estimates
    assert same.mean == pytest.approx(item.mean)
    assert same.se == pytest.approx(item.se)
    assert same.se_prediction == pytest.approx(item.se_prediction)


def test_matharena_figures(shared_data, tmp_path):
    with (shared_data / "tables" / "matharena_aime_II.csv").open(newline="") as file:
        wide = list(csv.DictReader(file))
    rows = [(row["Question"].split(".")[0], model, row[model]) for row in wide for model in row if model != "Question"]
    runs = {run.model: run for run in read(table(tmp_path / "long.csv", ("question", "model", "score"), *rows))}
    assert len(runs) == 19
    (d,) = compare_runs([(runs["o3-mini (high)"], runs["o1 (medium)"])], Settings()).comparisons
    near = {"abs": 5e-7}
    assert (d.n_questions, d.repeats_a) == (15, 4)
    assert d.diff == pytest.approx(0.133333, **near)
    assert d.se == pytest.approx(0.072648, **near)
    assert d.p_value == pytest.approx(0.08779, abs=5e-6)
    assert d.se_total == pytest.approx(0.116667, **near)
    assert d.se_data == pytest.approx(0.05, **near)
    assert d.se_prediction == pytest.approx(0.105409, **near)


@pytest.mark.parametrize("column", ["model", "task"])
def test_a_row_without_its_model_is_refused(tmp_path: Path, column: str) -> None:
    path = table(tmp_path / "t.csv", ("question", "score", column), ("a", 1, "M"), ("b", 0, ""))
    with pytest.raises(hn.InputError, match=f"line 3: no '{column}'"):
        hn.read(path)


@pytest.mark.parametrize(
    ("column", "label", "asked"),
    [
        ("prompt", lambda q, j: f"p{j}", True),
        ("seed", lambda q, j: j, True),
        ("judge_name", lambda q, j: f"m{j}", True),
        ("seed", lambda q, j: 100 * q + j, False),  # a seed of its own for each answer
        ("epoch", lambda q, j: j, False),
    ],
)
def test_repeats_that_are_prompts_or_seeds_are_asked_for_as_runs(tmp_path, column, label, asked):
    x = np.random.default_rng(0).integers(0, 2, (12, 3))
    rows = [(q, label(q, j), x[q, j]) for q in range(12) for j in range(3)]
    paths = [table(tmp_path / name, ("question", column, "score"), *rows) for name in ("a.csv", "b.csv")]
    given = {"columns": {"repeat": column}}
    for found in (hn.analyze(paths[0], **given), hn.compare(*paths, **given)):
        said = [note for note in noted(found) if "`repeats_are='runs'`" in note]
        assert len(said) == asked
        assert all(f"the column {column!r} tells the repeats apart" in note for note in said)
    assert not any("repeats_are" in note for note in noted(hn.analyze(paths[0], repeats_are="runs", **given)))

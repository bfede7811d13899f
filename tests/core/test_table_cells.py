"""Cells, rows and packings that tables have besides plain numbers in plain files."""

import csv
import gzip
import json

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.errors import InputError
from harness_noise_adapters.tables import adapter
from support.notes import noted
from support.tables import array, one, table


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("yes", "no"),
        ("PASS", "FAIL"),
        ("correct", "incorrect"),
        ("resolved", "unresolved"),
        ("C", "I"),
        ("True", "false"),
    ],
)
def test_the_words_of_a_verdict_are_scores(csv_file, right, wrong):
    path = table(csv_file, ("question", "verdict"), ("a", right), ("b", wrong), ("c", f" {right} "), ("d", ""))
    np.testing.assert_array_equal(array(one(path))[:, 0], [1, 0, 1, np.nan])
    assert "score: verdict, 0/1, 67% ones" in noted(one(path))[0]


def test_letters_of_inspect(csv_file):
    path = table(csv_file, ("question", "score"), *zip("abcd", "CPIN", strict=True))
    assert array(one(path)).ravel().tolist() == [1, 0.5, 0, 0]


def test_words_that_are_no_verdict_are_listed(csv_file):
    path = table(csv_file, ("question", "score"), *zip("abcde", ("yes", "maybe", "no", "unsure", "maybe"), strict=True))
    with pytest.raises(InputError, match=r"line 3: score 'maybe' is not .*pass/fail.*of these: 'maybe', 'unsure'$"):
        one(path)


def test_a_list_of_scores_is_that_of_several_answers(tmp_path, csv_file):
    path = tmp_path / "t.jsonl"
    path.write_text('{"id": 1, "score": [1, 0, null]}\n{"id": 2, "score": [true, false, true]}\n')
    run = one(path)
    np.testing.assert_array_equal(array(run), [[1, 0, np.nan], [1, 0, 1]])
    assert "the items of a list in score are the repeats" in noted(run)[0]
    quoted = one(table(csv_file, ("id", "score"), (1, "[1, 0, None]"), (2, "[True, False, True]")))
    np.testing.assert_array_equal(array(quoted), array(run))


ROWS = [{"id": f"q{i}", "outcome": {"right": i % 3 == 0}, "tests": [1]} for i in range(6)]


def test_rows_inside_an_object(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"model": "m", "results": ROWS, "config": {"seeds": [1, 2]}}))
    assert adapter.sniff(path)
    run = one(path)
    assert run.model == "m"
    assert "score: outcome.right, 0/1, 33% ones; question: id" in noted(run)[0]
    assert array(run).ravel().tolist() == [1, 0, 0, 1, 0, 0]
    assert run.scores[0].questions.log.read([2], "none")
    path.write_text(json.dumps({"a": {"rows": ROWS}, "b": ROWS}))
    with pytest.raises(InputError, match=r"the rows: a.rows, b. Say which with `columns={'rows': 'a.rows'}`"):
        one(path)
    assert len(array(one(path, columns={"rows": "a.rows", "score": "outcome.right"}))) == 6
    with pytest.raises(InputError, match=r"rows=c: no such field\. There are a, b"):
        one(path, columns={"rows": "c", "score": "outcome.right"})
    assert array(one(path, columns={"rows": "b"})).tolist() == array(run).tolist()


def test_lists_under_the_names_of_questions_are_rows(tmp_path):
    path = tmp_path / "t.json"
    rows = {f"HumanEval/{i}": [{"status": "pass"}, {"status": "fail"}] for i in range(9)}
    path.write_text(json.dumps({"eval": rows, "date": "today"}))
    assert adapter.sniff(path)
    with pytest.raises(InputError, match="no column is surely the score, but 'status' may be"):
        one(path)
    assert array(one(path, columns={"score": "status"})).tolist() == [[1, 0]] * 9
    assert array(one(path, columns={"rows": "eval.*", "score": "status"})).shape == (9, 2)
    path.write_text(json.dumps({"a": {f"q{i}": i for i in range(9)}, "b": 1}))
    with pytest.raises(InputError, match=r"No such list is in this file, which is an object with the keys .a., .b."):
        one(path)


def test_rows_that_were_not_there_are_not_made_up(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"rows": [], "settings": {"seeds": [1]}}))
    assert not adapter.sniff(path)


def test_random_ids_of_rows_are_not_the_questions(csv_file):
    rows = [(f"{i:08x}-0000-4000-8000-{k:012x}", f"task-{i}", k, (i + k) % 2) for i in range(9) for k in range(2)]
    run = one(table(csv_file, ("id", "taskId", "attempt", "isCorrect"), *rows))
    assert array(run).shape == (9, 2)
    assert "question: taskId" in noted(run)[0]


def test_a_template_names_the_question(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"set": s, "n": n, "score": 1}) + "\n" for s in "ab" for n in (1, 2)))
    run = one(path, columns={"question": "{{ set }}-{{ n }}"})
    assert run.scores[0].questions.keys == ("a-1", "a-2", "b-1", "b-2")


@pytest.mark.parametrize("name", ["m.csv.gz", "m.jsonl.gz", "m.json.gz"])
def test_a_packed_table(tmp_path, name):
    rows = [{"id": i, "score": i % 2} for i in range(4)]
    text = {
        "m.csv.gz": "id,score\n" + "".join(f"{row['id']},{row['score']}\n" for row in rows),
        "m.jsonl.gz": "".join(json.dumps(row) + "\n" for row in rows),
        "m.json.gz": json.dumps(rows),
    }[name]
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()))
    assert adapter.sniff(path)
    run = one(path)
    assert (run.model, array(run).ravel().tolist()) == ("m", [0, 1, 0, 1])
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(InputError, match="not a gzip file that can be read"):
        one(path)


def test_a_packed_table_that_is_cut_behind_its_first_rows(tmp_path):
    path = tmp_path / "m.jsonl.gz"
    rows = [{"id": f"{i} {hash((i,))}", "score": i % 2} for i in range(20_000)]
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())[:-5000])
    with pytest.raises(InputError, match="not a gzip file that can be read"):
        one(path)


def test_what_packs_too_well_is_no_table(tmp_path, monkeypatch):
    monkeypatch.setattr("harness_noise_adapters.tables.opening._SPARE_BYTES", 1 << 20)
    path = tmp_path / "m.csv.gz"
    path.write_bytes(gzip.compress(b"id,score\n" + b"1,1\n" * (1 << 21)))
    with pytest.raises(InputError, match="unpacks to more than 100 times its size"):
        one(path, columns={"question": "id"})


@pytest.mark.parametrize(
    ("header", "score", "question"),
    [
        (("instance_id", "train_trial_index", "stats"), "COLUMN", None),
        (("run_id", "event_id", "sample_id", "type"), "COLUMN", None),
        (("testIdx", "promptIdx", "latencyMs", "outcome"), None, "COLUMN"),
        (("row", "sentence", "acc"), None, "sentence"),
        (("", "n_tokens", "acc"), None, "COLUMN"),
    ],
)
def test_no_index_and_no_counter_is_proposed(csv_file, header, score, question):
    def cell(name, i):
        return {"sentence": f"words {i}", "type": "match", "stats": "[{}]", "outcome": i % 2, "acc": 1}.get(name, i)

    path = table(csv_file, header, *([cell(name, i) for name in header] for i in range(12)))
    wanted = {"score": score} if question is None else {"question": question}
    with pytest.raises(InputError) as error:
        one(path)
    assert f"`columns={wanted}`" in str(error.value)


@pytest.mark.parametrize("form", ["csv", "python", "jsonl", "json", "parquet"])
def test_a_path_leads_into_nested_columns_of_every_form(tmp_path, form):
    words = ["yes", "no", "FAILED", "passed"]
    rows = [{"ref": {"key": f"k{i}"}, "out": {"verdict": words[i % 4]}} for i in range(12)]
    path = tmp_path / f"t.{form.replace('python', 'csv')}"
    if form == "parquet":
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist(rows), path)
    elif form in ("csv", "python"):
        cell = json.dumps if form == "csv" else str
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([("ref", "out"), *((cell(row["ref"]), cell(row["out"])) for row in rows)])
    else:
        path.write_text(json.dumps(rows) if form == "json" else "".join(json.dumps(row) + "\n" for row in rows))
    (part,) = hn.read(path, columns={"question": "ref.key", "score": "out.verdict"})[0].scores
    assert part.questions.keys == tuple(f"k{i}" for i in range(12))
    assert part.values.ravel().tolist() == [1, 0, 0, 1] * 3

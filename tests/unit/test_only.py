"""Only some of the questions: chosen by their fields, on both sides, before anything is computed."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.data.clusters import Fields
from harness_noise.data.only import Condition, with_only


def table(path, model, seed):
    rng = np.random.default_rng(seed)
    lines = ["task,question,level,date,kind,mixed,model,score"]
    for task in ("one", "two"):
        for i in range(60):
            kind, mixed = ("code", "x")[i % 2], "a" if i % 7 == 0 else i
            day = f"2024-{1 + i % 12:02d}-01"
            lines.append(f"{task},{i},{i % 10},{day},{kind},{mixed},{model},{int(rng.random() < 0.6)}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def runs(tmp_path):
    return [table(tmp_path / f"{model}.csv", model, seed) for model, seed in (("a", 1), ("b", 2))]


@pytest.mark.parametrize(
    ("condition", "n"),
    [
        ("level >= 3", 42), ("level<3", 18), ("level = 10", 0), ("level=3.0", 6), ("level != 3", 54), ("level > 8", 6),
        ("date < 2024-03-01", 10), ("date >= 2024-12-01T00:00:00", 5), ("kind = code", 30), ("kind != code", 30),
        ("kind > d", 30),
    ],
)  # fmt: skip
def test_numbers_dates_and_texts(runs, condition, n):
    if n == 0:
        with pytest.raises(hn.InputError, match="none of its questions is left"):
            hn.analyze(runs[0], only=condition)
        return
    rows = hn.analyze(runs[0], only=condition).estimates
    assert [row.n_questions for row in rows] == [n, n, 2 * n]
    assert [row.n_questions for row in hn.compare(*runs, only=condition).comparisons] == [n, n, 2 * n]


def test_all_conditions_must_hold_and_the_numbers_are_those_of_the_slice(runs):
    found = hn.analyze(runs[0], only=["kind = code", "level >= 4", "level <= 4"])
    (row,) = [row for row in hn.analyze(runs[0], by="level").slices if (row.task, row.slice) == ("one", "4")]
    assert (found.estimates[0].mean, found.estimates[0].se) == (row.mean, row.se)
    assert found.to_dict()["only"] == ["kind = code", "level >= 4", "level <= 4"]
    assert any("the questions with kind = code and level >= 4" in note.as_text() for note in found.notes)
    assert "only" not in hn.analyze(runs[0]).to_dict()


def test_everything_that_reads_runs_obeys_it(runs, tmp_path):
    models = hn.arena(runs, only="level < 3").models
    assert {model.n_questions for model in models} == {18, 36}
    assert {row.n_questions for row in hn.gate(*runs, only="level < 3").rows} == {18}
    assert hn.read(runs[0], only="level < 3")[0].scores[0].values.shape == (18, 1)
    with pytest.raises(hn.InputError, match="export writes whole runs"):
        hn.export(runs[0], output=tmp_path / "out", only="level < 3")


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("level", "write FIELD OP VALUE"),
        ("level >=", "write FIELD OP VALUE"),
        ("size > 3", "no question has it. The fields are"),
        ("mixed > 3", "mixes numbers with other values"),
        ("level > hard", "'hard' is none of them"),
        ("date > soon", "has dates, and 'soon' is none of them"),
        ("level = 99", "none of its questions is left"),
    ],
)
def test_what_cannot_be_chosen_ends_with_2(runs, capsys, condition, message):
    assert main(["compare", *runs, "--only", condition]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("form", ["table", "markdown", "latex", "sentence", "csv", "json"])
def test_every_output_names_it(runs, capsys, form):
    for command in (["analyze", runs[0]], ["compare", *runs], ["arena", *runs]):
        assert main([*command, "--only", "level >= 3", "--only", "kind = code", "--format", form, "-q"]) == 0
        out = capsys.readouterr().out
        if form == "json":
            assert json.loads(out)["only"] == ["level >= 3", "kind = code"]
        elif form == "csv":
            assert {row["only"] for row in csv.DictReader(io.StringIO(out))} == {"level >= 3 and kind = code"}
        else:
            said = out.replace("\\", "").replace("&gt;", ">").replace("$", "").replace("{", "").replace("}", "")
            assert "Only the questions with level" in said


def test_its_note_calls_a_data_frame_as_the_tables_do():
    frames = [
        pd.DataFrame({"question": range(12), "score": [int(i % k == 0) for i in range(12)], "level": [0, 1, 2] * 4})
        for k in (2, 3)
    ]
    notes = [note.as_text() for note in hn.compare(*frames, only="level >= 1").notes if note.code == "some_questions"]
    assert notes == [f"{side}: the questions with level >= 1, 66.7% of its questions" for side in "AB"]


def test_a_question_without_a_value_is_never_chosen():
    values = [1.0, None, 3.0]
    assert Condition.parse("x != 1").met_by(values).tolist() == [False, False, True]
    assert Condition.parse("{{ a != b }} = true").field == "{{ a != b }}"


def test_the_part_of_a_drawing_is_counted_on_the_metric_that_has_most_of_its_questions():
    asked = hn.Questions(tuple("abcd"), fields=Fields({"level": [1.0, 2.0, 3.0, 4.0]}))
    fewer = hn.Questions(tuple("ab"), fields=Fields({"level": [1.0, 2.0]}))
    scores = tuple(
        hn.Scores("t", metric, "none", questions, np.ones((len(questions), 1)))
        for metric, questions in (("acc", asked), ("of some", fewer))
    )
    drawn = {"task": "t", "n_asked": 4, "n_total": 9, "order_seed": 1, "stopped_early": False}
    run = hn.Run(model="m", name="m", harness="array", scores=scores, drawn=(drawn,))
    for condition, n in (("level >= 2", 3), ("level >= 3", 2)):
        assert with_only(run, [condition]).drawn == ({**drawn, "n_only": n},)


def test_notes_are_of_the_tasks_asked_for_and_say_when_they_count_more(runs, tmp_path):
    head, *rows = (tmp_path / "a.csv").read_text().splitlines()
    lines = [f"{head},repeat", *(f"{row},1" for row in rows)]
    (tmp_path / "a.csv").write_text("\n".join([*lines, *lines[-3:]]) + "\n")  # of the task `two`

    def said(**options):
        return [note.as_text() for note in hn.analyze(runs[0], **options).notes if note.code == "said_twice"]

    assert said(tasks="one") == []
    assert said(tasks="two") == said() == ["two, score: 3 rows repeat another row and are left out"]
    assert said(only="kind = code") == [f"{said()[0]} (counted over all questions, without `only`)"]

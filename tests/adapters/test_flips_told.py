"""`--questions N`: whole questions, targets and both answers, as the logs have them."""

from __future__ import annotations

import csv
import io
import json
import pickle
import re
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from harness_noise.analysis.comparison import compare_runs
from harness_noise.cli import main
from harness_noise.data.scores import ReadOptions
from harness_noise.io.registry import read
from harness_noise.settings import Settings
from support.lm_eval_files import edit, rows_of, samples_file
from support.notes import noted
from support.tables import table

LONG = "How many of these 12 trees are left when 5 are felled, 3 are planted, and the wind takes 2 of the rest? " * 3


def flips(a: Path, b: Path, n: int = 5, **options: object) -> list:
    (one,), (other,) = (read(path, ReadOptions(**options)) for path in (a, b))
    return list(compare_runs([(one, other)], Settings(), n).questions)


@pytest.fixture
def changed(shared_data: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A real run, and a copy in which every answer is right."""
    source, copy = shared_data / "lm_eval" / "asdiv", tmp_path / "copy"
    shutil.copytree(source, copy)

    def improve(rows: list[dict]) -> list[dict]:
        for row in rows:
            row["acc"], row["resps"] = 1.0, [[[-0.5, True]]]
        return rows

    edit(samples_file(copy, "asdiv"), improve)
    return copy, source


def test_of_lm_eval(changed: tuple[Path, Path]) -> None:
    found = flips(*changed, metrics=("acc",))
    assert len(found) == sum(row["acc"] == 0 for row in rows_of(changed[1], "asdiv")) > 1
    logs = [{row["doc_hash"]: row for row in rows_of(folder, "asdiv")} for folder in changed]
    for flip in found:
        rows = [log[flip.question] for log in logs]
        assert flip.text.endswith(rows[0]["doc"]["question"])
        assert flip.target == rows[0]["target"]
        for row, answers, mean in zip(rows, (flip.answers_a, flip.answers_b), (flip.mean_a, flip.mean_b), strict=True):
            assert [json.loads(answer) for answer in answers] == row["resps"][0]
            assert row["acc"] == mean


def test_of_lm_eval_the_likeliest_choice_is_the_answer(tmp_path: Path) -> None:
    from harness_noise_adapters.lm_eval_harness.files.samples import _told

    row = {
        "doc": {"question": LONG, "choices": ["three", "eight", "none"]},
        "target": 1,
        "arguments": {f"gen_args_{i}": {"arg_0": "…", "arg_1": f" {text}"} for i, text in enumerate("abc")},
        "resps": [[[-3.0, False]], [[-1.0, False]], [["-7.5", "False"]]],
    }
    told = _told(row)
    assert (told.text, told.target, told.answers) == (LONG, "1", ("b",))
    assert _told({**row, "arguments": [["…", " a"], ["…", " b"], ["…", " c"]]}).answers == ("b",)
    assert _told({**row, "resps": [["x", "y"]]}).answers == ("x", "y")
    assert _told({"doc": "text"}).answers == ()


@pytest.mark.parametrize("form", [".eval", ".json"])
def test_of_inspect_they_are_what_inspect_reads(inspect_logs, tmp_path: Path, form: str) -> None:
    from inspect_ai.log import read_eval_log, write_eval_log

    paths = []
    for log in (inspect_logs.a, inspect_logs.b):
        paths.append(tmp_path / f"{log.stem}{form}")
        write_eval_log(read_eval_log(str(log)), str(paths[-1]))
    found = flips(*paths, n=4)
    assert len(found) == 4
    for flip in found:
        for path, answers in zip(paths, (flip.answers_a, flip.answers_b), strict=True):
            samples = defaultdict(dict)
            for sample in read_eval_log(str(path)).samples or ():
                samples[str(sample.id)][sample.epoch] = sample
            mine = [sample for _, sample in sorted(samples[flip.question].items())]
            assert answers == tuple(sample.output.completion for sample in mine)
            assert flip.text == mine[0].input
            assert flip.target == mine[0].target


def tables(tmp_path: Path) -> list[str]:
    rows = [(f"q{i}", f"{LONG} {i}", "seven") for i in range(6)]
    paths = []
    for name, right in (("new", 5), ("old", 2)):
        answered = [
            (*row, "it is seven" if i < right else "=HYPERLINK(1)", int(i < right)) for i, row in enumerate(rows)
        ]
        header = ("question_id", "question", "target", "response", "score")
        paths.append(str(table(tmp_path / f"{name}.csv", header, *answered)))
    return paths


def test_of_tables_where_they_have_such_columns(tmp_path: Path) -> None:
    found = flips(*map(Path, tables(tmp_path)), n=9)
    assert [flip.question for flip in found] == ["q2", "q3", "q4"]
    for flip in found:
        assert (flip.target, flip.answers_a, flip.answers_b) == ("seven", ("it is seven",), ("=HYPERLINK(1)",))
        assert " ".join((flip.text or "").split()).startswith(LONG.strip())
    bare = [
        table(tmp_path / f"bare-{s}.csv", ("question", "score"), *((f"q{i}", i % 2 ^ s) for i in range(4)))
        for s in (0, 1)
    ]
    assert [(flip.target, flip.answers_a, flip.answers_b) for flip in flips(*bare)] == [(None, (), ())] * 4


def test_every_form_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    paths = tables(tmp_path)

    def out(*more: str) -> str:
        assert main(["compare", *paths, "--questions", "2", "-q", *more]) == 0
        return capsys.readouterr().out

    for row in json.loads(out("--format", "json"))["questions"]:
        assert (row["target"], row["answers_a"], row["answers_b"]) == ("seven", ["it is seven"], ["=HYPERLINK(1)"])
    for row in csv.DictReader(io.StringIO(out("--format", "csv"))):
        assert json.loads(row["answers_b"]) == ["=HYPERLINK(1)"]
        assert row["question"] in ("q2", "q3")
    short, wide, marked = out(), out("--details"), out("--details", "--format", "markdown")
    assert "takes 2 of the rest" not in short
    for text in (wide, marked):
        plain = " ".join(re.sub(r"[\\]", "", text).split())
        assert plain.count("the wind takes 2 of the rest?") == 6
        assert "=HYPERLINK(1)" in plain
    assert max(map(len, wide.splitlines())) <= 80


def test_a_log_that_has_changed_costs_the_texts_only(changed: tuple[Path, Path]) -> None:
    (a,), (b,) = (read(path, ReadOptions(metrics=("acc",))) for path in changed)
    path = samples_file(changed[0], "asdiv")
    path.write_text(path.read_text() + "\n")
    result = compare_runs([(a, b)], Settings(), 3)
    assert len(result.questions) > 1
    assert all(flip.answers_a == () and flip.answers_b for flip in result.questions)
    assert any("are not shown" in note for note in noted(result))


def test_where_to_read_them_can_be_sent_to_a_worker(tmp_path: Path) -> None:
    (run,) = read(Path(tables(tmp_path)[0]), ReadOptions())
    log = pickle.loads(pickle.dumps(run)).scores[0].questions.log  # noqa: S301 - our own
    assert log.read([0], "none")[0].target == "seven"

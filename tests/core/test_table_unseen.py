"""Shapes of public tables that were refused or asked about without need, or of which a guess was taken for a score."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import InputError
from harness_noise_adapters.tables.evidence import AskError


def written(tmp_path: Path, rows: Any) -> Path:
    (path := tmp_path / "t.json").write_text(json.dumps(rows))
    return path


def read(tmp_path: Path, rows: Any, **options: Any) -> hn.Run:
    (run,) = hn.read(written(tmp_path, rows), **options)
    return run


def test_members_of_one_object_of_scores_are_metrics_side_by_side(tmp_path: Path) -> None:
    """`scores.correctness` among `scores.*` is one of them, and those that are no metric here tell of the answer."""
    rows = [
        {"question_id": f"q{i}", "model": "m",
         "scores": {"correctness": (i + j) % 3 / 2, "reasoning_quality": 0.1 * i, "overall_score": 0.05 * (i + j),
                    "tolerance": float(j)}}
        for i in range(8) for j in range(2)
    ]  # fmt: skip
    run = read(tmp_path, rows)
    assert {part.metric for part in run.scores} >= {"scores.correctness", "scores.overall_score"}
    assert run.scores[0].values.shape == (8, 2)


def test_scores_of_rouge_are_metrics_and_no_models(tmp_path: Path) -> None:
    kinds = ("precision", "recall", "fmeasure")
    rows = [
        {"id": i, **{f"rouge{n}_{kind}": 0.01 * (i + len(kind)) + ord(n) / 999 for n in "12L" for kind in kinds}}
        for i in range(9)
    ]
    assert len(read(tmp_path, rows).scores) == 9


def test_a_guess_of_risk_beside_the_label_is_no_score(tmp_path: Path) -> None:
    rows = [{"message_id": i, "label": ("spam", "ham")[i % 2], "risk_score": 0.1 * (i % 7)} for i in range(20)]
    with pytest.raises(InputError, match="no column holds the scores"):
        read(tmp_path, rows, columns={"question": "message_id"})


def test_a_score_known_by_its_ending_is_asked_about_beside_a_family_on_its_scale(tmp_path: Path) -> None:
    """What routes a question (`trust_score`) is no score where every system has a column of its own."""
    rows = [
        {"query": f"q{i}", "gold": "g", "trust_score": (i * 7 % 11) / 11,
         **{f"r1_{name}": ((i + k) * 5 % 13) / 13 for k, name in enumerate(("dense", "sparse", "both"))}}
        for i in range(20)
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"'trust_score' may be the score, but r1_dense, .*'models': 'r1_dense\+"):
        read(tmp_path, rows)


def test_how_an_answer_ended_is_no_condition(tmp_path: Path) -> None:
    """What follows from the score tells of the answer; what does not may be a condition, and is asked about."""
    rows = [
        {"problem": f"p{i}", "sample": j, "correct": (i + j) % 3 > 0, "category": "FULL" if (i + j) % 3 else "EMPTY"}
        for i in range(6)
        for j in range(4)
    ]
    run = read(tmp_path, rows)
    assert (run.scores[0].values.shape, np.mean(run.scores[0].values)) == ((6, 4), pytest.approx(2 / 3))
    rows = [{**row, "mode": "FULL" if row["correct"] else "EMPTY"} for row in rows]
    assert read(tmp_path, rows).scores[0].values.shape == (6, 4)
    rows = [{**row, "mode": "ab"[i % 2]} for i, row in enumerate(rows)]
    with pytest.raises(InputError, match="differ in 'mode'"):
        read(tmp_path, rows)


def test_values_with_their_standard_errors_are_means(tmp_path: Path) -> None:
    means = {f"task{i}": {"acc,none": 0.1 * i, "acc_stderr,none": 0.01, "alias": f"task{i}"} for i in range(6)}
    with pytest.raises(InputError, match="not single answers: it has a column 'acc_stderr,none'"):
        read(tmp_path, {"model": "m", "results": means})


@pytest.mark.parametrize("more", [{"macro_score": 0.5}, {"n_samples": 64}])
def test_metrics_by_name_with_their_means_are_no_questions(tmp_path: Path, more: dict[str, float]) -> None:
    """As in a report of EvalScope: is_correct, is_incorrect and is_not_attempted had the mean 1/3."""
    shares = {"is_correct": 0.7, "is_incorrect": 0.2, "is_not_attempted": 0.1}
    metrics = [{"name": name, "score": share, **more} for name, share in shares.items()]
    with pytest.raises(InputError, match="rows are means of many answers"):
        read(tmp_path, {"model_name": "m", "dataset_name": "d", "metrics": metrics})


@pytest.mark.parametrize("key", ["@key", "name"])
def test_the_history_of_a_training_is_no_table_of_answers(tmp_path: Path, key: str) -> None:
    """Of train_loss, val_accuracy, …, each with a list of numbers, the mean was .45 over seven questions."""
    parts = [f"{part}_{what}" for part in ("train", "val") for what in ("loss", "accuracy", "f1")]
    data = {name: [0.1 * i + 0.01 * len(name) for i in range(9)] for name in (*parts, "epochs")}
    rows = data if key == "@key" else [{"name": name, "scores": each} for name, each in data.items()]
    with pytest.raises(AskError, match="look like measures, but may be questions") as asked:
        read(tmp_path, rows)
    assert read(tmp_path, rows, columns=asked.value.choices[0].said).scores[0].values.shape == (7, 9)


def test_a_ranking_of_models_by_category_is_no_table_of_answers(tmp_path: Path) -> None:
    models = ("a", "b", "c", "d", "e")
    ranked = {
        f"area {i}": [{"model": models[(i + j) % 5], "score": 9 - 0.37 * j - 0.1 * i} for j in range(5)]
        for i in range(5)
    }
    with pytest.raises(AskError, match="perhaps they are ranked by their means") as asked:
        hn.read(written(tmp_path, ranked))
    assert len(hn.read(written(tmp_path, ranked), columns=asked.value.choices[0].said)) == 5
    by_model = {key: sorted(rows, key=lambda row: row["model"]) for key, rows in ranked.items()}
    assert len(hn.read(written(tmp_path, by_model))) == 5


def test_switches_inside_a_file_of_settings_are_no_questions(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read(tmp_path, {"name": "a", "config": {"allow-plugins": True, "sort-packages": True}})
    assert len(read(tmp_path, {"eval": {f"q{i}": i % 2 == 0 for i in range(5)}}).scores[0].questions) == 5


def test_of_two_that_may_be_the_score_both_are_offered_as_metrics(tmp_path: Path) -> None:
    rows = [{"item": i, "model": "m", "correct": i % 2, "style_correct": i % 3 > 0} for i in range(9)]
    with pytest.raises(InputError, match=r"'metrics': 'correct\+style_correct'}` \(each a metric\)"):
        read(tmp_path, rows)
    run = read(tmp_path, rows, columns={"metrics": "correct+style_correct"})
    assert [part.metric for part in run.scores] == ["correct", "style_correct"]


def test_exact_match_beside_other_metrics_is_one_of_them(tmp_path: Path) -> None:
    rows = [{"id": i, "exact_match": i % 2, "f1_score": 0.1 * i, "bleu": 0.05 * i} for i in range(9)]
    assert [part.metric for part in read(tmp_path, rows).scores] == ["exact_match", "f1_score", "bleu"]


def test_the_value_of_a_confidence_is_no_metric(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"q{i}",
            "faithfulness": 1 + i % 5,
            "answer_relevance": 1 + i % 4,
            "confidence": {"value": 0.1 * (i % 7)},
        }
        for i in range(12)
    ]
    assert {part.metric for part in read(tmp_path, rows).scores} == {"faithfulness", "answer_relevance"}


@pytest.mark.parametrize(
    ("first", "sizes"),
    [("baseline", (10, 10, 10)), ("baseline", (11, 30, 6)), ("none", (10, 30, 6)), (None, (9, 9, 8))],
)
def test_conditions_in_the_words_of_the_questions_are_not_pooled_in_silence(
    tmp_path: Path, first: str | None, sizes: tuple[int, ...]
) -> None:
    """Every row is another prompt under one scaffold: one mean of all is asked about, however many rows each has."""
    rows = [
        {"scaffold": s, "prompt": f"{s} {i}", "response": f"r{i}", "correct": (i + len(str(s))) % 2 == 0}
        for s, n in zip((first, "monitor", "constraint"), sizes, strict=True)
        for i in range(n)
    ]
    with pytest.raises(AskError, match=r"'scaffold' .* splits the rows.*'question'") as asked:
        read(tmp_path, rows)
    said = asked.value.choices[0].said
    assert [len(part.questions) for part in read(tmp_path, rows, columns=said).scores] == [*sizes]
    assert read(tmp_path, rows, columns={"question": "prompt"}).scores[0].values.shape == (sum(sizes), 1)
    of_models = [row | {"model": row["scaffold"] or "plain"} for row in rows]
    assert len(hn.read(written(tmp_path, of_models))) == 3


def test_a_way_that_is_offered_reads_rows_without_the_condition(tmp_path: Path) -> None:
    rows = [
        {"question": f"q{i}", "mode": mode, "score": (i * 7 + j) % 3 % 2}
        for i in range(20)
        for j, mode in enumerate(("cot", None, "", 0))
    ]
    rows[1].pop("mode")
    with pytest.raises(AskError, match="differ in 'mode'") as asked:
        read(tmp_path, rows)
    ways = [literal_eval(way) for way in re.findall(r"`columns=({.*?})`", str(asked.value))]
    assert [*map(list, ways)] == [["model"], ["task"], ["question"], ["repeat"]]
    for way in ways:
        runs = hn.read(written(tmp_path, rows), columns=way)
        assert sum(len(part.questions) for run in runs for part in run.scores) == (20 if "repeat" in way else 60)


def test_a_condition_that_is_off_for_some_rows_is_no_remark_of_a_judge(tmp_path: Path) -> None:
    rows = [
        {"question": f"q{i}", "reasoning": level, "score": (i * 7 + j) % 3 % 2}
        for i in range(20)
        for j, level in enumerate(("none", "low", "high"))
    ]
    with pytest.raises(AskError, match="differ in 'reasoning'"):
        read(tmp_path, rows)


@pytest.mark.parametrize("indent", [None, 4])
def test_a_large_object_by_question_is_known_by_its_start(tmp_path: Path, indent: int | None) -> None:
    """Wherever the start of the file ends: in a list, in a text with brackets, or in an object inside another."""
    pad = 'so {"it": [is], \\ ' * 60
    data = {f"q{i}": {"text": pad, "at": {"a": [1, 2], "b": pad}, "correct": i % 2 == 0} for i in range(400)}
    (path := tmp_path / "t.json").write_text(json.dumps(data, indent=indent))
    assert path.stat().st_size > 1 << 19
    (run,) = hn.read(path)
    assert run.scores[0].values.shape == (400, 1)


@pytest.mark.parametrize(
    ("data", "shape"),
    [
        ({f"q{i}": "text" for i in range(800)}, "an object with 800 keys, each a text"),
        ({"a": 1, "b": "x"}, "an object with the keys 'a', 'b'"),
        ({}, "an object with nothing in it"),
        ({f"q{i}": [[True] * 3] * 10 for i in range(9)}, "an object with 9 keys, each a list of 10 lists"),
    ],
)
def test_of_what_nothing_reads_the_shape_is_said_and_what_would_be_read(tmp_path: Path, data: Any, shape: str) -> None:
    (path := tmp_path / "t.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match=r"objects, one for each answer, or an object with a key for each") as raised:
        hn.read(path)
    assert f"; it is {shape}. Expected" in str(raised.value)


def test_lists_of_texts_by_question_are_answers_and_no_scores(tmp_path: Path) -> None:
    data = {f"HumanEval/{i}": [f"    return sum(values[:{i}]) / {j + 1}" for j in range(5)] for i in range(12)}
    with pytest.raises(InputError, match=r"no scores: \* is an object with 12 keys, each a list of 5 texts"):
        read(tmp_path, data)


@pytest.mark.parametrize("name", ["code", "debug", "few_shot", "game", "returncode", "timed_out", "is_control"])
def test_what_is_no_score_is_never_proposed(tmp_path: Path, name: str) -> None:
    rows = [{"id": i, "model": "m", "output": f"o{i}", name: i % 2 == 0} for i in range(9)]
    with pytest.raises(InputError) as raised:
        read(tmp_path, rows)
    assert f"score': '{name}'" not in str(raised.value)


def test_a_sum_of_rewards_is_never_proposed(tmp_path: Path) -> None:
    rows = [{"id": i, "model": "m", "episode": {"sum_rewards": float(i % 2)}} for i in range(9)]
    with pytest.raises(InputError) as raised:
        read(tmp_path, rows)
    assert "'episode.sum_rewards'}" not in str(raised.value)


@pytest.mark.parametrize("wrong", ["none", "", "LOC: elsewhere"])
@pytest.mark.parametrize("every", [1, 3])
def test_zeros_throughout_beside_right_answers_are_no_scores(tmp_path: Path, every: int, wrong: str) -> None:
    """Scores that were never filled in: an answer that is not there is not the right one."""
    rows = [
        {"question": f"sentence {i}", "gold": f"LOC: {i}", "prediction": wrong if i % every else f"LOC: {i}", "f1": 0}
        for i in range(30)
    ]
    share = round(100 / every)
    with pytest.raises(InputError, match=f"'f1' is 0 in every row, though the answer is the right one in {share}%"):
        read(tmp_path, rows)
    right = [row | {"f1": 1, "prediction": row["gold"]} for row in rows]
    assert read(tmp_path, right).scores[0].values.mean() == 1


def rated(i: int, failed: bool, **fields: Any) -> dict[str, Any]:
    rates = {
        name: 0.0 if failed else 1.0 + (i + j) % 4 for j, name in enumerate(("medical_accuracy", "overall_quality"))
    }
    why = {"error": "no answer"} if failed else {}
    return {"question_id": f"q{i}", **rates, "success": not failed, **fields, **why}


def test_success_that_says_that_the_judge_ran_is_asked_about(tmp_path: Path) -> None:
    """Of 1,075 ratings 8 failed, and 99.26% were taken for the score."""
    with pytest.raises(AskError, match="'success' is false just where there is an 'error'") as asked:
        read(tmp_path, [rated(i, i % 9 == 4) for i in range(40)])
    assert "'medical_accuracy+overall_quality'" in str(asked.value)
    run = read(tmp_path, [rated(i, i % 9 == 4, medical_accuracy=2.0, overall_quality=3.0) for i in range(40)])
    assert run.scores[0].values.mean() == 0.9  # what does not fail with it is no rating


def test_a_score_of_what_another_id_names_is_asked_about(tmp_path: Path) -> None:
    """The judge saw an example, `cal_id`, with its score."""
    rows: list[dict[str, Any]] = [
        {"id": f"q{i}", "full_scores": [[i % 5, 2], [1, 2]], "cal_id": f"q{i * 7 % 40}", "cal_score": 1 + i % 7}
        for i in range(40)
    ]
    with pytest.raises(AskError, match="'cal_score' may be the score of what 'cal_id' names"):
        read(tmp_path, rows)
    own = [{"id": row["id"], "judge_id": "j", "judge_score": row["cal_score"]} for row in rows]
    assert read(tmp_path, own).scores[0].values.shape == (40, 1)


def test_columns_that_are_called_score_of_something_are_asked_about_before_others(tmp_path: Path) -> None:
    rows = [
        {"prompt_id": f"p{i}", "score_cultural": 1 + i % 5, "score_feasibility": 1 + i % 4, "cosine": i / 40,
         "coverage": 1 - i / 40, "cultural_parse_error": i % 2}
        for i in range(40)
    ]  # fmt: skip
    with pytest.raises(AskError, match=r"2 columns hold scores \(score_cultural, score_feasibility\)"):
        read(tmp_path, rows)
    rows = [{name: value for name, value in row.items() if not name.startswith("score_")} for row in rows]
    with pytest.raises(AskError, match=r"2 columns hold scores \(cosine, coverage\)"):
        read(tmp_path, rows)

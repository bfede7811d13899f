"""Live lm-eval runs whose metrics or filters raise on further answers: only those answers are missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.notes import noted

pytest.importorskip("lm_eval")

from harness_noise_adapters.lm_eval_harness import noise
from support import lm_eval_models as toys
from support.lm_eval_live import estimate, native_part, scores

TASK = """
task: odd
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_text: "Q: {{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n"], do_sample: true, temperature: 0.7}}
process_results: !function raising.process
filter_list:
  - {{name: all, filter: [{{function: custom, filter_fn: !function raising.keep}}, {{function: take_first}}]}}
metric_list:
  - {{metric: right, aggregation: mean, higher_is_better: true}}
"""
RAISING = """
calls = []
def keep(resps, docs):
    return [[1 / 0 if "unfiltered" in answer else answer for answer in answers] for answers in resps]
def process(doc, results):
    calls.append(doc)
    return {"right": float(results[0].strip() == doc["answer"] if "boom" not in results[0] else 1 / 0)}
"""


class Scripted(toys.HashModel):
    """Says something else, by its question and how often that was asked before."""

    def __init__(self, said: Callable[[str, int], str | None]) -> None:
        super().__init__()
        self.said = said

    def answer(self, prompt: str) -> str:
        own = super().answer(prompt)
        return self.said(prompt, self.asked[prompt] - 1) or own


def written(results: dict[str, Any]) -> str:
    """What lm-eval itself said, as text: lm-eval 0.4.10 loads a function of a task anew for each run."""
    return json.dumps(native_part(results), default=lambda function: function.__name__, sort_keys=True)


def write(folder: Path, n: int = 12) -> None:
    data = folder / "odd.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in toys.docs(n)))
    (folder / "odd.yaml").write_text(TASK.format(data=data))
    (folder / "raising.py").write_text(RAISING)


@pytest.mark.parametrize("word", ["boom", "unfiltered"])
def test_an_answer_that_raises_alone_is_missing(tmp_path: Path, word: str) -> None:
    write(tmp_path)
    model = Scripted(
        lambda prompt, n: word if (n == 2 and "Item 3 " in prompt) or (n and "Item 5 " in prompt) else None
    )
    plain = toys.simple_evaluate(tmp_path, ["odd"], Scripted(model.said))
    with noise(repeats=3) as session:
        noisy = toys.simple_evaluate(tmp_path, ["odd"], model)
    assert session.problems == []
    assert written(noisy) == written(plain)
    rows = noisy["samples"]["odd"]
    answers = [row["resps"][0] for row in rows]
    assert [answer.count(word) for answer in answers] == [0, 0, 0, 1, 0, 2, *[0] * 6]  # they are paid for, and stay
    expected = np.array(
        [[np.nan if a == word else a.strip() == row["doc"]["answer"] for a in row["resps"][0]] for row in rows]
    )
    found = scores(session, "odd", "right", "all")
    np.testing.assert_array_equal(found.values, expected)
    assert found.n_missing == 3
    row = estimate(session, "odd", "right", "all")
    assert (row.repeats_max, row.n_missing) == (3, 3)
    assert "missing_repeats" in row.diagnostics
    (note,) = [note for note in noted(session.analysis) if "could not be scored" in note]
    assert "odd, all: 3 of 36 answers could not be scored (ZeroDivisionError" in note
    assert [row["scores_per_repeat"]["right"].count(None) for row in rows] == [0, 0, 0, 1, 0, 2, *[0] * 6]


@pytest.mark.parametrize("word", ["boom", "unfiltered"])
def test_all_further_answers_that_raise_leave_the_native_value(tmp_path: Path, word: str) -> None:
    write(tmp_path)
    with noise(repeats=3) as session:
        noisy = toys.simple_evaluate(tmp_path, ["odd"], Scripted(lambda prompt, n: word if n else None))
    row = estimate(session, "odd", "right", "all")
    assert (row.mean, row.repeats_max) == (noisy["results"]["odd"]["right,all"], 1)
    assert row.se_prediction is None
    assert any("cannot be scored answer by answer (ZeroDivisionError" in note for note in noted(session.analysis))


def test_a_metric_that_raises_on_what_it_scored_keeps_the_native_score(tmp_path: Path) -> None:
    write(tmp_path)
    raising = RAISING.replace("calls.append(doc)", "calls.append(doc); 1 / (len(calls) - 16)")  # a judge that blinks
    (tmp_path / "raising.py").write_text(raising)
    with noise(repeats=3) as session:
        noisy = toys.simple_evaluate(tmp_path, ["odd"])
    found = scores(session, "odd", "right", "all")
    np.testing.assert_array_equal(found.values[:, 0], [row["right"] for row in noisy["samples"]["odd"]])
    assert found.n_missing == 0
    assert "mean_mismatch" not in estimate(session, "odd", "right", "all").diagnostics


def test_scoring_ends_where_nothing_can_be_scored(tmp_path: Path) -> None:
    write(tmp_path, 60)
    counting = "calls.append(doc)\n    with open(__file__ + '.calls', 'a') as file:\n        file.write('x')"
    raising = RAISING.replace("calls.append(doc)", counting)
    raising = raising.replace('"boom" not in results[0]', "len(calls) <= 60")
    (tmp_path / "raising.py").write_text(raising)
    with noise(repeats=3) as session:
        toys.simple_evaluate(tmp_path, ["odd"])
    assert len((tmp_path / "raising.py.calls").read_text()) == 60 + 100
    assert any("cannot be scored answer by answer" in note for note in noted(session.analysis))


def test_an_answer_of_several_requests_names_what_its_filter_raised() -> None:
    from lm_eval.api.instance import Instance

    from harness_noise_adapters.lm_eval_harness.scoring import rescore

    def apply(instances: list[Instance]) -> None:
        if any("unfiltered" in instance.resps for instance in instances):
            raise ZeroDivisionError
        for instance in instances:
            instance.filtered_resps["all"] = instance.resps[0]

    answers = [
        [Instance("generate_until", {}, ("?", {}), i, resps=[word]) for i in range(2)] for word in ("a", "unfiltered")
    ]
    rescore._filter(SimpleNamespace(name="all", apply=apply), answers)
    assert [each.filtered_resps["all"] for each in answers[0]] == ["a", "a"]
    assert all(isinstance(each.filtered_resps["all"].error, ZeroDivisionError) for each in answers[1])

"""Answers that are no answers of their own: copies under one seed, votes over several, scores that agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.notes import noted

pytest.importorskip("lm_eval")

import harness_noise as hn
from harness_noise_adapters.lm_eval_harness import noise
from harness_noise_adapters.lm_eval_harness.scoring import rescore
from support import lm_eval_models as toys
from support.lm_eval_live import estimate, native_part, scores
from support.lm_eval_server import Server, serving

N = 24


def ask(folder: Path, server: Server, tasks: list[str], **more: Any) -> dict[str, Any]:
    arguments = {
        "model": "toy",
        "base_url": f"http://127.0.0.1:{server.server_port}/v1/completions",
        "tokenizer_backend": None,
        "num_concurrent": 1,
        "max_retries": 1,
    }
    return toys.simple_evaluate(folder, tasks, "local-completions", model_args=arguments, batch_size=1, **more)


def write(folder: Path, name: str = "own", repeats: int = 3, **more: Any) -> None:
    toys.write_task(folder, name, toys.docs(N), repeats=repeats, **more)


# ---- copies under one seed ----


def test_copies_of_a_seeded_server_count_as_one_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A task's own repeats share lm-eval's one seed: three copies and one fresh answer are two answers."""
    write(tmp_path)
    with serving(honour_seed=True) as server:
        plain = ask(tmp_path, server, ["own"])
    with serving(honour_seed=True) as server, noise(repeats=4) as session:
        results = ask(tmp_path, server, ["own"])
    native = native_part(results)
    for name in ("results", "samples"):
        assert native[name] == native_part(plain)[name]
    assert "own: the task itself asks 3 times, and lm-eval sends one seed with all" in caplog.text
    rows = [row for row in results["samples"]["own"] if row["filter"] == "strict"]
    answers = [row["resps"][0] for row in rows]
    assert {len(set(found[:3])) for found in answers} == {1}
    right = np.array([[float(a.strip() == row["doc"]["answer"]) for a in row["resps"][0]] for row in rows])
    np.testing.assert_array_equal(scores(session, "own").values, right[:, [0, 3]])
    found, theirs = estimate(session, "own"), hn.estimate(right[:, [0, 3]])
    assert (found.mean, found.se, found.se_prediction) == (theirs.mean, theirs.se, theirs.se_prediction)
    assert hn.estimate(right).se_prediction < 0.9 * found.se_prediction  # what the copies would have said
    assert "copied_repeats" in found.diagnostics
    assert found.repeats_max == 2
    assert not {"mean_mismatch", "identical_repeats"} & set(found.diagnostics)
    assert any(f"copies of each other on {N} of {N} questions" in note for note in noted(results["noise"]["notes"]))
    assert {len(row["scores_per_repeat"]["exact_match"]) for row in rows} == {2}


def test_answers_of_a_server_without_seeds_all_count(tmp_path: Path) -> None:
    write(tmp_path)
    with serving(honour_seed=False) as server, noise(repeats=4) as session:
        ask(tmp_path, server, ["own"])
    found = estimate(session, "own")
    assert found.repeats_max == 4
    assert "copied_repeats" not in found.diagnostics


@pytest.mark.parametrize("seed", [None, 7])
def test_only_a_seed_that_is_sent_is_announced(
    tmp_path: Path, seed: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path)
    with serving(honour_seed=False) as server, noise():
        ask(tmp_path, server, ["own"], gen_kwargs={"seed": seed})
    assert ("sends one seed with all" in caplog.text) is (seed is not None)


def rows(answers: list[list[str]]) -> list[dict[str, Any]]:
    return [{"resps": [found]} for found in answers]


def test_copies_are_told_from_answers_that_agree() -> None:
    draw = np.random.default_rng(3)
    words = np.array(list("abcd"))
    fresh = words[draw.integers(4, size=(60, 5))]
    copied = fresh.copy()
    copied[:, 1:3] = copied[:, :1]
    assert rescore.copied_answers(rows(copied.tolist()), 3, 5) == 60
    nearly = copied.copy()
    nearly[:6, 1] = fresh[:6, 1]  # a server that honours the seed nearly always
    assert 54 <= rescore.copied_answers(rows(nearly.tolist()), 3, 5) < 60
    assert rescore.copied_answers(rows(fresh.tolist()), 3, 5) == 0
    # a model that always says the same, and answers that nothing can be compared with
    assert rescore.copied_answers(rows([["a"] * 5] * 60), 3, 5) == 0
    assert rescore.copied_answers(rows(copied[:, :3].tolist()), 3, 3) == 0
    # a few questions do not tell copies from answers that agree: three of five at random positions
    few = [["a", "a", "a", "b", "b"]] * 2 + [["a"] * 5] * 30
    assert rescore.copied_answers(rows(few), 3, 5) == 0
    assert rescore.copied_answers(rows([["a", "a", "a", "b", "b"]] * 3), 3, 5) == 0  # p = .1³
    assert rescore.copied_answers(rows([["a", "a", "a", "b", "b"]] * 4), 3, 5) == 4


def test_independent_answers_are_rarely_taken_for_copies() -> None:
    """Short answers agree by chance; 400 runs of 40 questions, at p < .001."""
    draw = np.random.default_rng(11)
    ease = draw.beta(2, 1, size=(400, 40, 1))
    answers = (draw.random((400, 40, 4)) < ease).astype(int)
    found = [rescore.copied_answers(rows(run.tolist()), 3, 4) for run in answers]
    assert sum(map(bool, found)) <= 2


# ---- votes that take the first k answers ----

DIGITS = toys.GENERATE["filter_list"][1]["filter"][0]
FIRST = {"name": "score-first", "filter": [DIGITS, {"function": "take_first"}]}


def vote(k: int) -> dict[str, Any]:
    steps = [{"function": "take_first_k", "k": k}, DIGITS, {"function": "majority_vote"}, {"function": "take_first"}]
    return {"name": f"maj{k}", "filter": steps}


@pytest.mark.parametrize("K", [None, 8])
def test_votes_over_the_first_answers(tmp_path: Path, K: int | None) -> None:
    """Like gsm8k_cot_self_consistency: one filter scores the first answer, the others vote over 3 and over all 5."""
    write(tmp_path, "vote", 5, filter_list=[FIRST, vote(3), vote(5)])
    plain = toys.simple_evaluate(tmp_path, ["vote"])
    with noise(repeats=K) as session:
        results = toys.simple_evaluate(tmp_path, ["vote"])
    assert native_part(results) == native_part(plain)
    logged = [row for row in results["samples"]["vote"] if row["filter"] == "score-first"]
    right = np.array([[rightly(answer, row["doc"]["answer"]) for answer in row["resps"][0]] for row in logged])
    assert right.shape == (N, K or 5)
    for k in (3, 5):
        single = estimate(session, "vote", "exact_match", f"maj{k}")
        assert (single.mean, single.repeats_max) == (pytest.approx(right.mean()), K or 5)
        whole = estimate(session, "vote", f"exact_match@{k}", f"maj{k}")
        each = [row["exact_match"] for row in results["samples"]["vote"] if row["filter"] == f"maj{k}"]
        assert whole.mean == results["results"]["vote"][f"exact_match,maj{k}"] == pytest.approx(np.mean(each))
        assert whole.se == pytest.approx(np.std(each, ddof=1) / np.sqrt(N))
        assert "uses_all_repeats" in whole.diagnostics
        assert whole.se_prediction is whole.se_total is None
    assert "AssertionError" not in " ".join(noted(session.analysis))
    assert not {"mean_mismatch", "single_repeat"} & {c for row in session.analysis.estimates for c in row.diagnostics}


def rightly(answer: str, truth: str) -> float:
    import re

    numbers = re.findall(r"-?\d+", answer)
    return float(bool(numbers) and numbers[-1] == truth)


# ---- after the run ----


def test_votes_and_copies_read_back_as_they_were_shown(tmp_path: Path) -> None:
    from harness_noise.analysis.mean import analyze_run
    from harness_noise.settings import Settings
    from support.lm_eval_files import one
    from support.lm_eval_live import save

    write(tmp_path, "vote", 5, filter_list=[FIRST, vote(3), vote(5)])
    for name, options in (("noisy", {"repeats": 8}), ("native", {})):
        with noise(**options) as session:
            save(tmp_path, tmp_path / name, ["vote"], toys.HashModel())
        again = analyze_run(one(tmp_path / name), Settings()).estimates
        shown = session.analysis.estimates
        assert [shape(row) for row in again] == [shape(row) for row in shown], name


def shape(row: Any) -> tuple[Any, ...]:
    return row.metric, row.scorer, row.mean, row.se, row.se_prediction, row.repeats_max, row.diagnostics


def test_copies_keep_their_code_in_the_files(tmp_path: Path) -> None:
    import json

    from lm_eval.utils import handle_non_serializable

    from harness_noise.analysis.mean import analyze_run
    from harness_noise.settings import Settings
    from support.lm_eval_files import one

    write(tmp_path)
    with serving(honour_seed=True) as server, noise(repeats=4) as session:
        results = ask(tmp_path, server, ["own"])
    out = tmp_path / "out"
    out.mkdir()
    logged = results.pop("samples")["own"]
    lines = [json.dumps(row, default=handle_non_serializable) + "\n" for row in logged]
    (out / "samples_own_2026-01-01T00-00-00.jsonl").write_text("".join(lines))
    (out / "results_2026-01-01T00-00-00.json").write_text(json.dumps(results, default=handle_non_serializable))
    again = analyze_run(one(out), Settings()).estimates
    assert [shape(row) for row in again] == [shape(row) for row in session.analysis.estimates]


# ---- answers and their scores ----


class Wordy(toys.HashModel):
    """Never says the same twice, and is never right."""

    def answer(self, prompt: str) -> str:
        return f" no idea {self.draw(prompt)}x"


def with_one_answer_to_the_first(rows: list[Any]) -> list[Any]:
    """As a run that stops in a later round leaves them: not every question was asked as often as the others."""
    for row in rows:
        if row["doc_id"] == rows[0]["doc_id"]:
            row |= {"resps": [row["resps"][0][:1]], "scores_per_repeat": {"exact_match": [row["exact_match"]]}}
    return rows


def test_scores_that_agree_are_not_answers_that_agree(tmp_path: Path) -> None:
    from harness_noise.analysis.mean import analyze_run
    from harness_noise.settings import Settings
    from support.lm_eval_files import edit, one, samples_file
    from support.lm_eval_live import save

    write(tmp_path, "gen", 1)
    for name, model, code, other in (
        ("wordy", Wordy(), "identical_scores_only", "identical_repeats"),
        ("same", toys.HashModel(same=True), "identical_repeats", "identical_scores_only"),
    ):
        with noise(repeats=3) as session:
            save(tmp_path, tmp_path / name, ["gen"], model)
        whole = analyze_run(one(tmp_path / name), Settings()).estimates
        edit(samples_file(tmp_path / name, "gen"), with_one_answer_to_the_first)
        for row in (*session.analysis.estimates, *whole, *analyze_run(one(tmp_path / name), Settings()).estimates):
            assert code in row.diagnostics
            assert other not in row.diagnostics
            assert row.se_prediction is row.se_data is None
    # arrays know no answers
    unknown = hn.estimate(np.repeat([[0.0], [1.0], [1.0]], 3, axis=1))
    assert "identical_repeats" in unknown.diagnostics


# ---- the first answer ----


class FirstIsWorse(toys.HashModel):
    """A model whose first answers share one seed: they are worse throughout."""

    def draw(self, prompt: str) -> float:
        n = self.asked[prompt]
        u = super().draw(prompt)
        return u if n else 0.4 + u / 2


def test_a_first_answer_that_stands_apart_is_said(tmp_path: Path) -> None:
    toys.write_task(tmp_path, "gen", toys.docs(120))
    with noise(repeats=5) as session:
        results = toys.simple_evaluate(tmp_path, ["gen"], FirstIsWorse(seed=1))
    found = estimate(session, "gen")
    assert "first_answer_differs" in found.diagnostics
    assert "shared_repeat_noise" not in found.diagnostics
    values = scores(session, "gen").values
    columns = values.mean(axis=0)
    assert columns[0] < columns[1:].min() - 0.1
    assert results["results"]["gen"]["exact_match,strict"] == columns[0] != found.mean
    with noise(repeats=5) as session:
        toys.simple_evaluate(tmp_path, ["gen"])
    assert "first_answer_differs" not in estimate(session, "gen").diagnostics


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), True),
        (np.array([1.0, 2.0]), np.array([1.0, 3.0]), False),
        (np.array([1.0, 2.0]), np.array([1.0]), False),
        (np.float64("nan"), float("nan"), True),
        ((np.array([0.5]), 1), ([0.5], 1), True),
        ("a", np.array(["a"]), False),
    ],
)
def test_values_are_equal_item_by_item_and_nan_equals_nan(a: object, b: object, equal: bool) -> None:
    assert rescore.same(a, b) is equal

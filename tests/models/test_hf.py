"""lm-eval's hf model on a tiny trained Llama: native values to the last digit, and noise that can be computed again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.notes import noted

pytest.importorskip("torch", reason="torch is not installed: make models")
pytest.importorskip("transformers", reason="transformers is not installed: make models")

import harness_noise as hn
from harness_noise.analysis.mean import analyze_run
from harness_noise.settings import Settings
from harness_noise_adapters.lm_eval_harness import noise
from models.tiny_tasks import TASKS, K, N, right
from support import lm_eval_models as toys
from support.lm_eval_files import one
from support.lm_eval_live import native_part, save

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("default")]


def evaluate(tasks: Path, out: Path, model: str, names: list[str], **more: Any) -> dict[str, Any]:
    options = {"model_args": f"pretrained={model},dtype=float32", "device": "cpu", "batch_size": 8} | more
    return save(tasks, out, names, "hf", **options)


@pytest.fixture(scope="module")
def runs(tasks: Path, model: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Any, Path]:
    folder = tmp_path_factory.mktemp("out")
    plain = evaluate(tasks, folder / "plain", model, list(TASKS))
    with noise(repeats=K, cluster="kind") as session:
        noisy = evaluate(tasks, folder / "noisy", model, list(TASKS))
    assert session.problems == []
    return plain, noisy, session, folder


def test_native_values_stay_to_the_last_digit(runs: Any) -> None:
    plain, noisy, _, _ = runs
    before, after = native_part(plain), native_part(noisy)
    assert after["results"] == before["results"]
    for name in TASKS:
        for ours, theirs in zip(after["samples"][name], before["samples"][name], strict=True):
            assert str(ours) == str(theirs)


@pytest.mark.parametrize("name", ["sampled", "greedy"])
def test_noise_is_that_of_the_logged_answers(runs: Any, name: str) -> None:
    _, noisy, session, _ = runs
    rows = noisy["samples"][name]
    scores = np.array([right(row) for row in rows])
    assert scores.shape[1] == (1 if name == "greedy" else K)
    (found,) = [item for item in session.analysis.estimates if item.task == name]
    expected = hn.estimate(scores, clusters=[row["doc"]["kind"] for row in rows])
    assert (found.mean, found.se, found.n_clusters) == pytest.approx((expected.mean, expected.se, expected.n_clusters))
    if name == "greedy":
        assert {"copied_repeats", "single_repeat"} <= set(found.diagnostics)
        assert found.se_prediction is None
        said = f"greedy: temperature 0: {N} of {N} second answers were copies, {N * (K - 2)} requests saved"
        assert session.saved_requests == [said]
        assert any("greedy: the answers are generated greedily" in note for note in noted(noisy["noise"]["notes"]))
    else:
        assert 0.1 < scores.mean() < 0.95
        assert found.se_prediction == pytest.approx(expected.se_prediction)
        assert found.se_prediction > 0
        assert noisy["results"][name]["exact_match,strict"] == scores[:, 0].mean()


def test_a_vote_of_the_task_has_its_row(runs: Any) -> None:
    _, noisy, session, _ = runs
    single, vote = [item for item in session.analysis.estimates if item.task == "votes"]
    assert (single.metric, vote.metric) == ("exact_match", "exact_match@3")
    assert vote.mean == noisy["results"]["votes"]["exact_match,vote"]
    assert "uses_all_repeats" in vote.diagnostics
    assert single.mean == pytest.approx(np.mean([right(row) for row in noisy["samples"]["votes"]]))


@pytest.mark.parametrize("name", ["plain", "noisy"])
def test_every_metric_is_read_back(runs: Any, name: str) -> None:
    plain, _, session, folder = runs
    shown = {(row.task, row.metric, row.scorer): row for row in session.analysis.estimates}
    again = {(row.task, row.metric, row.scorer): row for row in analyze_run(one(folder / name), Settings()).estimates}
    # K answers with one score are one value in lm-eval's own log: the noise block alone tells of answer and vote
    assert set(shown) - set(again) == ({("votes", "exact_match@3", "vote")} if name == "plain" else set())
    assert set(again) <= set(shown)
    assert again["votes", "exact_match@3" if name == "noisy" else "exact_match", "vote"].mean == pytest.approx(
        plain["results"]["votes"]["exact_match,vote"], abs=1e-12
    )
    for key, row in again.items():
        assert "skipped_metric" not in row.diagnostics
        assert "mean_mismatch" not in row.diagnostics
        if name == "noisy":
            numbers = [(getattr(row, f), getattr(shown[key], f)) for f in ("mean", "se", "se_data", "se_prediction")]
            assert all(a == b is None or a == pytest.approx(b, rel=1e-9) for a, b in numbers), key
            assert row.diagnostics == shown[key].diagnostics, key
    native = plain["results"]["choice"]["brier_score,none"]
    assert again["choice", "brier_score", "none"].mean == pytest.approx(native, abs=1e-12)


def test_the_batch_size_is_looked_for_once(
    tasks: Path, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm_eval.models.huggingface import HFLM

    looked: list[int] = []
    original = HFLM._detect_batch_size

    def detect(self: Any, *args: Any, **kwargs: Any) -> int:
        looked.append(1)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(HFLM, "_detect_batch_size", detect)
    found = []
    for name, K_ in (("plain", None), ("noisy", K)):
        looked.clear()
        options = {"batch_size": "auto", "max_batch_size": 16}
        if K_ is None:
            results = evaluate(tasks, tmp_path / name, model, ["sampled"], **options)
        else:
            with noise(repeats=K_):
                results = evaluate(tasks, tmp_path / name, model, ["sampled"], **options)
        assert looked == [1]
        found.append(native_part(results)["results"])
    assert found[0] == found[1]


def test_another_model_object_is_left_as_it_was(tasks: Path, model: str) -> None:
    from lm_eval.models.huggingface import HFLM

    lm = HFLM(pretrained=model, dtype="float32", device="cpu", batch_size=8)
    before = dict(vars(lm))
    with noise(repeats=2):
        toys.simple_evaluate(tasks, ["sampled"], lm)
    assert vars(lm).keys() - {"task_dict"} == before.keys() - {"task_dict"}


@pytest.mark.parametrize("batch", [1, 3, 8])
@pytest.mark.parametrize("call", ["first", "middle", "last"])
def test_a_full_memory_costs_the_answers_that_had_not_come(
    tasks: Path, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int, call: str
) -> None:
    """What was generated is kept and written down, and the next run goes on with it."""
    from lm_eval.models.huggingface import HFLM

    original, calls = HFLM._model_generate, [0]
    per_round = -(-N // batch)
    last = per_round * (K - 1)
    number = {"first": 1, "middle": last // 2 + 1, "last": last}[call]
    fails = [per_round + number]

    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] in fails:
            raise RuntimeError("CUDA out of memory")
        return original(self, *args, **kwargs)

    plain = evaluate(tasks, tmp_path / "plain", model, ["sampled"], batch_size=batch)
    monkeypatch.setattr(HFLM, "_model_generate", generate)
    with noise(repeats=K):
        results = evaluate(tasks, tmp_path / "out", model, ["sampled"], batch_size=batch)
    assert native_part(results)["results"] == native_part(plain)["results"]
    assert native_part(results)["samples"] == native_part(plain)["samples"]
    had = [len(row["resps"][0]) for row in results["samples"]["sampled"]]
    further = sum(had) - N
    whole, rest = divmod(number - 1, per_round)
    assert further == whole * N + rest * batch
    assert max(had) - min(had) <= 1
    calls[0], fails[:] = 0, []
    with noise(repeats=K):
        again = evaluate(tasks, tmp_path / "out", model, ["sampled"], batch_size=batch)
    assert again["noise"]["journal"]["taken_up"] == further
    assert again["noise"]["journal"]["asked"] == N * (K - 1) - further
    answers = [row["resps"][0] for row in again["samples"]["sampled"]]
    assert {len(found) for found in answers} == {K}
    kept = [row["resps"][0] for row in results["samples"]["sampled"]]
    assert all(found[: len(first)] == first for found, first in zip(answers, kept, strict=True))
    # its random numbers stand where they stood before, and are not used twice
    columns = [[found[k] for found in answers] for k in range(1, K)]
    assert all(a != b for i, a in enumerate(columns) for b in columns[:i])

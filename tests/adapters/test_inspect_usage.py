"""Tokens, times and cost of Inspect's samples: in logs, in running tasks, and in logs that are written again."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

import harness_noise as hn
from harness_noise_adapters.inspect_logs.flags import flag
from support.notes import noted

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")
"""Inspect's own, of a library that it calls models with."""
JUDGE = "mockllm/judge"


def tokens_of(sample: int, epoch: int) -> int:
    return 10 + (7 * sample + 3 * epoch) % 11


@pytest.fixture
def spending(canned: SimpleNamespace) -> Any:
    """A task whose answers have known tokens, and a judge that has its own."""
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import Score, accuracy, scorer, stderr
    from inspect_ai.solver import solver

    def output(model: str, n: int) -> ModelOutput:
        found = ModelOutput.from_content(model, "yes")
        found.usage = ModelUsage(input_tokens=100, output_tokens=n, total_tokens=150 + n, input_tokens_cache_read=50)
        return found

    def task(judge: str = JUDGE) -> Task:
        @solver
        def answers() -> Any:
            async def solve(state: Any, generate: Any) -> Any:
                n = tokens_of(int(state.sample_id), state.epoch)
                state.output = await get_model(
                    "mockllm/model", custom_outputs=[output("mockllm/model", n)], memoize=False
                ).generate("q")
                return state

            return solve

        @scorer(metrics=[accuracy(), stderr()])
        def judged() -> Any:
            async def score(state: Any, target: Any) -> Score:
                model = get_model(judge, role="grader", custom_outputs=[output(judge, 1000)], memoize=False)
                await model.generate("is it right?")
                return Score(value=(int(state.sample_id) + state.epoch) % 2)

            return score

        return Task(
            dataset=[Sample(input=f"q{i}", target="yes", id=i) for i in range(1, 13)], solver=answers(), scorer=judged()
        )

    return task


TOKENS = np.array([[tokens_of(i, k) for k in (1, 2)] for i in range(1, 13)], dtype=float)
SCORES = np.array([[(i + k) % 2 for k in (1, 2)] for i in range(1, 13)], dtype=float)


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_the_evaluated_models_tokens_are_read_by_sample_and_epoch_and_not_the_judges(canned, spending, tmp_path, kind):
    log = canned.eval(spending(), tmp_path, epochs=2, log_format=kind)[0]
    result = hn.analyze(
        log.location,
        measures=["score", "output_tokens", "input_tokens", "cost"],
        prices=["input=2,output=10,cache_read=1"],
    )
    rows = {row.metric: row for row in result.estimates}
    want = hn.estimate(TOKENS, range=(0, 1e9), interval="t")
    assert (rows["output_tokens"].mean, rows["output_tokens"].se) == pytest.approx((want.mean, want.se))
    assert rows["output_tokens"].repeats_max == 2
    assert rows["input_tokens"].mean == 150  # with those that the provider's cache held
    assert rows["cost"].mean == pytest.approx((100 * 2 + 50 * 1 + TOKENS.mean() * 10) / 1e6)
    assert any(f"Not counted are those of {JUDGE}" in note for note in noted(result))


def test_the_calls_of_a_judge_of_the_same_model_are_taken_off(canned, spending, tmp_path):
    log = canned.eval(spending("mockllm/model"), tmp_path, epochs=2)[0]
    assert sum(usage.output_tokens for usage in log.samples[0].model_usage.values()) > 1000
    row = hn.analyze(log.location, measures=["output_tokens"]).estimates[0]
    assert row.mean == pytest.approx(TOKENS.mean())


def test_a_ratio_pairs_each_answers_tokens_with_its_score(canned, spending, tmp_path):
    log = canned.eval(spending(), tmp_path, epochs=2)[0]
    row = hn.analyze(log.location, measures=["output_tokens/score"]).estimates[0]
    assert row.mean == pytest.approx(TOKENS.sum() / SCORES.sum())
    one_epoch = [(TOKENS[:, k] * 1).mean() for k in (0, 1)]
    assert one_epoch[0] != one_epoch[1]
    assert (row.metric, row.scorer) == ("output_tokens/score", "judged")


def test_summaries_of_an_old_inspect_have_no_usage_and_the_samples_are_read(canned, spending, tmp_path):
    log = canned.eval(spending(), tmp_path, epochs=2)[0]
    old = tmp_path / "old.eval"
    with ZipFile(log.location) as source, ZipFile(old, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "summaries.json":
                rows = json.loads(data)
                for row in rows:
                    for key in ("model_usage", "role_usage", "total_time", "working_time"):
                        row.pop(key, None)
                data = json.dumps(rows).encode()
            target.writestr(name, data)
    row = hn.analyze(old, measures=["output_tokens"]).estimates[0]
    assert row.mean == pytest.approx(TOKENS.mean())


def changed(path: Path, change: Any) -> Path:
    """The JSON log with something else in it."""
    log = json.loads(path.read_text())
    change(log)
    path.write_text(json.dumps(log))
    return path


@pytest.fixture
def log_file(canned, spending, tmp_path) -> Path:
    return Path(canned.eval(spending(), tmp_path, epochs=2, log_format="json")[0].location)


def test_what_broke_off_counts_by_its_cause(log_file):
    def change(log):
        log["samples"][0] |= {"error": {"message": "timeout", "traceback": "", "traceback_ansi": ""}, "scores": {}}

    row = hn.analyze(changed(log_file, change), measures=["output_tokens"]).estimates[0]
    assert (row.n_missing, row.missing) == (1, {"error": 1})


def test_a_cache_that_answered_leaves_no_usage_and_its_code(log_file):
    def change(log):
        log["eval"]["model_generate_config"] = {"cache": True}
        log["samples"][0]["model_usage"] = {}

    result = hn.analyze(changed(log_file, change), measures=["output_tokens", "time"])
    for row in result.estimates:
        assert row.missing == {"cached": 1}
        assert "cached_usage" in row.diagnostics
    assert any("asked through a cache" in note for note in noted(result))


def test_times_and_invalidated_answers(log_file):
    def change(log):
        log["invalidated"] = True
        log["samples"][0]["invalidation"] = {"timestamp": "2026-01-01T00:00:00+00:00", "author": "me"}
        for i, sample in enumerate(log["samples"]):
            sample["total_time"] = float(i)

    row = hn.analyze(changed(log_file, change), measures=["time"]).estimates[0]
    assert (row.unit, row.n_missing) == ("s", 0)
    assert row.mean > 11.5


def test_a_measure_that_is_not_there_names_those_that_are(log_file):
    with pytest.raises(hn.InputError, match=r"is not in this run\. There are score.* output_tokens.* time") as error:
        hn.analyze(log_file, measures=["dollars"])
    assert "only" not in str(error.value)


def test_a_negative_usage_is_refused_by_name(log_file):
    def change(log):
        log["samples"][0]["model_usage"]["mockllm/model"]["output_tokens"] = -5

    with pytest.raises(hn.InputError, match="a negative output_tokens cannot be"):
        hn.analyze(changed(log_file, change), measures=["output_tokens"])


@pytest.mark.parametrize("log_format", ["eval", "json"])
def test_a_running_task_writes_the_noise_of_its_measures(canned, spending, tmp_path, warned, log_format):
    on = {"noise": True, "noise_measures": "output_tokens,working_time"}
    log = canned.eval(spending(), tmp_path / "on", epochs=2, metadata=on, log_format=log_format)[0]
    off = canned.eval(spending(), tmp_path / "off", epochs=2)[0]
    scores, tokens, time = log.results.scores
    assert {name: m.value for name, m in scores.metrics.items() if m.group != "noise"} == {
        name: m.value for name, m in off.results.scores[0].metrics.items()
    }
    want = hn.estimate(TOKENS, range=(0, 1e9), interval="t")
    assert (tokens.name, time.name) == ("output_tokens", "working_time")
    assert tokens.metrics["noise_mean"].value == pytest.approx(want.mean)
    assert tokens.metrics["noise_se"].value == pytest.approx(want.se)
    assert tokens.metrics["noise_mean"].metadata["unit"] == "tokens"
    again = inspect_ai.log.read_eval_log(log.location, header_only=True)
    assert [es.name for es in again.results.scores] == [es.name for es in log.results.scores]
    plain, read = hn.analyze(off.location), hn.analyze(log.location)
    assert [row.metric for row in read.estimates] == [row.metric for row in plain.estimates]  # ours are no scores
    assert any("Not counted are those of" in text for text in warned())


def test_the_measures_of_a_running_task_have_the_clusters_that_they_have_after_it(canned, tmp_path):
    """Those that the scorer's own stderr names, where nobody names others."""
    from inspect_ai.scorer import accuracy, match, stderr

    task = canned.task(scorer=match(), metrics=[accuracy(), stderr(cluster="passage")])
    log = canned.eval(task, tmp_path, epochs=2, metadata={"noise": True, "noise_measures": "time"})[0]
    live = log.results.scores[1].metrics["noise_se"]
    after = hn.analyze(log.location, measures=["time"]).estimates[0]
    assert after.cluster == "passage"
    assert live.params == {"cluster": "passage"}
    assert live.value == pytest.approx(after.se)


def test_the_measures_of_a_run_hide_nothing_that_is_said_of_its_scores(canned, tmp_path, warned):
    """They are added after it; what was said before stays."""
    from inspect_ai.scorer import Score, accuracy, match, scorer

    @scorer(metrics=[accuracy()])
    def holes() -> Any:
        async def score(state: Any, target: Any) -> Score:
            return Score(value=float("nan") if state.sample_id == "q3" else 1.0)

        return score

    task = canned.task(scorer=[match(), holes()])
    canned.eval(task, tmp_path, epochs=2, metadata={"noise": True, "noise_measures": "time"})
    assert "answers without a score are left out: holes 2" in " ".join(warned())


def test_a_retried_run_has_the_measures_of_all_its_tries(canned, tmp_path, warned):
    """Inspect tells no hook of the answers that it takes over from an earlier try; its log has them."""
    from inspect_ai import eval_retry

    fail = [True]

    def answer(state):
        if fail[0] and state.sample_id == "q5":
            raise RuntimeError("the server is gone")
        return "yes"

    @inspect_ai.task(name="retried")
    def retried():
        return canned.task(answer=answer)

    on = {"noise": True, "noise_measures": "time"}
    first = canned.eval(retried(), tmp_path / "first", max_samples=1, metadata=on)[0]
    assert first.status == "error"
    fail[0] = False
    again = canned.quietly(eval_retry, first, log_dir=str(tmp_path / "again"), display="none", max_samples=1)[0]
    assert (again.status, again.results.completed_samples) == ("success", 12)
    assert [es.name for es in again.results.scores] == ["match", "time"]
    live = again.results.scores[1].metrics["noise_se"]
    assert (live.metadata["n_questions"], live.metadata["n_missing"]) == (12, 0)
    assert live.value == pytest.approx(hn.analyze(again.location, measures=["time"]).estimates[0].se)


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_export_adds_measures_and_twice_changes_nothing(canned, spending, tmp_path, kind):
    source = Path(canned.eval(spending(), tmp_path / "in", epochs=2, log_format=kind)[0].location)
    for _ in range(2):
        (written,) = hn.export(source, tmp_path / "out", measures=["output_tokens"]).written
    log = inspect_ai.log.read_eval_log(str(written), header_only=True)
    assert [es.name for es in log.results.scores] == ["judged", "output_tokens"]
    assert log.results.scores[1].metrics["noise_mean"].value == pytest.approx(TOKENS.mean())
    before = written.read_bytes()
    assert hn.export(written, in_place=True, measures=["output_tokens"]).written == (written,)
    assert written.read_bytes() == before


def test_the_flag_knows_its_measures():
    assert flag({"noise": True, "noise_measures": ["time", "cost"]}, {}).measures == ("time", "cost")
    assert flag({"noise": True}, {"HARNESS_NOISE_MEASURES": "time"}).measures == ("time",)
    with pytest.raises(hn.InputError, match="noise_measures=cost/score: a running task knows"):
        flag({"noise": True, "noise_measures": "cost/score"}, {})

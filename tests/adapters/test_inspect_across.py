"""One set of questions through the real lm-eval and the real Inspect, compared as any two runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import harness_noise as hn
from harness_noise.cli import main

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
pytest.importorskip("lm_eval", reason="lm-eval is not installed")

from support import lm_eval_models as toys


@pytest.fixture(scope="module")
def both(canned, tmp_path_factory):
    """18 sums: lm-eval once, Inspect with three epochs, in another order and without ids."""
    from inspect_ai.scorer import match
    from lm_eval.loggers import EvaluationTracker

    folder = tmp_path_factory.mktemp("across")
    docs = toys.docs(18)
    (folder / "tasks").mkdir()
    toys.write_task(folder / "tasks", "sums", docs)
    tracker = EvaluationTracker(output_path=str(folder / "lm_eval"))
    results = toys.simple_evaluate(folder / "tasks", ["sums"], evaluation_tracker=tracker, log_samples=True)
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    tracker.save_results_samples(task_name="sums", samples=samples["sums"])

    def answer(state):
        right = canned.truth(state.metadata["question"], state.epoch)
        return str(state.target.text) if right else "-1"

    dataset = [
        canned.Sample(input=doc["question"], target=doc["answer"], metadata=doc | {"name": doc["question"]})
        for doc in reversed(docs)
    ]
    task = canned.task(dataset, name="sums_in_inspect", scorer=match(numeric=True), answer=answer)
    log = canned.eval(task, folder / "inspect", model="mockllm/other", epochs=3)[0]
    assert log.status == "success"
    right = {row["doc"]["question"]: row["exact_match"] for row in samples["sums"] if row["filter"] == "strict"}
    one = [[right[doc["question"]]] for doc in docs]
    other = [[canned.truth(doc["question"], j) for j in (1, 2, 3)] for doc in docs]
    return SimpleNamespace(
        lm_eval=folder / "lm_eval",
        inspect=Path(log.location),
        one=one,
        other=other,
        template=[d["template"] for d in docs],
    )


@pytest.mark.slow
def test_by_content_and_by_a_given_key(both):
    want = hn.estimate_difference(both.one, both.other)
    clustered = hn.estimate_difference(both.one, both.other, both.template)
    assert want.diff != 0
    for options in ({}, {"columns": {"question": "question"}}):
        (row,) = hn.compare(both.lm_eval, both.inspect, scorers=("strict", "match"), **options).comparisons
        assert (row.n_questions, row.n_only_a, row.n_only_b) == (18, 0, 0)
        assert (row.repeats_a, row.repeats_b) == (1, 3)
        assert (row.diff, row.se, row.correlation) == pytest.approx((want.diff, want.se, want.correlation), rel=1e-9)
        (row,) = hn.compare(
            both.lm_eval, both.inspect, scorers=("strict", "match"), cluster="template", **options
        ).comparisons
        assert row.n_clusters == 6
        assert row.se == pytest.approx(clustered.se, rel=1e-9)


@pytest.mark.slow
def test_on_the_command_line(both, capsys):
    arguments = ["compare", str(both.lm_eval), str(both.inspect), "--scorer", "strict", "--scorer", "match"]
    assert main([*arguments, "--format", "json"]) == 0
    assert '"n_questions": 18' in capsys.readouterr().out

"""`Task(headline_metric=…)` chooses the first sentence, the deciding score and the gate's row."""

from __future__ import annotations

import re

import pytest

import harness_noise as hn
from support.notes import noted

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai import Task
from inspect_ai.scorer import Score, accuracy, match, scorer, stderr

if "headline_metric" not in Task.__init__.__annotations__:
    pytest.skip("this Inspect has no headline", allow_module_level=True)


@scorer(metrics=[accuracy(), stderr()])
def strict():
    async def score(state, target):
        return Score(value=float(len(state.sample_id) % 2 and state.output.completion == "yes"))

    return score


def scored(canned, folder, headline, ease=0.6, **metadata):
    samples = canned.samples(40, ease=ease)
    options = {"scorer": [match(), strict()], "metadata": metadata} | (
        {"headline_metric": headline} if headline else {}
    )
    return canned.eval(canned.task(samples, **options), folder, epochs=2, display="plain")[0]


@pytest.fixture(scope="module")
def logs(canned, tmp_path_factory):
    folder = tmp_path_factory.mktemp("headline")
    made = {
        name: scored(canned, folder / str(name), name and f"{name}.{name}", noise=True).location
        for name in ("strict", "match", None)
    }
    return made | {"weak": scored(canned, folder / "weak", "strict.strict", ease=-9).location}


def test_the_declared_score_comes_first_and_its_rows_alone_decide(logs):
    for name, first in (("strict", "strict"), ("match", "match"), (None, "match")):
        run = hn.read(logs[name])[0]
        assert run.scores[0].scorer == first
        assert {key[2] for key in run.headline} == ({name} if name else set())
        gate = hn.gate(logs[name], against=logs["match"])
        assert {row.scorer for row in gate.rows if row.decides} == ({name} if name else {"match", "strict"})
        assert any("declares another score as headline" in note for note in noted(gate)) == bool(name)
        floor = hn.gate(logs[name], floor=0.01)
        assert {row.scorer for row in floor.rows if row.decides} == ({name} if name else {"match", "strict"})


def test_what_stands_beside_the_headline_fails_nothing_and_thresholds_that_name_it_do(logs, tmp_path):
    pytest.importorskip("yaml")
    weak, good = logs["weak"], logs["strict"]
    assert hn.gate(weak, against=good, scorers="match").failed
    gate = hn.gate(weak, against=good)
    assert [(row.scorer, row.decides) for row in gate.rows] == [("strict", True), ("match", False)]
    alone = hn.gate(weak, against=good, scorers="strict")
    assert gate.rows[0].p_adjusted == alone.rows[0].p_adjusted  # a family of one
    path = tmp_path / "bar.yaml"
    path.write_text("tasks: [{name: coins, metrics: [{name: 'accuracy,match', value: 0.99}]}]")
    assert hn.gate(good, thresholds=path).failed


def test_the_first_sentence_of_the_run_is_of_the_headline(canned, tmp_path, capsys):
    for name in ("strict", "match"):
        scored(canned, tmp_path / name, f"{name}.{name}", noise=True)
        said = " ".join(capsys.readouterr().out.split())
        assert re.search(rf"coins accuracy, {name}: \d+\.\d% ± \d+\.\d points \(", said), said[-400:]


def test_a_headline_counts_under_whichever_of_its_metrics_the_other_run_says(canned, tmp_path):
    """Where everything scores 0 a run cannot tell its win rate from its mean reward; the run beside it can."""
    from inspect_ai.scorer import metric

    @metric
    def wins():
        return lambda scores: sum(x.as_float() > 0 for x in scores) / len(scores)

    @metric
    def reward():
        return lambda scores: sum(x.as_float() for x in scores) / len(scores)

    def run(name, value):
        @scorer(metrics=[wins(), reward()])
        def graded():
            async def score(state, target):
                return Score(value=value * (len(state.sample_id) % 2))

            return score

        task = canned.task(scorer=[match(), graded()], headline_metric="graded.graded")
        return canned.eval(task, tmp_path / name)[0].location

    gate = hn.gate(run("zeros", 0.0), against=run("halves", 0.5))
    assert {row.scorer for row in gate.rows if row.decides} == {"graded"}


@pytest.mark.parametrize("name", ["strict", "match"])
def test_an_export_writes_the_noise_of_each_score_beside_it(logs, tmp_path, name):
    """The rows stand with the headline first, the scores of a log as its task has them."""
    from inspect_ai.log import read_eval_log

    (written,) = hn.export(logs[name], tmp_path).written
    before, after = (read_eval_log(str(path), header_only=True).results.scores for path in (logs[name], written))
    for live, exported in zip(before, after, strict=True):
        values = {key: metric.value for key, metric in live.metrics.items()}
        assert {key: metric.value for key, metric in exported.metrics.items()} == pytest.approx(values)


def test_the_headline_decides_when_to_stop(canned, tmp_path):
    samples = canned.samples(120)
    task = canned.task(
        samples, scorer=[match(), strict()], headline_metric="strict.strict",
        metadata={"noise_until": "se=0.08", "noise_seed": 1},
    )  # fmt: skip
    log = canned.eval(task, tmp_path, sample_shuffle=7)[0]
    assert log.status == "success", log.error
    (row,) = hn.analyze(log.location).sequential
    assert row.scorer == "strict"
    assert row.n_asked < 120

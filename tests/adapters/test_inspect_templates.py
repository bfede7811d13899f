"""Clusters by a template: a live run has it from its user and writes each sample's label. Reading runs none."""

from __future__ import annotations

import pytest

import harness_noise as hn

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai.log import read_eval_log, recompute_metrics
from inspect_ai.scorer import SampleScore, Score

from harness_noise_adapters.inspect_logs import hook, inject
from support.inspect_evals import PASSAGES, ours, unwrap_all

SPEC = "{{passage}}!"


@pytest.fixture(autouse=True)
def _own_functions():
    """Inspect's own functions before and after each test."""
    unwrap_all()
    yield
    unwrap_all()


def test_a_live_run_writes_the_labels_that_its_template_makes(canned, tmp_path):
    (log,) = canned.eval(canned.task(), tmp_path, epochs=3, metadata={"noise": True, "noise_cluster": SPEC})
    written = read_eval_log(log.location)
    labels = inject.clusters_of(written.results.scores)
    assert labels == {f"q{i}": f"p{PASSAGES[i]}!" for i in range(12)}
    (estimate,) = hn.analyze(log.location).estimates
    assert (estimate.cluster, estimate.n_clusters) == (SPEC, len(set(PASSAGES)))
    assert estimate.se == pytest.approx(ours(written.results.scores[0])["noise_se"])
    assert "cluster_template" not in estimate.diagnostics
    recompute_metrics(written)  # as `inspect score` does: the labels are those of the log, and stay in it
    assert ours(written.results.scores[0])["noise_se"] == pytest.approx(estimate.se)
    assert inject.clusters_of(written.results.scores) == labels


def test_scoring_a_log_again_runs_no_template_of_it(canned, tmp_path, warned):
    (log,) = canned.eval(canned.task(), tmp_path, epochs=3)
    strange = read_eval_log(log.location)
    strange.eval.metadata = {"noise": True, "noise_cluster": "{% for i in range(10**9) %}{% endfor %}{{ passage }}"}
    hook.install()
    recompute_metrics(strange)
    assert "noise_se" not in ours(strange.results.scores[0])
    assert any("never run" in text for text in warned())


def test_the_public_metric_takes_a_field_only(warned):
    from harness_noise.inspect_ext import noise

    scores = [
        SampleScore(score=Score(value=int(i % 3 > 0)), sample_id=i, sample_metadata={"a": i // 2}) for i in range(8)
    ]
    assert noise(cluster="a")(scores)["noise_se"] > 0
    assert noise(cluster="{{ a }}")(scores) == {}
    assert any("never run" in text for text in warned())


def test_an_export_keeps_the_labels_of_the_users_template(canned, tmp_path):
    (log,) = canned.eval(canned.task(), tmp_path / "in", epochs=3)
    hn.export(log.location, tmp_path / "out", cluster=SPEC)
    (estimate,) = hn.analyze(tmp_path / "out").estimates
    assert (estimate.cluster, estimate.n_clusters) == (SPEC, len(set(PASSAGES)))


@pytest.mark.parametrize("again", [None, "other=topic"])
@pytest.mark.parametrize("said", ["{{passage}}!", "passage"])
@pytest.mark.parametrize("spec", ["{{passage}}?", "topic", "topic*passage", "none"])
def test_clusters_of_an_export_go_before_those_of_the_run(canned, tmp_path, said, spec, again):
    samples = canned.samples()
    for i, sample in enumerate(samples):
        sample.metadata["topic"] = i % 5
    metadata = {"noise": True, "noise_cluster": said}
    (log,) = canned.eval(canned.task(samples), tmp_path / "in", epochs=3, metadata=metadata)
    first = hn.export(log.location, tmp_path / "first", cluster=spec, se="cr1", level=0.8).written[0]
    second = hn.export(first, tmp_path / "second", cluster=again, se="cr1", level=0.8).written[0]
    (wanted,) = hn.analyze(log.location, cluster=spec, se="cr1", level=0.8).estimates
    unwrap_all()
    hook.install()
    for path in (first, second):
        (estimate,) = hn.analyze(path, se="cr1", level=0.8).estimates
        assert (estimate.cluster, estimate.n_clusters, estimate.se) == (wanted.cluster, wanted.n_clusters, wanted.se)
        written = read_eval_log(str(path))
        before = written.results.scores[0].metrics["noise_se"]
        assert before.value == pytest.approx(wanted.se)
        recompute_metrics(written)
        after = written.results.scores[0].metrics["noise_se"]
        assert (after.value, after.params) == (pytest.approx(before.value), before.params)
        assert after.metadata == before.metadata

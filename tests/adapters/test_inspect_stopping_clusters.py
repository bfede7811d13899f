"""A run of Inspect that names no clusters and is stopped against one that has them: they are its clusters, too."""

from __future__ import annotations

import pytest

import harness_noise as hn
from support.inspect_stopping import STRONG, answers, record, task, weak_log

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")


@pytest.fixture(scope="module")
def clustered(canned, tmp_path_factory):
    """The log of the weak model, whose settings name the clusters."""
    folder = tmp_path_factory.mktemp("clustered")
    return weak_log(canned, folder, metadata={"noise": True, "noise_cluster": "passage"})


def stopped(canned, folder, clustered, **more):
    metadata = {"noise_until": "decided", "noise_against": clustered} | more
    (log,) = canned.eval(task(canned, STRONG), folder, model="mockllm/strong", metadata=metadata, max_samples=1)
    assert log.status == "success", log.error
    return log


def passages(log):
    return {int(key[1:]) // 4 for key, _ in answers(log)}


def test_every_row_has_the_clusters_that_drew_the_order(canned, tmp_path, clustered, warned):
    log = stopped(canned, tmp_path, clustered)
    assert len(answers(log)) == 4 * len(passages(log)) < 100
    se = log.results.scores[0].metrics["noise_se"]
    assert (se.params, se.metadata["n_clusters"]) == ({"cluster": "passage"}, len(passages(log)))
    (row,) = hn.analyze(log.location).estimates
    assert (row.n_clusters, row.cluster) == (len(passages(log)), "passage")
    assert row.se == pytest.approx(se.value)
    (difference,) = hn.compare(log.location, clustered).comparisons
    assert difference.n_clusters == len(passages(log))
    assert sum("clustered by passage, as " in text for text in warned()) == 1
    (independent,) = hn.analyze(log.location, cluster="none").estimates
    assert independent.n_clusters == len(answers(log))


def test_none_is_obeyed_in_the_looks_and_told(canned, tmp_path, clustered, warned):
    log = stopped(canned, tmp_path, clustered, noise_cluster="none")
    assert "clusters" not in record(log)
    assert len(answers(log)) < 4 * len(passages(log))  # single questions, in the order of the shuffle
    assert "cluster" not in log.results.scores[0].metrics["noise_se"].params
    (row,) = hn.analyze(log.location).estimates
    assert row.n_clusters == len(answers(log))
    assert any("noise_cluster none counts the questions as independent" in text for text in warned())

"""Inspect's grouped(…, all="groups"): the mean of the groups' means, with groups as strata of equal weight."""

import numpy as np
import pytest

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai.scorer import accuracy, grouped, match, mean, stderr

import harness_noise as hn

N, LARGE = 40, 30


def evaluated(canned, folder, metrics, model="one", **options):
    """A log whose first 30 samples are of one group and mostly right, the others of another one and mostly wrong."""
    dataset = canned.samples(N)
    for i, sample in enumerate(dataset):
        sample.metadata |= {"kind": "ab"[i >= LARGE], "ease": 0.2 if i >= LARGE else 0.9}
    (log,) = canned.eval(
        canned.task(dataset, scorer=match(), metrics=metrics), folder, model=f"mockllm/{model}", **options
    )
    assert log.status == "success", log.error
    return log


def scores_of(log):
    values = {}
    for sample in log.samples:
        values.setdefault((sample.metadata["kind"], sample.id), []).append(sample.scores["match"].value == "C")
    return {kind: np.array([np.mean(v) for (k, _), v in values.items() if k == kind]) for kind in "ab"}


@pytest.mark.parametrize("epochs", [1, 3])
def test_the_headline_has_the_noise_of_equally_weighted_strata(canned, tmp_path, epochs):
    log = evaluated(canned, tmp_path, [grouped(mean(), "kind", all="groups"), stderr()], epochs=epochs)
    (row,) = hn.analyze(log.location).estimates
    a, b = scores_of(log).values()
    assert (row.task, row.metric, row.n_questions) == ("coins", "all", N)
    assert row.mean == pytest.approx(log.results.scores[0].metrics["all"].value)
    assert row.mean == pytest.approx((a.mean() + b.mean()) / 2)
    assert row.se == pytest.approx(np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)) / 2)
    assert "mean_mismatch" not in row.diagnostics


def test_compare_and_gate_take_it_and_not_the_mean_over_samples(canned, tmp_path):
    metrics = [grouped(accuracy(), "kind", all="groups", all_label="overall")]
    one, two = (evaluated(canned, tmp_path / name, metrics, name).location for name in ("one", "two"))
    (row,) = hn.compare(one, two).comparisons
    means = [hn.analyze(path).estimates[0].mean for path in (one, two)]
    assert row.metric == "overall"
    assert row.diff == pytest.approx(means[0] - means[1])
    assert hn.gate(one, two, margin=0.9).outcome == "pass"
    (board,) = hn.arena([one, two]).boards
    assert board.benchmark.metric == "overall"


def test_beside_the_mean_over_samples_both_have_a_row(canned, tmp_path):
    log = evaluated(canned, tmp_path, [accuracy(), grouped(mean(), "kind", all="groups")])
    rows = {row.metric: row for row in hn.analyze(log.location).estimates}
    assert rows.keys() == {"accuracy", "all"}
    assert rows["accuracy"].mean != pytest.approx(rows["all"].mean)


def test_over_samples_it_is_the_mean_as_before(canned, tmp_path):
    log = evaluated(canned, tmp_path, [grouped(mean(), "kind")])
    (row,) = hn.analyze(log.location).estimates
    assert row.metric == "all"
    assert row.mean == pytest.approx(np.concatenate(list(scores_of(log).values())).mean())


def test_a_grouped_error_is_no_score(canned, tmp_path):
    log = evaluated(canned, tmp_path, [accuracy(), grouped(stderr(), "kind", all="groups")])
    assert [row.metric for row in hn.analyze(log.location).estimates] == ["accuracy"]


def test_the_flag_puts_its_noise_beside_it(canned, tmp_path):
    log = evaluated(canned, tmp_path, [grouped(mean(), "kind", all="groups")], epochs=3, metadata={"noise": True})
    (es,) = log.results.scores
    (row,) = hn.analyze(log.location).estimates
    assert es.metrics["noise_se"].value == pytest.approx(row.se)
    assert es.metrics["noise_se"].metadata["metric"] == "all"

"""Live lm-eval runs with the noise on: real lm-eval, simulated models, local tasks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from support.notes import noted

pytest.importorskip("lm_eval")
from lm_eval import evaluator
from lm_eval.utils import make_table

import harness_noise as hn
import harness_noise.analysis.mean
import harness_noise.data.scores
from harness_noise.errors import InputError
from harness_noise_adapters.lm_eval_harness import noise
from harness_noise_adapters.lm_eval_harness.scoring import rescore
from support import lm_eval_models as toys
from support.lm_eval_live import estimate, native_part, right, scores, write_nested_tasks

K = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_nested_tasks(tmp_path_factory.mktemp("tasks"))


@pytest.mark.parametrize("model", [toys.HashModel, toys.StatefulModel])
def test_native_values_stay_to_the_last_digit(folder: Path, model: type) -> None:
    tasks = ["outer"]
    plain = toys.simple_evaluate(folder, tasks, model())
    with noise(repeats=K, cluster="template") as session:
        noisy = toys.simple_evaluate(folder, tasks, model())
    assert session.problems == []
    assert native_part(noisy) == native_part(plain)
    assert [len(row["resps"][0]) for row in noisy["samples"]["gen"]] == [K] * 24
    assert noisy["configs"]["gen"]["repeats"] == K


def test_off_means_off(folder: Path) -> None:
    before = evaluator.evaluate
    with noise(repeats=2):
        assert evaluator.evaluate is not before
        with noise() as inner:
            toys.simple_evaluate(folder, ["gen"])
        assert inner.analysis is not None
    assert evaluator.evaluate is before
    results = toys.simple_evaluate(folder, ["gen"], log_samples=False)
    assert "noise" not in results
    assert "samples" not in results


def test_samples_are_not_added_when_they_were_not_asked_for(folder: Path) -> None:
    with noise(repeats=3) as session:
        results = toys.simple_evaluate(folder, ["gen"], log_samples=False)
    assert "samples" not in results
    assert estimate(session, "gen").repeats_max == 3


@pytest.mark.parametrize("scorer", ["strict", "flexible"])
def test_scores_per_repeat_are_right(folder: Path, scorer: str) -> None:
    with noise(repeats=K, cluster="template") as session:
        results = toys.simple_evaluate(folder, ["gen"])
    rows = [row for row in results["samples"]["gen"] if row["filter"] == scorer]
    expected = np.array([[right(answer, row["doc"]["answer"], scorer) for answer in row["resps"][0]] for row in rows])
    found = scores(session, "gen", scorer=scorer)
    np.testing.assert_array_equal(found.values, expected)
    assert [row["scores_per_repeat"] for row in rows] == [{"exact_match": list(line)} for line in expected]
    assert [row["cluster"] for row in rows] == [row["doc"]["template"] for row in rows]
    ours = estimate(session, "gen", scorer=scorer)
    theirs = hn.estimate(expected, clusters=[row["doc"]["template"] for row in rows])
    assert (ours.mean, ours.se, ours.se_data, ours.se_prediction) == pytest.approx(
        (theirs.mean, theirs.se, theirs.se_data, theirs.se_prediction), abs=1e-15
    )
    assert "mean_mismatch" not in ours.diagnostics
    row = results["results"]["gen"]
    assert row[f"exact_match_avg,{scorer}"] == expected.mean()
    assert row[f"exact_match_avg_stderr,{scorer}"] == ours.se == row[f"exact_match_avg_clustered_stderr,{scorer}"]
    assert row[f"exact_match_total_stderr,{scorer}"] == ours.se_total
    assert row[f"exact_match_data_stderr,{scorer}"] == ours.se_data
    assert row[f"exact_match_prediction_stderr,{scorer}"] == ours.se_prediction


def test_filters_differ(folder: Path) -> None:
    """The two filters must not be merged: some answers are right for one only."""
    with noise(repeats=K) as session:
        toys.simple_evaluate(folder, ["gen_large"], toys.HashModel(seed=1))
    strict, flexible = (scores(session, "gen_large", scorer=name).values for name in ("strict", "flexible"))
    assert (flexible >= strict).all()
    assert flexible.sum() > strict.sum()


def test_groups_nested_and_both_weightings(folder: Path) -> None:
    with noise(repeats=K, groups={"asked": "gen*"}) as session:
        results = toys.simple_evaluate(folder, ["outer"])
    small, large = scores(session, "gen").values, scores(session, "gen_large").values
    inner = estimate(session, "inner")
    assert inner.mean == pytest.approx(np.concatenate([small, large]).mean(), abs=1e-12)
    outer = estimate(session, "outer")
    assert outer.mean == pytest.approx((small.mean() + large.mean()) / 2, abs=1e-12)
    for name in ("inner", "outer"):
        assert not {"mean_mismatch", "skipped_metric"} & set(estimate(session, name).diagnostics)
        for table in ("results", "groups"):
            assert results[table][name]["exact_match_avg,strict"] == estimate(session, name).mean
            assert results[table][name]["exact_match_avg_stderr,strict"] == estimate(session, name).se
    assert inner.se == pytest.approx(
        np.sqrt(12**2 * estimate(session, "gen").se ** 2 + 24**2 * estimate(session, "gen_large").se ** 2) / 36,
        rel=1e-6,
    )
    assert estimate(session, "asked").mean == pytest.approx(inner.mean, abs=1e-12)
    assert results["results"]["asked"]["exact_match_avg,strict"] == estimate(session, "asked").mean


def test_the_versions_default_weighting(folder: Path) -> None:
    with noise(repeats=2) as session:
        results = toys.simple_evaluate(folder, ["plain"], toys.HashModel(seed=3))
    assert "mean_mismatch" not in estimate(session, "plain").diagnostics
    sizes, means = (12, 24), [results["results"][name]["exact_match,strict"] for name in ("gen", "gen_large")]
    assert means[0] != pytest.approx(means[1])
    by_size = results["results"]["plain"]["exact_match,strict"] == pytest.approx(np.average(means, weights=sizes))
    (group,) = [item for item in session.collected.run.groups if item.name == "plain"]
    assert group.weighting == ("size" if by_size else "equal")


def test_choice_tasks_are_asked_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with noise(repeats=K) as session:
        results = toys.simple_evaluate(folder, ["choice"])
    found = estimate(session, "choice", "acc", "none")
    assert (found.repeats_max, found.se_data, found.se_prediction) == (1, None, None)
    assert "single_repeat" in found.diagnostics
    assert found.se == pytest.approx(results["results"]["choice"]["acc_stderr,none"], rel=1e-9)
    assert "Asked once" in caplog.text
    assert "acc_avg,none" not in results["results"]["choice"]
    assert results["results"]["choice"]["acc_total_stderr,none"] == found.se_total


def test_no_rows(folder: Path) -> None:
    with noise(repeats=2, rows=False) as session:
        results = toys.simple_evaluate(folder, ["gen"])
    row, ours = results["results"]["gen"], estimate(session, "gen")
    limits = {f"exact_match_avg_ci_{end}_stderr,{name}" for end in ("low", "high") for name in ("strict", "flexible")}
    assert {key for key in row if "_avg" in key} == limits  # hidden, as all carriers are
    assert "exact_match_avg" not in make_table(results)
    assert "exact_match_total_stderr,strict" in row
    assert (row["exact_match_avg_ci_low_stderr,strict"], row["exact_match_avg_ci_high_stderr,strict"]) == (
        ours.ci_low, ours.ci_high,
    )  # fmt: skip
    assert make_table(results) == make_table(toys.simple_evaluate(folder, ["gen"]))
    (block,) = [item for item in results["noise"]["estimates"] if item["scorer"] == "strict"]
    crit, nc = stats.t.isf(0.025, ours.df), block["mde"] / ours.se
    assert stats.nct.sf(crit, ours.df, nc) + stats.nct.cdf(-crit, ours.df, nc) == pytest.approx(0.8, abs=1e-6)


def test_identical_answers_are_not_zero_noise(folder: Path) -> None:
    with noise(repeats=K) as session:
        results = toys.simple_evaluate(folder, ["gen"], toys.HashModel(same=True))
    found = estimate(session, "gen")
    assert "identical_repeats" in found.diagnostics
    assert found.se_prediction is None
    assert found.se_data is None
    assert "exact_match_prediction_stderr,strict" not in results["results"]["gen"]


def test_identical_answers_with_one_exception() -> None:
    rows = [{"resps": [["a", "a", "b"]]}, {"resps": [["c", "c"]]}]
    assert rescore.identical_answers(rows, 2)  # the third is another rank's padding
    assert not rescore.identical_answers(rows, 3)
    assert not rescore.identical_answers([{"resps": [["a"]]}], 1)


# ---- clusters ----
def test_a_missing_cluster_field_stops_the_run_before_it_starts(folder: Path) -> None:
    model = toys.HashModel()
    with noise(cluster="templat"), pytest.raises(InputError, match="answer, choices, label, meta, question, template"):
        toys.simple_evaluate(folder, ["gen"], model)
    assert model.calls == []


def test_a_field_that_only_some_documents_have(tmp_path: Path) -> None:
    rows = toys.docs(6)
    rows[3]["template"] = None
    toys.write_task(tmp_path, "gen", rows)
    with noise(repeats=2, cluster="template") as session:
        toys.simple_evaluate(tmp_path, ["gen"])
    assert estimate(session, "gen").cluster is None
    assert any("not clustered" in note for note in noted(session.analysis))


def test_clusters_by_task_path_and_template(folder: Path) -> None:
    spec = ["gen=meta.source", "gen_large={{template}}-{{label}}", "choice=none"]
    with noise(repeats=2, cluster=spec) as session:
        toys.simple_evaluate(folder, ["gen", "gen_large", "choice"])
    assert estimate(session, "gen").n_clusters == 4
    assert scores(session, "gen_large").clusters[5] == "t1-1"
    assert estimate(session, "choice", "acc", "none").cluster is None


def test_auto_knows_drop_and_parallel_tasks(tmp_path: Path) -> None:
    rows = [row | {"passage": row["template"]} for row in toys.docs(12)]
    toys.write_task(tmp_path, "drop", rows)
    toys.write_task(tmp_path, "mgsm_direct_de", rows)
    toys.write_task(tmp_path, "mgsm_direct_en", [row | {"question": "Again: " + row["question"]} for row in rows])
    with noise(repeats=2) as session:
        toys.simple_evaluate(tmp_path, ["drop"])
    assert any("natural clusters, passage (auto)" in note for note in noted(session.analysis))
    with noise(repeats=3, cluster="auto", groups={"mgsm": "mgsm_direct_*"}) as session:
        toys.simple_evaluate(tmp_path, ["drop", "mgsm_direct_de", "mgsm_direct_en"])
    assert estimate(session, "drop").n_clusters == 4
    assert estimate(session, "drop").cluster == "passage (auto)"
    both = estimate(session, "mgsm")
    assert (both.n_questions, both.n_clusters) == (24, 12)


@pytest.mark.parametrize("group", ["inner", "outer"])
def test_a_group_of_tasks_with_other_numbers_of_answers(folder: Path, group: str) -> None:
    """The last pattern that matches says K; every question counts by its own mean, whatever its K."""
    with noise(repeats=[3, "gen*=4", "*_large=6"]) as session:
        results = toys.simple_evaluate(folder, ["outer"], toys.HashModel(seed=2))
    assert {name: results["configs"][name]["repeats"] for name in ("gen", "gen_large")} == {"gen": 4, "gen_large": 6}
    parts = [scores(session, name).values for name in ("gen", "gen_large")]
    assert [part.shape[1] for part in parts] == [4, 6]
    sizes = np.array([len(part) for part in parts])
    w = sizes / sizes.sum() if group == "inner" else np.array([0.5, 0.5])
    means = np.array([part.mean() for part in parts])
    v = np.array([part.mean(1).var(ddof=1) / len(part) for part in parts])
    one = np.array([part.var(1, ddof=1).mean() / len(part) for part in parts])  # prediction noise of one answer
    found = estimate(session, group)
    assert found.mean == pytest.approx(w @ means, abs=1e-12)
    assert found.se**2 == pytest.approx(w**2 @ v, rel=1e-9)
    working = w**2 / sizes  # Bell & McCaffrey: degrees of freedom if all questions had one variance
    assert found.df == pytest.approx(working.sum() ** 2 / (working**2 / (sizes - 1)).sum(), rel=1e-9)
    assert found.var_prediction == pytest.approx(w**2 @ one, rel=1e-9)
    assert found.se_total**2 == pytest.approx(w**2 @ (v + one * (1 - 1 / np.array([4, 6]))), rel=1e-9)


def test_a_mapping_and_a_list_say_what_flags_say(folder: Path) -> None:
    for said in ({"*": 2, "gen_l*": 3}, ["2", "gen_l*=3"], "2,gen_l*=3", [2, {"gen_l*": 3}]):
        with noise(repeats=said):
            results = toys.simple_evaluate(folder, ["gen", "gen_large"])
        assert [results["configs"][name]["repeats"] for name in ("gen", "gen_large")] == [2, 3]


def test_a_pattern_without_a_task_is_refused_before_the_model_is_loaded(folder: Path) -> None:
    with noise(repeats={"*": 2, "gne": 3}), pytest.raises(InputError, match=r"`repeats='gne=3'`: no task matches"):
        toys.simple_evaluate(folder, ["gen"], "no such model")

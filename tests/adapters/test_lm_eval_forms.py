"""Samples files in the forms that other versions, ranks and tasks give them."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_run
from harness_noise.settings import Settings
from harness_noise_adapters.lm_eval_harness import adapter
from support.lm_eval_files import edit, edit_results, one, results_file, samples_file, score, skipped
from support.notes import noted


def test_rows_without_filter_key_as_old_versions_wrote_them(run_a):
    expected = one(run_a)
    edit(
        samples_file(run_a, "gen"),
        lambda rows: [{k: v for k, v in row.items() if k not in ("filter", "metrics")} for row in rows],
    )
    edit(
        samples_file(run_a, "mc"),
        lambda rows: [{k: v for k, v in row.items() if k not in ("filter", "metrics")} for row in rows],
    )
    run = one(run_a)
    for metric, scorer, task in (
        ("acc", "none", "mc"),
        ("exact_match", "strict", "gen"),
        ("exact_match", "flexible", "gen"),
    ):
        assert (
            score(run, task, metric, scorer).values[:, 0].tolist()
            == score(expected, task, metric, scorer).values[:, 0].tolist()
        )


def test_rows_in_any_order_of_ranks(run_a):
    expected = one(run_a)
    path = samples_file(run_a, "gen")
    edit(path, lambda rows: [row for rank in (0, 1, 2) for row in rows if row["doc_id"] % 3 == rank])
    run = one(run_a)
    for scorer in ("strict", "flexible"):
        a, b = score(expected, "gen", "exact_match", scorer), score(run, "gen", "exact_match", scorer)
        assert dict(zip(a.questions.keys, a.values.tolist(), strict=True)) == dict(
            zip(b.questions.keys, b.values.tolist(), strict=True)
        )
    (result, *_) = compare_runs([(expected, run)], Settings()).comparisons
    assert "identical_scores" in result.diagnostics


def test_padding_of_other_ranks_is_cut(run_a):
    expected = score(one(run_a), "gen", "exact_match", "strict").values

    def pad(rows):
        rows[-1]["resps"][0] += rows[-1]["resps"][0]
        rows[len(rows) // 2 - 1]["resps"][0] *= 3
        return rows

    edit(samples_file(run_a, "gen"), pad)
    assert score(one(run_a), "gen", "exact_match", "strict").values.tolist() == expected.tolist()


def test_scores_per_repeat_are_read_first(run_a):
    def write(rows):
        return [row | {"scores_per_repeat": {"exact_match": [1, 0, None, True]}} for row in rows]

    edit(samples_file(run_a, "gen"), write)
    part = score(one(run_a), "gen", "exact_match", "strict")
    np.testing.assert_array_equal(part.values, np.tile([1.0, 0.0, np.nan, 1.0], (24, 1)))
    assert part.n_missing == 24


def test_scores_per_repeat_before_the_filter_key_are_found(run_a):
    def write(rows):
        return [{"doc_id": row["doc_id"], "scores_per_repeat": {"exact_match": [1, 0, 0]}} | row for row in rows]

    edit(samples_file(run_a, "gen"), write)
    assert score(one(run_a), "gen", "exact_match", "strict").values.shape == (24, 3)


def test_scores_per_repeat_under_another_name_than_the_reduced_one(run_a):
    def write(rows):
        return [row | {"scores_per_repeat": {"single": [1, 0, 0, 1]}} for row in rows]

    edit(samples_file(run_a, "gen"), write)
    part = score(one(run_a), "gen", "single", "strict")
    assert part.values.shape == (24, 4)
    assert part.native is None
    assert score(one(run_a), "gen", "exact_match", "strict").values.shape == (24, 1)


def test_unequal_repeats(run_a):
    def write(rows):
        return [row | {"scores_per_repeat": {"exact_match": [1, 0, 1][: 1 + i % 3]}} for i, row in enumerate(rows)]

    edit(samples_file(run_a, "gen"), write)
    part = score(one(run_a), "gen", "exact_match", "strict")
    assert (~np.isnan(part.values)).sum(axis=1).tolist() == [1 + i % 3 for i in range(24)]
    assert part.n_missing == 0
    zeros = score(one(run_a, missing="zero"), "gen", "exact_match", "strict")
    np.testing.assert_array_equal(zeros.values, part.values)  # nothing was missing


def test_nan_booleans_and_numerals(run_a):
    def write(rows):
        for i, row in enumerate(rows):
            row["acc"] = [True, False, float("nan"), None][i % 4]
            row["acc_norm"] = str(bool(row["acc_norm"]))
        return rows

    edit(samples_file(run_a, "mc"), write)
    edit_results(run_a, lambda results: results["results"]["mc"].update({"acc,none": float("nan")}))
    run = one(run_a)
    part = score(run, "mc", "acc")
    assert part.values[:4, 0].tolist()[:2] == [1.0, 0.0]
    assert part.n_missing == 6
    assert part.native is None
    assert score(run, "mc", "acc_norm").values.mean() == score(run, "mc", "acc_norm").native


def test_a_mean_that_lm_eval_does_not_reproduce_is_flagged(run_a):
    edit_results(run_a, lambda results: results["results"]["mc"].update({"acc,none": 0.123}))
    rows = {(item.task, item.metric): item for item in analyze_run(one(run_a), Settings()).estimates}
    assert "mean_mismatch" in rows["mc", "acc"].diagnostics


@pytest.mark.parametrize(
    ("recorded", "arguments", "name"),
    [
        ("qdpv68r5", {}, "dummy"),  # lm-eval draws a name for a model whose arguments name none
        ("qdpv68r5", {"seed": 1}, "dummy"),
        ("qwen2500", "pretrained=qwen2500", "qwen2500"),
        ("qwen2500", {"model": "qwen2500"}, "qwen2500"),
        ("org/model", {}, "org/model"),
        ("", "pretrained=other", "other"),
    ],
)
def test_a_name_that_lm_eval_has_drawn_is_no_name(run_a, recorded, arguments, name):
    edit_results(
        run_a,
        lambda results: results.update(model_name=recorded, config={"model": "dummy", "model_args": arguments}),
    )
    assert one(run_a).model == name


def test_an_aggregation_that_is_no_mean_is_skipped(run_a):
    def change(results):
        results["configs"]["mc"]["metric_list"] = [
            {"metric": "acc", "aggregation": "trimmed_mean"},
            {"metric": "acc_norm", "aggregation": "def my_agg(items):\n    return max(items)\n"},
        ]
        results["results"]["mc"]["acc_norm,none"] = 1.0

    edit_results(run_a, change)
    run = one(run_a)
    assert "aggregated by trimmed_mean" in skipped(run, "mc", "acc").reason
    assert "not aggregated as a mean" in skipped(run, "mc", "acc_norm").reason


def test_images_are_paired_by_doc_id_and_target(run_a):
    def write(rows):
        for i, row in enumerate(rows):
            address = f"<PIL.PngImagePlugin.PngImageFile image mode=RGB size=8x8 at 0x7F{i:08X}>"
            row["doc"]["image"] = address
            row["doc_hash"] = f"{i:064x}"
        return rows

    other = Path(shutil.copytree(run_a, run_a.parent / "other"))
    edit(samples_file(run_a, "mc"), write)
    edit(samples_file(other, "mc"), lambda rows: [row | {"doc_hash": "f" + row["doc_hash"][1:]} for row in write(rows)])
    a, b = one(run_a, tasks=("mc",)), one(other, tasks=("mc",))
    assert a.scores[0].questions.kind == "doc_id"
    assert a.scores[0].questions.keys == b.scores[0].questions.keys
    result = compare_runs([(a, b)], Settings()).comparisons[0]
    assert (result.n_questions, result.n_only_a) == (12, 0)


def test_media_tasks_are_known_by_their_configuration(run_a):
    edit_results(run_a, lambda results: results["configs"]["mc"].update({"doc_to_image": ["image"]}))
    assert score(one(run_a), "mc", "acc").questions.kind == "doc_id"


def test_a_renamed_results_file_finds_its_only_samples(run_a):
    path = results_file(run_a)
    renamed = path.rename(path.with_name("results.json"))
    assert adapter.sniff(renamed)
    assert len(one(renamed).scores) == 11


def test_output_path_with_a_file_name(run_a):
    path = results_file(run_a)
    renamed = path.rename(path.with_name(path.name.replace("results_", "mine_")))
    assert len(one(renamed).scores) == len(one(run_a).scores) == 11


def test_samples_without_results_are_read_with_a_note(run_a):
    results_file(run_a).unlink()
    run = one(run_a)
    assert score(run, "mc", "acc").native is None
    assert score(run, "mc", "acc").higher_is_better is None
    assert run.groups == ()
    assert run.model == "sim__model-1"
    assert any("no results file" in note for note in noted(run))
    gen = score(run, "gen", "exact_match", "strict")
    assert gen.values.shape == (24, 1)
    assert any("the noise of the answers is not known" in note for note in noted(run))


def test_a_perplexity_without_results_is_not_taken_for_a_mean(run_a):
    results_file(run_a).unlink()
    edit(
        samples_file(run_a, "mc"), lambda rows: [row | {"metrics": ["perplexity"], "perplexity": -2.5} for row in rows]
    )
    assert "not a mean" in skipped(one(run_a), "mc", "perplexity").reason


def test_injected_rows_are_not_read_as_metrics(run_a):
    from harness_noise_adapters.lm_eval_harness.files.results import inject

    analysis = analyze_run(one(run_a), Settings())
    edit_results(run_a, lambda results: inject(results, analysis))
    again = one(run_a)
    assert [(p.task, p.metric) for p in again.scores] == [(p.task, p.metric) for p in one(run_a).scores]
    assert not any(part.metric.endswith("_avg") for part in (*again.scores, *again.skipped))

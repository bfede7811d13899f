"""lm-eval's metrics that are no means, and those that use several answers at once: live, and read back."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

pytest.importorskip("lm_eval")

from lm_eval.api import metrics as own

from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_run
from harness_noise.analysis.repeats import as_repeats
from harness_noise.data.scores import CorpusScores, Run
from harness_noise.settings import Settings
from harness_noise_adapters.extra.corpus import aggregates
from harness_noise_adapters.lm_eval_harness import noise
from harness_noise_adapters.lm_eval_harness.scoring import rescore
from support import lm_eval_models as toys
from support.lm_eval_files import one
from support.lm_eval_live import save

K = 3
TEXT = "the old river runs past a small green house near our town and nobody knows how deep it is"
WORDS = TEXT.split()


class Writer(toys.HashModel):
    """Repeats a sentence with slips that depend on seed, sentence and how often it was asked."""

    def answer(self, prompt: str) -> str:
        n = self.asked[prompt]
        self.asked[prompt] += 1
        words = prompt.split("Q: ")[-1].split("\n")[0].split()
        kept = [w for i, w in enumerate(words) if toys.uniform(self.seed, prompt, n, i) < 0.85]
        return " " + " ".join(kept or words[:1])


def sentences(n: int) -> list[dict[str, Any]]:
    out = []
    for i in range(n):
        words = [WORDS[int(toys.uniform("word", i, j) * len(WORDS))] for j in range(8 + i % 5)]
        text = " ".join([*words, str(i)])
        out.append(
            {"question": text, "answer": text, "template": f"t{i // 3}", "label": i % 2, "choices": ["no", "yes"]}
        )
    return out


SUMS = """
from sklearn.metrics import f1_score
def process(doc, results):
    said = len(results[0].split()) % 3
    return {"macro": (doc["label"], said), "slow": said, "fails": said, "draws": said}
def macro(items):
    gold, said = zip(*items)
    return f1_score(gold, said, average="macro", zero_division=0)
def slow(items):
    import time
    time.sleep(0.4)
    return max(items)
def fails(items):
    fails.calls = getattr(fails, "calls", 0) + 1
    if fails.calls > 1:
        raise KeyError("once only")
    return float(len(items))
def draws(items):
    import random
    return random.random() + len(items)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks")

    def listed(*names: str) -> list[dict[str, Any]]:
        return [{"metric": name} for name in names]

    text = ["bleu", "chrf", "ter"] + (["chrf++"] if hasattr(own, "chrfpp") else [])
    toys.write_task(path, "mt", sentences(30), metric_list=listed(*text), filter_list=[
        {"name": "all", "filter": [{"function": "take_first"}]}])  # fmt: skip
    toys.write_task(path, "binary", sentences(40), toys.CHOICE, metric_list=listed("acc", "f1", "mcc", "brier_score"))
    three = [row | {"label": i % 3} for i, row in enumerate(toys.docs(40))]
    toys.write_task(path, "three", three, toys.CHOICE, metric_list=listed("acc", "mcc"))
    single = {"output_type": "loglikelihood", "doc_to_text": "Q: {{question}}", "doc_to_target": " {{answer}}"}
    toys.write_task(path, "words", sentences(30), single, metric_list=listed("perplexity", "acc"))
    rolling = {"output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{question}}"}
    toys.write_task(
        path, "text", sentences(30), rolling, metric_list=listed("word_perplexity", "byte_perplexity", "bits_per_byte")
    )
    (path / "sums.py").write_text(SUMS)
    names = ("macro", "slow", "fails", "draws")
    toys.write_task(path, "custom", sentences(30), metric_list=None, filter_list=None)
    listing = "".join(f"  - {{metric: {n}, aggregation: !function sums.{n}, higher_is_better: true}}\n" for n in names)
    text_ = (path / "custom.yaml").read_text().replace("metric_list: null\n", f"metric_list:\n{listing}")
    (path / "custom.yaml").write_text(text_.replace("filter_list: null\n", "process_results: !function sums.process\n"))
    return path


TASKS = ["mt", "binary", "three", "words", "text"]


@pytest.fixture(scope="module")
def live(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, Any], Path]:
    out = tmp_path_factory.mktemp("live")
    with noise(repeats=K, cluster={"mt": "template"}) as session:
        results = save(folder, out, TASKS, Writer(), bootstrap_iters=0)
    assert session.problems == []
    return session, results, out


def corpus(run: Run, task: str, metric: str) -> CorpusScores:
    (found,) = [item for item in run.corpus if (item.task, item.metric) == (task, metric)]
    return found


def estimate(analysis: Any, task: str, metric: str) -> Any:
    (found,) = [item for item in analysis.estimates if (item.task, item.metric) == (task, metric)]
    return found


AGGREGATION = {
    ("mt", "bleu"): own.bleu, ("mt", "chrf"): own.chrf, ("mt", "ter"): own.ter,
    ("binary", "f1"): own.f1_score, ("binary", "mcc"): own.matthews_corrcoef, ("three", "mcc"): own.matthews_corrcoef,
    ("words", "perplexity"): own.perplexity, ("text", "word_perplexity"): own.weighted_perplexity,
    ("text", "byte_perplexity"): own.weighted_perplexity, ("text", "bits_per_byte"): own.bits_per_byte,
}  # fmt: skip
if hasattr(own, "chrfpp"):
    AGGREGATION["mt", "chrf++"] = own.chrfpp


@pytest.mark.filterwarnings("ignore::UserWarning")  # sklearn's, on a resample without a class
@pytest.mark.parametrize(("task", "metric"), list(AGGREGATION))
def test_sums_give_what_lm_evals_aggregation_gives(live: Any, task: str, metric: str) -> None:
    """On all questions and on resamples of them, each repeat by itself."""
    session, results, _ = live
    item = corpus(session.collected.run, task, metric)
    assert item.stats is not None, "sums are what makes it quick"
    (raw,) = [scores.values[metric] for scores in session.collected.tasks[task].filters.values()]
    aggregation = AGGREGATION[task, metric]
    rng = np.random.default_rng(5)
    n, repeats = len(raw), item.stats.shape[1]
    assert repeats == (K if task == "mt" else 1)
    for picked in [np.arange(n), *rng.integers(0, n, (20, n))]:
        for k in range(repeats):
            expected = aggregation([raw[i][k] for i in picked])
            ours = item.value(item.stats[picked, k].sum(axis=0)[None])
            assert ours == pytest.approx([expected], rel=1e-9, abs=1e-12)
    row = estimate(session.analysis, task, metric)
    by_hand = [aggregation([doc[k] for doc in raw]) for k in range(repeats)]
    assert row.mean == pytest.approx(np.mean(by_hand), rel=1e-9)
    (native,) = [value for key, value in results["results"][task].items() if key.startswith(f"{metric},")]
    assert by_hand[0] == native
    assert "mean_mismatch" not in row.diagnostics
    assert row.higher_is_better is results["higher_is_better"][task][metric]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("task", "metric"), [("mt", "bleu"), ("binary", "f1"), ("three", "mcc"), ("text", "word_perplexity")]
)
def test_the_standard_error_is_that_of_a_bootstrap_by_hand(live: Any, task: str, metric: str) -> None:
    session, _, _ = live
    (scores,) = session.collected.tasks[task].filters.values()
    raw, aggregation = scores.values[metric], AGGREGATION[task, metric]
    item = corpus(session.collected.run, task, metric)
    labels = item.clusters or tuple(map(str, range(len(raw))))
    clusters = [[i for i, label in enumerate(labels) if label == name] for name in dict.fromkeys(labels)]
    rng = np.random.default_rng(11)
    found = []
    for _ in range(250):
        rows = [i for c in rng.integers(0, len(clusters), len(clusters)) for i in clusters[c]]
        found.append(np.mean([aggregation([raw[i][k] for i in rows]) for k in range(len(raw[0]))]))
    row = estimate(session.analysis, task, metric)
    assert row.se == pytest.approx(np.std(found, ddof=1), rel=0.2)
    low, high = np.quantile(found, (0.025, 0.975))  # which is too narrow for few clusters: t's tails are wider
    assert row.df is not None
    assert row.interval == ("wilson" if row.range else "bootstrap")
    wider = special.stdtrit(row.df, 0.975) / special.ndtri(0.975) * math.sqrt(len(clusters) / (len(clusters) - 1))
    assert row.ci_low - 0.2 * row.se <= low < high <= row.ci_high + 0.2 * row.se
    assert row.ci_high - row.ci_low <= 1.25 * wider * (high - low)
    assert row.n_clusters == len(clusters)


def test_noise_of_repeats(live: Any) -> None:
    session, _, _ = live
    (scores,) = session.collected.tasks["mt"].filters.values()
    values = [own.bleu([doc[k] for doc in scores.values["bleu"]]) for k in range(K)]
    row = estimate(session.analysis, "mt", "bleu")
    assert row.var_prediction == pytest.approx(np.var(values, ddof=1))
    assert row.se_total**2 == pytest.approx(row.var_data + row.var_prediction)
    assert row.repeats_max == K
    single = estimate(session.analysis, "text", "word_perplexity")
    assert single.se_prediction is None
    assert "single_repeat" in single.diagnostics


def test_rows_that_are_injected(live: Any) -> None:
    session, results, _ = live
    row, ours = results["results"]["mt"], estimate(session.analysis, "mt", "bleu")
    assert row["bleu_avg,all"] == ours.mean
    assert row["bleu_avg_stderr,all"] == row["bleu_avg_clustered_stderr,all"] == ours.se
    assert row["bleu_total_stderr,all"] == ours.se_total
    text = results["results"]["text"]
    added = {key for key in text if "total" in key or "avg" in key or "data" in key or "prediction" in key}
    assert added == {
        f"{metric}_{carrier}_stderr,none"
        for metric in ("word_perplexity", "byte_perplexity", "bits_per_byte")
        for carrier in ("total", "avg_ci_low", "avg_ci_high")
    }
    assert all(isinstance(text[key], float) and math.isfinite(text[key]) for key in added)
    kept = results["samples"]["mt"][0]["scores_per_repeat"]["bleu"]  # a reader computes nothing: what it needs is here
    assert len(kept) == K
    json.dumps(results["noise"], allow_nan=False)


def test_brier_score_is_a_mean(live: Any) -> None:
    session, results, _ = live
    row = estimate(session.analysis, "binary", "brier_score")
    assert row.estimator == "cr2"
    assert row.mean == pytest.approx(results["results"]["binary"]["brier_score,none"], abs=1e-12)
    assert "mean_mismatch" not in row.diagnostics


def test_a_live_run_is_read_back_as_it_was(live: Any) -> None:
    session, _, out = live
    run = one(out)
    found = {(item.task, item.metric, item.scorer): item for item in analyze_run(run, Settings()).estimates}
    shown = {(item.task, item.metric, item.scorer): item for item in session.analysis.estimates}
    assert set(found) == set(shown)
    for key, item in found.items():
        for name in ("mean", "se", "ci_low", "se_total", "se_data", "se_prediction"):
            expected = getattr(shown[key], name)
            assert getattr(item, name) == (expected if expected is None else pytest.approx(expected, abs=1e-9)), key
        assert item.diagnostics == shown[key].diagnostics, key


@pytest.fixture(scope="module")
def pair(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs without our flag."""
    out = tmp_path_factory.mktemp("pair")
    for name, seed in (("a", 0), ("b", 9)):
        save(folder, out / name, TASKS, Writer(seed=seed), bootstrap_iters=0)
    return out / "a", out / "b"


def test_native_files_have_their_noise_too(pair: tuple[Path, Path]) -> None:
    run = one(pair[0])
    assert {(item.task, item.metric) for item in run.corpus} == set(AGGREGATION)
    assert all(item.stats is not None for item in run.corpus)
    analysis = analyze_run(run, Settings())
    for item in run.corpus:
        row = estimate(analysis, item.task, item.metric)
        assert row.mean == pytest.approx(item.native, rel=1e-9)
        assert row.se > 0
        assert not {"mean_mismatch", "skipped_metric"} & set(row.diagnostics)


@pytest.mark.parametrize("test", ["t", "permutation"])
def test_two_runs_are_compared(pair: tuple[Path, Path], test: str) -> None:
    a, b = one(pair[0]), one(pair[1])
    rows = {(r.task, r.metric): r for r in compare_runs([(a, b)], Settings(test=test, resamples=500)).comparisons}
    for key in AGGREGATION:
        expected = corpus(a, *key).native - corpus(b, *key).native
        assert rows[key].diff == pytest.approx(expected, abs=1e-9)
        assert rows[key].se > 0
        assert 0 < rows[key].p_value <= 1
    assert rows["binary", "acc_prob"].se > 0


def test_a_reported_value_that_is_another_is_flagged(pair: tuple[Path, Path], tmp_path: Path) -> None:
    import shutil

    folder = Path(shutil.copytree(pair[0], tmp_path / "a"))
    (path,) = folder.rglob("results_*.json")
    results = json.loads(path.read_text())
    results["results"]["binary"]["f1,none"] += 0.01
    path.write_text(json.dumps(results))
    analysis = analyze_run(one(folder), Settings())
    assert "mean_mismatch" in estimate(analysis, "binary", "f1").diagnostics
    assert "mean_mismatch" not in estimate(analysis, "binary", "mcc").diagnostics


def test_two_runs_of_a_model_are_repeats(pair: tuple[Path, Path]) -> None:
    a, b = one(pair[0]), one(pair[1])
    (joined,) = as_repeats([a, b])
    analysis = analyze_run(joined, Settings())
    for key in AGGREGATION:
        each = [corpus(run, *key).native for run in (a, b)]
        row = estimate(analysis, *key)
        assert row.repeats_max == 2
        assert row.mean == pytest.approx(np.mean(each))
        # two equal values look like one answer that was given twice
        assert row.var_prediction == (pytest.approx(np.var(each, ddof=1)) if each[0] != each[1] else None)
    assert corpus(a, "mt", "bleu").stats.shape[1] == 1


def test_without_lm_eval_the_reason_says_so(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lm_eval.api", None)
    run = one(pair[0])
    assert run.corpus == ()
    reasons = {item.metric: item.reason for item in run.skipped}
    assert "pip install harness-noise[lm-eval]" in reasons["bleu"]


# aggregations of a task's own


@pytest.fixture(scope="module")
def custom(folder: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch, noise(repeats=2) as session:
        for module in ("harness_noise.extra.corpus.estimating", aggregates.__name__):  # sklearn takes its time
            patch.setattr(f"{module}.CALLS", 250)
        results = toys.simple_evaluate(folder, ["custom"], Writer())
    assert session.problems == []
    return session, results


def test_a_tasks_own_aggregation_is_called_on_resamples(custom: Any) -> None:
    from sklearn.metrics import f1_score

    session, results = custom
    item = corpus(session.collected.run, "custom", "macro")
    assert item.stats is None
    row = estimate(session.analysis, "custom", "macro")
    assert item.native == results["results"]["custom"]["macro,none"]
    assert "mean_mismatch" not in row.diagnostics
    rng, found = np.random.default_rng(3), []
    table = np.array(item.records)  # (n, K, 2)
    for _ in range(300):
        rows = table[rng.integers(0, len(table), len(table))]
        each = [f1_score(rows[:, k, 0], rows[:, k, 1], average="macro", zero_division=0) for k in range(2)]
        found.append(np.mean(each))
    assert row.se == pytest.approx(np.std(found, ddof=1), rel=0.2)


@pytest.mark.parametrize(
    ("metric", "why"), [("slow", "s a call"), ("fails", "cannot be computed again"), ("draws", "the same value twice")]
)
def test_an_aggregation_that_cannot_be_called_often(custom: Any, metric: str, why: str) -> None:
    session, results = custom
    reasons = {item.metric: item.reason for item in session.collected.run.skipped}
    assert why in reasons[metric]
    row = estimate(session.analysis, "custom", metric)
    assert row.mean == results["results"]["custom"][f"{metric},none"]
    assert row.se is None
    assert "skipped_metric" in row.diagnostics


def test_the_budget_is_for_the_whole_run() -> None:
    budget = aggregates.CallingTime(2.0)
    budget.spend(0.0005, 3)
    assert budget.left == pytest.approx(0.5)
    with pytest.raises(aggregates.NotPossibleError, match=r"0\.0005 s a call"):
        budget.spend(0.0005, 3)


def values(raw: list[list[Any]], aggregation: Any, **more: Any) -> CorpusScores:
    from harness_noise.data.questions import Questions

    options: dict[str, Any] = {"native": None, "native_is_first": False} | more
    return aggregates.corpus_scores(
        raw, aggregation, aggregates.CallingTime(), task="t", metric="m", scorer="none",
        questions=Questions(tuple(map(str, range(len(raw))))), **options,
    )  # fmt: skip


def test_missing_answers_and_odd_classes() -> None:
    item = values([[-1.0, -2.0], [-3.0, None], [math.nan, -1.0]], own.perplexity)
    assert item.n_missing == 2
    assert values([[-1.0, -2.0], [-3.0]], own.perplexity).n_missing == 0  # one that was not asked is not missing
    assert item.value(np.nansum(item.stats, axis=0)) == pytest.approx([math.exp(2), math.exp(1.5)])
    # classes that are no small numbers: sklearn itself counts them
    labels = [[("cat", "dog")], [("dog", "dog")], [("cat", "cat")], [("cow", "cow")]]
    item = values(labels, own.matthews_corrcoef)
    assert item.stats is None
    assert item.aggregate([row[0] for row in labels]) == own.matthews_corrcoef([row[0] for row in labels])
    with pytest.raises(aggregates.NotPossibleError, match="infinite"):
        values([[(-math.inf, 3)], [(-1.0, 2)]], own.weighted_perplexity)
    with pytest.raises(aggregates.NotPossibleError, match="no question"):
        values([[None], [math.nan]], own.perplexity)


# several answers at once


PASSES = """
from math import comb
def keep(resps, docs):
    return [list(answers) for answers in resps]
def process(doc, results):
    answers = results[0] if isinstance(results[0], list) else results
    n, c = len(answers), sum(answer.strip() == doc["answer"] for answer in answers)
    return {f"pass@{k}": 1 - comb(n - c, k) / comb(n, k) if k <= n else 1.0 for k in KS}
"""


def pass_task(folder: Path, name: str, ks: list[int], repeats: int) -> None:
    toys.write_task(folder, name, toys.docs(15), repeats=repeats, metric_list=None, filter_list=None)
    (folder / f"{name}_scoring.py").write_text(PASSES.replace("KS", str(ks)))
    listing = "".join(f"  - {{metric: pass@{k}, aggregation: mean, higher_is_better: true}}\n" for k in ks)
    text = (folder / f"{name}.yaml").read_text().replace("metric_list: null\n", f"metric_list:\n{listing}")
    kept = f"{{name: all, filter: [{{function: custom, filter_fn: !function {name}_scoring.keep}}]}}"
    text = text.replace(
        "filter_list: null\n", f"filter_list:\n  - {kept}\nprocess_results: !function {name}_scoring.process\n"
    )
    (folder / f"{name}.yaml").write_text(text)


@pytest.mark.parametrize("ks", [[1, 3], [2, 4], [1]])
def test_pass_at_every_k(tmp_path: Path, ks: list[int]) -> None:
    from harness_noise.stats.passk import pass_at_k

    pass_task(tmp_path, "code", ks, 6)
    with noise() as session:
        results = save(tmp_path, tmp_path / "out", ["code"], toys.HashModel())
    assert session.problems == []
    rows = results["samples"]["code"]
    right = np.array([[float(a.strip() == row["doc"]["answer"]) for a in row["resps"][0]] for row in rows])
    assert 0 < right.mean() < 1
    shown = {item.metric: item for item in session.analysis.estimates}
    # pass@1 tells how many answers are right, and with that every other
    assert list(map(rescore.pass_order, shown)) == ks + [k for k in range(1, 7) if 1 in ks and k not in ks]
    for metric, row in shown.items():
        k = rescore.pass_order(metric)
        expected = pass_at_k(right, k)
        assert row.mean == pytest.approx(expected.mean())
        if k > 1:
            assert row.se == pytest.approx(expected.std(ddof=1) / math.sqrt(len(expected)))
            assert "uses_all_repeats" in row.diagnostics
            assert row.se_total is row.se_data is row.se_prediction is None
        assert "mean_mismatch" not in row.diagnostics
        if k not in ks:  # nothing that lm-eval does not report
            assert not any(key.startswith((f"{metric}_", f"{metric},")) for key in results["results"]["code"])
    again = {item.metric: item for item in analyze_run(one(tmp_path / "out"), Settings()).estimates}
    assert {name: item.mean for name, item in again.items()} == pytest.approx(
        {name: item.mean for name, item in shown.items()}
    )
    assert {name: item.diagnostics for name, item in again.items()} == {
        name: item.diagnostics for name, item in shown.items()
    }


def test_a_vote_has_a_row_of_its_own(tmp_path: Path) -> None:
    digits = toys.GENERATE["filter_list"][1]["filter"][0]
    steps = [digits, {"function": "majority_vote"}, {"function": "take_first"}]
    toys.write_task(tmp_path, "vote", toys.docs(24), repeats=5, filter_list=[{"name": "vote", "filter": steps}])
    with noise(repeats=8) as session:
        results = save(tmp_path, tmp_path / "out", ["vote"], toys.HashModel())
    native = results["results"]["vote"]["exact_match,vote"]
    single, vote = session.analysis.estimates
    assert (single.metric, vote.metric) == ("exact_match", "exact_match@5")
    assert single.repeats_max == 8
    assert vote.mean == native != single.mean
    each = [row["exact_match"] for row in results["samples"]["vote"]]
    assert vote.se == pytest.approx(np.std(each, ddof=1) / math.sqrt(24))
    assert "uses_all_repeats" in vote.diagnostics
    assert vote.se_prediction is None
    assert results["results"]["vote"]["exact_match_avg,vote"] == single.mean
    assert not any("@" in key for key in results["results"]["vote"])
    again = analyze_run(one(tmp_path / "out"), Settings()).estimates
    assert [(row.metric, row.mean, row.se) for row in again] == [
        (row.metric, row.mean, row.se) for row in (single, vote)
    ]


def test_what_hangs_on_the_order_of_the_questions_is_not_resampled() -> None:
    """As lm-eval's median before 0.4.12, the middle row of the file: a resample has no middle row."""
    raw = [[float(i)] for i in (3, 1, 4, 1, 5, 9, 2, 6)]
    with pytest.raises(aggregates.NotPossibleError, match="another value if the questions are in another order"):
        values(raw, lambda items: items[len(items) // 2])
    drawn = iter((1.0, 2.0, 3.0))
    with pytest.raises(aggregates.NotPossibleError, match="the same value twice"):
        values(raw, lambda items: next(drawn))
    assert values(raw, lambda items: sorted(items)[len(items) // 2]).of_rows is None

"""Metrics whose aggregation groups rows: no resampling, whole groups left out, and no error bar without any."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores
from harness_noise.extra.corpus.grouping import delete_one_variance, key_of, seen_of

SIZE = 4


def em(items: list[tuple[str, float]]) -> float:
    """The share of questions of which all rows are right, as MultiRC's em."""
    rows = defaultdict(list)
    for group, right in items:
        rows[group].append(right)
    return float(np.mean([all(x) for x in rows.values()]))


def mean_of(items: list[tuple[str, float]]) -> float:
    return float(np.mean([right for _, right in items]))


def rows(seed: int, questions: int = 40, p: float = 0.85) -> list[tuple[str, float]]:
    rng = np.random.default_rng(seed)
    return [(f"g{i // SIZE}", float(rng.random() < p)) for i in range(questions * SIZE)]


def part(items: list[tuple[str, float]], aggregate: Any, *, clusters: bool, **fields: Any) -> CorpusScores:
    return CorpusScores(
        task="t",
        metric="em",
        scorer="none",
        questions=Questions(tuple(map(str, range(len(items))))),
        clusters=tuple(group for group, _ in items) if clusters else None,
        cluster_spec="group" if clusters else None,
        records=tuple((item,) for item in items),
        aggregate=aggregate,
        bounds=(0.0, 1.0),
        **fields,
    )


def run(name: str, *parts: CorpusScores) -> hn.Run:
    return hn.Run(model=name, name=name, harness="h", corpus=parts)


def by_words(items: list[Any]) -> float:
    """`em` of records whose groups are part of a text, as ReCoRD's are."""
    return em([(text.split("+")[0], right) for text, right in items])


def test_em_by_row_has_no_error_bar_where_its_groups_are_not_known() -> None:
    items: list[Any] = [(f"{group}+{i}", right) for i, (group, right) in enumerate(rows(0))]
    (row,) = hn.analyze(run("a", part(items, by_words, clusters=False))).estimates
    assert row.mean == pytest.approx(em(rows(0)))
    assert (row.se, row.ci_low, row.ci_high) == (None, None, None)
    assert "grouped_metric" in row.diagnostics


def test_em_by_question_has_the_jackknife_over_whole_questions() -> None:
    items = rows(1)
    (row,) = hn.analyze(run("a", part(items, em, clusters=True))).estimates
    whole = np.array([all(right for _, right in items[i : i + SIZE]) for i in range(0, len(items), SIZE)])
    assert "grouped_metric" in row.diagnostics
    assert row.se == pytest.approx(whole.std(ddof=1) / np.sqrt(len(whole)))
    assert row.ci_low < row.mean < row.ci_high
    with pytest.raises(hn.InputError, match="is not resampled"):
        hn.analyze(run("a", part(items, em, clusters=True)), interval="bootstrap")


def test_what_a_metric_groups_its_records_by_is_its_cluster() -> None:
    """Found in tuples and in mappings, and the same as if it were named; of several keys the finest."""
    items = rows(1)
    (named,) = hn.analyze(run("a", part(items, em, clusters=True))).estimates
    (found,) = hn.analyze(run("a", part(items, em, clusters=False))).estimates
    assert (found.se, found.ci_low, found.ci_high) == (named.se, named.ci_low, named.ci_high)
    assert (found.cluster, "grouped_metric" in found.diagnostics) == ("what the metric groups by (0)", True)
    docs: list[Any] = [
        (right, {"idx": {"paragraph": i // 8, "question": i // SIZE}, "answer": i % 5})
        for i, (_, right) in enumerate(items)
    ]

    def of_docs(records: list[Any]) -> float:
        return em([(str((doc["idx"]["paragraph"], doc["idx"]["question"])), right) for right, doc in records])

    key = key_of(of_docs, docs)
    assert key is not None
    assert (key.name, len(set(key.groups))) == ("1.idx.question", 40)
    row = hn.compare(*(run(n, part(x, em, clusters=False)) for n, x in (("a", items), ("b", rows(3))))).comparisons[0]
    assert row.cluster == "what the metric groups by (0)"
    assert row.se > 0


def test_a_function_of_the_records_groups_by_nothing() -> None:
    rng = np.random.default_rng(12)
    gold = rng.integers(0, 5, 120)
    said = np.where(rng.random(120) < 0.7, gold, rng.integers(0, 5, 120))
    pairs = list(zip(gold.tolist(), said.tolist(), strict=True))

    def macro(records: list[Any]) -> float:
        return float(np.mean([np.mean([x == y for x, y in records if x == c]) for c in {x for x, _ in records}]))

    assert key_of(lambda records: float(np.mean([x == y for x, y in records])), pairs) is None
    assert key_of(macro, pairs) is None
    assert key_of(lambda records: float(np.mean([x for x, _ in records])), pairs) is None


def test_categories_of_a_mean_over_categories_are_no_clusters() -> None:
    rng = np.random.default_rng(14)
    items = [(f"c{i % 5}", float(rng.random() < 0.3 + 0.1 * (i % 5))) for i in range(150)]

    def macro(records: list[Any]) -> float:
        of = defaultdict(list)
        for category, right in records:
            of[category].append(right)
        return float(np.mean([np.mean(x) for x in of.values()]))

    (row,) = hn.analyze(run("a", part(items, macro, clusters=False))).estimates
    assert (row.cluster, "grouped_metric" in row.diagnostics) == (None, False)
    each = [[right for category, right in items if category == f"c{c}"] for c in range(5)]
    assert row.se == pytest.approx(np.sqrt(sum(np.var(x, ddof=1) / len(x) for x in each)) / 5, rel=0.05)


def test_an_answer_that_is_only_compared_is_no_group() -> None:
    """Consistency over prompts: other names for answers change nothing either, and are no groups of the metric."""
    rng = np.random.default_rng(13)
    items = [(q, prompt, "ABCD"[(q + int(rng.random() < 0.2)) % 4]) for q in range(40) for prompt in range(5)]

    def consistency(records: list[Any]) -> float:
        answers = defaultdict(list)
        for q, _, answer in records:
            answers[q].append(answer)
        return float(np.mean([np.mean([x == y for x in row for y in row]) for row in answers.values()]))

    key = key_of(consistency, items)
    assert key is not None
    assert (key.name, len(set(key.groups))) == ("0", 40)


def test_answers_whose_spread_is_measured_are_no_groups() -> None:
    """Entropy and Simpson's index: biased in resamples, so without an error bar, and not the jackknife over answers."""
    rng = np.random.default_rng(0)
    items: list[Any] = [(i % 2, f"a{answer}") for i, answer in enumerate(rng.integers(0, 60, 300))]

    def entropy(records: list[Any]) -> float:
        shares = np.unique([answer for _, answer in records], return_counts=True)[1] / len(records)
        return float(-(shares @ np.log(shares)))

    def simpson(records: list[Any]) -> float:
        counts = np.unique([answer for _, answer in records], return_counts=True)[1]
        return float((counts * (counts - 1)).sum() / (len(records) * (len(records) - 1)))

    for metric in (entropy, simpson):
        assert key_of(metric, items) is None
    (row,) = hn.analyze(run("a", replace(part(items, entropy, clusters=False), bounds=None))).estimates
    assert (row.cluster, row.se, row.ci_low) == (None, None, None)
    nearly: list[Any] = [(f"g{i // SIZE}", float(i != 7)) for i in range(160)]
    assert key_of(em, nearly) is not None


def test_a_difference_of_em_is_left_out_question_by_question() -> None:
    a, b = rows(2), rows(3, p=0.7)
    row = hn.compare(*(run(n, part(x, em, clusters=True)) for n, x in (("a", a), ("b", b)))).comparisons[0]
    d = [
        float(all(r for _, r in a[i : i + SIZE])) - float(all(r for _, r in b[i : i + SIZE]))
        for i in range(0, len(a), SIZE)
    ]
    assert row.diff == pytest.approx(np.mean(d))
    assert row.se == pytest.approx(np.std(d, ddof=1) / np.sqrt(len(d)))
    assert row.ci_low <= row.diff <= row.ci_high


def test_a_called_function_of_the_rows_is_not_taken_for_one_that_groups() -> None:
    items = rows(4)
    (row,) = hn.analyze(run("a", part(items, mean_of, clusters=False))).estimates
    x = np.array([right for _, right in items])
    assert "grouped_metric" not in row.diagnostics
    assert row.se == pytest.approx(x.std(ddof=1) / np.sqrt(len(x)))


def test_a_metric_that_hangs_on_fewer_than_three_rows_has_no_error_bar() -> None:
    (row,) = hn.analyze(run("a", part(rows(5), lambda items: max(r for _, r in items), clusters=False))).estimates
    assert row.se is None
    assert "few_resampled" in row.diagnostics


def test_an_order_statistic_keeps_the_bootstrap() -> None:
    def median(items: list[tuple[str, float]]) -> float:
        return float(np.median([right for _, right in items]))

    items = [(g, float(np.random.default_rng(i).random())) for i, (g, _) in enumerate(rows(6))]
    (row,) = hn.analyze(run("a", part(items, median, clusters=False, of_rows="order"))).estimates
    assert 0.02 < row.se < 0.08


def test_what_is_seen_of_functions_and_of_groups() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.random(80), rng.random(80)
    functions = {
        "mean": lambda at: float(x[at].mean()),
        "correlation": lambda at: float(np.corrcoef(x[at], x[at] + y[at])[0, 1]),
        "exp": lambda at: float(np.exp(x[at].mean())),
    }
    assert {name: seen_of(f, 80) for name, f in functions.items()} == dict.fromkeys(functions, "function")
    items = rows(8, questions=20)
    assert seen_of(lambda at: em([items[i] for i in at]), len(items)) == "grouped"


def test_delete_one_variance_of_a_mean_is_its_variance() -> None:
    x = np.random.default_rng(9).random(30)
    theta = (x.sum() - x) / 29
    assert delete_one_variance(theta) == pytest.approx(x.var(ddof=1) / 30)


class Named(NamedTuple):
    """A record whose constructor takes its parts one by one."""

    group: str
    right: float


def test_records_with_names_are_grouped_as_plain_ones_are() -> None:
    items = rows(1)
    named: list[Any] = [Named(*item) for item in items]
    for clusters in (False, True):
        plain, other = (hn.analyze(run("a", part(each, em, clusters=clusters))).estimates[0] for each in (items, named))
        assert "grouped_metric" in plain.diagnostics
        assert (other.mean, other.se, other.diagnostics) == (plain.mean, plain.se, plain.diagnostics)

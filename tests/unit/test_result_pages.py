"""What the page of a result says in words, and what its figures are drawn from."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.comparison import by_question, compare_runs
from harness_noise.extra.arena import figures as arena_figures
from harness_noise.extra.arena.build import arena
from harness_noise.extra.arena.report import ranked
from harness_noise.report import canvas, figures, fmt, html
from harness_noise.report.sentences import methods
from harness_noise.report.summary import FLIPPED, summarise
from harness_noise.results.rows import Comparison
from harness_noise.settings import Settings
from harness_noise.stats.resampling import cluster_means
from support.boards import board, sliced_board


def said(text: str, kind: str) -> str:
    found = re.search(rf'<p class="{kind}"[^>]*>(.*?)</p>', text, re.S)
    assert found is not None
    return unescape(found[1])


def page_of(*pairs: tuple[hn.Run, hn.Run], **settings: object) -> str:
    chosen = Settings(**settings)  # type: ignore[arg-type]
    return html.page(compare_runs(pairs, chosen), questions=by_question(pairs))


def test_the_verdict_names_the_better_model_whichever_way_is_better() -> None:
    a, b = board(2, 3, spread=0.3)
    assert said(page_of((b, a)), "say").startswith("model 1 is better than model 0 by ")
    assert said(page_of((a, b)), "say").startswith("model 0 is worse than model 1 by ")
    lower = [replace(run, scores=(replace(run.scores[0], higher_is_better=False),)) for run in (a, b)]
    assert "model 0 is better than model 1, where lower is better, by " in said(page_of((lower[0], lower[1])), "say")
    assert "← model 0 better" in page_of((lower[0], lower[1]))
    assert "model 0 better →" in page_of((lower[1], lower[0]))


def test_what_is_not_told_apart_and_what_is_equivalent() -> None:
    a, b = board(2, 3, spread=0.0, seed=1)
    assert said(page_of((a, b)), "say") == "model 0 is not shown to differ from model 1."
    assert said(page_of((a, b), margin=0.3), "say") == "model 0 and model 1 are equivalent within 30 points."


def test_several_rows_are_counted() -> None:
    runs = board(4, 3, spread=0.25)
    text = page_of(*((run, runs[0]) for run in runs[1:]))
    rows = compare_runs([(run, runs[0]) for run in runs[1:]], Settings()).comparisons
    better = sum(row.verdict == "A better" for row in rows)
    assert better >= 2
    left = 3 - better
    rest = f", {left} not shown to differ after adjustment" if left else ""
    assert said(text, "say") == f"3 rows against model 0: {better} better, 0 worse{rest}."


def test_the_questions_of_a_row_are_what_its_difference_is_the_mean_of() -> None:
    runs = sliced_board(3)
    (one,) = by_question([(runs[0], runs[2])])
    row = compare_runs([(runs[0], runs[2])], Settings()).comparisons[0]
    assert len(one.keys) == row.n_questions
    assert one.diff.mean() == pytest.approx(row.diff)
    assert one.mean_a.mean() == pytest.approx(row.mean_a)
    assert one.clusters is not None
    assert len(set(one.clusters)) == row.n_clusters


@pytest.mark.parametrize("levels", [5, 1000])
def test_bars_hold_every_question_once_and_zero_is_a_bar_of_its_own(levels: int) -> None:
    rng = np.random.default_rng(levels)
    d = rng.integers(-levels, levels + 1, 700) / levels
    d[:50] = 0.0
    bars = figures.bins(d)
    assert sum(count for *_, count in bars) == 700
    middle = [(low, high) for low, high, *_ in bars if low < 0 < high]
    assert len(middle) == 1
    for (_, end, *_), (start, *_) in pairwise(bars):
        assert end <= start + 1e-9


def test_clusters_are_named_in_order_and_of_many_those_at_both_ends() -> None:
    d = np.repeat([0.5, -0.25, 0.0], 4)
    row = hn.estimate_difference([0.5, 0.0], [0.25, 0.0])
    picture = figures.clusters("c", d, ["x"] * 4 + ["y"] * 4 + ["z"] * 4, row)
    assert picture is not None
    titles = re.findall(r"<title>(\w): A − B = (−?[\d.]+), 4 questions", picture.body)  # nothing varies within: no ±
    assert list(dict.fromkeys(titles)) == [("x", "0.500"), ("z", "0.000"), ("y", "−0.250")]
    assert re.findall(r">(\w)</text>", picture.body)[-3:] == ["x", "z", "y"]
    assert "A is better in 1 and B in 1" in picture.alt
    many = figures.clusters("c", np.tile(d, 50), [f"k{i // 4}" for i in range(600)], row)
    assert many is not None
    assert many.body.count('class="iv"') == figures.ENDS
    assert "Shown are the 10 at each end" in many.alt
    assert figures.clusters("c", d, [f"k{i}" for i in range(12)], row) is None, "every question its own"


def test_clusters_have_their_errors_and_a_test_of_whether_they_differ() -> None:
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(12), 10)
    labels, row = [f"k{i:02}" for i in codes], hn.estimate_difference([0.5, 0.0], [0.25, 0.0])
    for shift, said in ((0.0, "is not shown to vary between clusters"), (1.0, "varies between clusters")):
        d = rng.normal(size=120) + shift * np.repeat(rng.normal(size=12), 10)
        found = cluster_means(d, codes)
        within = sum(((d[codes == g] - d[codes == g].mean()) ** 2).sum() for g in range(12)) / (120 - 12)
        np.testing.assert_allclose(found.means, [d[codes == g].mean() for g in range(12)])
        np.testing.assert_allclose(found.se, np.sqrt(within / 10))
        assert found.p_value == cluster_means(d + 3, codes).p_value, "whatever A − B is"
        picture = figures.clusters("c", d, labels, row)
        assert picture is not None
        assert f"The difference {said} (permutation p {fmt.equals_p(found.p_value)})" in picture.alt
        first = f"{fmt.number(found.means[0], 3)} ± {fmt.number(found.se[0], 3)}"
        assert f"k00: A − B = {first}, 10 questions" in picture.body
    assert math.isnan(cluster_means(np.repeat([0.5, 0.0], 5), np.repeat([0, 1], 5)).p_value)
    assert math.isnan(cluster_means(rng.normal(size=5), np.arange(5)).p_value)


def test_the_permutation_p_is_that_of_another_program() -> None:
    from scipy import stats as other

    rng = np.random.default_rng(3)
    groups = [rng.normal(size=n) for n in (4, 9, 6)]
    d, codes = np.concatenate(groups), np.repeat(np.arange(3), [4, 9, 6])

    def statistic(*each: np.ndarray) -> float:
        return float(other.f_oneway(*each).statistic)  # rises with the sum of squares between

    exact = other.permutation_test(groups, statistic, n_resamples=4000, alternative="greater", rng=7).pvalue
    assert cluster_means(d, codes).p_value == pytest.approx(exact, abs=4 * (exact * (1 - exact) / 999) ** 0.5)


def test_answers_stand_beside_each_other_and_are_only_text() -> None:
    runs = board(2, 3)
    table = compare_runs([(runs[0], runs[1])], Settings(), 2)
    hostile = "<img src=x onerror=alert(1)></script>"
    told = {"target": "42", "answers_a": ("41", "41", hostile), "answers_b": ("42", "42", "42")}
    flips = tuple(replace(flip, **told) for flip in table.questions)
    text = html.page(replace(table, questions=flips), questions=by_question([(runs[0], runs[1])]))
    assert text.count('<div class="sides">') == 2
    assert "Target: <bdi>42</bdi>" in text
    assert "(2 of 3) 41" in text
    assert "(3 of 3) 42" in text
    assert "<img" not in text
    assert "&lt;img src=x" in text


def test_flips_of_two_runs_of_one_model_stand_with_their_own_run() -> None:
    """Their models are alike, so the runs tell the rows apart: on a page, in a table and in a list."""
    base, *others = (replace(run, model="m", name=f"runs/{run.name}/r") for run in board(3, 3))
    pairs = [(run, base) for run in others]
    table = compare_runs(pairs, Settings(), 1)
    answers = ("the answer of run 1", "the answer of run 2")
    flips = [replace(flip, answers_a=(answer,)) for flip, answer in zip(table.questions, answers, strict=True)]
    table = replace(table, questions=tuple(flips))
    sections = html.page(table, questions=by_question(pairs)).split("<section data-detail")[1:]
    sections = [section.partition("</section>")[0] for section in sections]
    assert [[answer in section for answer in answers] for section in sections] == [[True, False], [False, True]]
    (listed,) = (part for part in summarise(table).sections if part.title == FLIPPED)
    assert [row[0] for row in listed.rows] == ["m (run 1) − m (run 0)", "m (run 2) − m (run 0)"]
    assert [title.split(",")[0] for title, _ in summarise(table, wide=True).listings] == [
        "1. m (run 1) − m (run 0)",
        "2. m (run 2) − m (run 0)",
    ]


def test_settings_are_said_of_what_was_done() -> None:
    runs = sliced_board(2)
    table = compare_runs([(runs[0], runs[1])], Settings(margin=0.02))
    words = methods(table.comparisons, table.settings)
    assert "(clustered by c; CR2)" in words
    assert "less than 2 points" in words
    assert "Holm" not in words, "one row is a family of its own"
    alone = methods(hn.analyze(board(1)[0]).estimates, Settings().to_dict())
    assert "± is the standard error (CR2); CI: 95% confidence interval (Wilson)." in alone
    assert "paired" not in alone
    unpaired = compare_runs([(runs[0], runs[1])], Settings(unpaired=True))
    assert "A − B, unpaired" in methods(unpaired.comparisons, unpaired.settings)


def test_the_foot_of_a_board_is_about_all_its_pairs(tmp_path: Path) -> None:
    """The last model alone lacks answers, and a pair in which nothing varies has an interval of its own."""
    runs = board(4)
    runs[3] = replace(runs[3], scores=(replace(runs[3].scores[0], n_missing=5),))
    table = hn.arena([*runs, replace(runs[0], model="again", name="run 9")])
    for page in hn.write_html(table, tmp_path):
        foot = page.read_text(encoding="utf-8").partition("How this was made</h2>")[2]
        assert "Answers without a score are left out and counted." in foot
        assert "Bonett–Price" in foot


def test_counts_have_no_standard_error_and_none_is_named() -> None:
    counts = hn.compare((74, 100), (66, 100))
    assert "±" not in methods(counts.comparisons, counts.settings)
    assert "(Fisher's exact; CI: Agresti–Caffo)" in methods(counts.comparisons, counts.settings)


def test_a_comparison_without_a_number_has_a_page() -> None:
    text = html.page(Comparison(Settings().to_dict(), ()))
    assert "<h1" in text
    assert 'class="verdict' not in text


def test_axes_have_round_numbers_inside_them() -> None:
    for low, high in ((-0.2, 0.7), (3.4, 4.3), (0, 1e-4), (-1200, 5000)):
        axis = canvas.Axis(low, high)
        ticks = axis.ticks()
        assert 3 <= len(ticks) <= 8
        assert all(low <= tick <= high for tick in ticks)
        assert len({text for _, text in axis.texts()}) == len(ticks)
    assert canvas.Axis(0, 1.05, whole=True).ticks() == [0, 1]
    assert canvas.Axis(90, 1100, log=True).ticks()[0] == 100


def test_a_picture_is_a_png_of_its_pixels() -> None:
    import base64
    import struct
    import zlib

    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 4)).astype(np.uint8)
    data = base64.b64decode(canvas.png(pixels).partition(",")[2])
    assert struct.unpack(">II", data[16:24]) == (7, 5)
    start = data.index(b"IDAT") + 4
    (length,) = struct.unpack(">I", data[start - 8 : start - 4])
    lines = np.frombuffer(zlib.decompress(data[start : start + length]), dtype=np.uint8).reshape(5, 29)
    np.testing.assert_array_equal(lines[:, 1:].reshape(5, 7, 4), pixels)


def zero_one(name: str, seed: int) -> hn.Run:
    values = (np.random.default_rng(seed).random((80, 1)) < 0.5).astype(float)
    questions = hn.Questions(tuple(f"q{i}" for i in range(80)), "id")
    return hn.Run(name, name, "array", scores=(hn.Scores("t", "acc", "none", questions, values, bounds=(0.0, 1.0)),))


def test_one_row_is_a_block_of_names_with_their_values_and_several_are_a_table() -> None:
    a, b, c = (zero_one(name, seed) for name, seed in (("a", 0), ("b", 1), ("c", 2)))
    assert re.search(r'<div><dt[^>]*>95% CI</dt><dd[^>]*><bdi>\[.*?\]</bdi></dd><dd class="muted">', page_of((a, b)))
    assert '<th scope="col"' in page_of((a, b), (c, b))


def test_the_heading_says_how_many_other_questions_flipped_as_much() -> None:
    a, b = zero_one("a", 0), zero_one("b", 1)
    n = int((a.scores[0].values != b.scores[0].values).sum())
    assert f"Questions that flipped most (12 of {n} that flipped at least as much as the last)" in page_of((a, b))


def test_no_tick_of_the_histogram_is_beyond_what_a_difference_can_be() -> None:
    a, b = zero_one("a", 0), zero_one("b", 1)
    (one,) = by_question([(a, b)])
    picture = figures.histogram("h", one.diff, compare_runs([(a, b)], Settings()).comparisons[0])
    labels = [float(text.replace("−", "-")) for text in re.findall(r">(−?[0-9.]+)</text>", picture.body)]
    assert max(map(abs, labels)) <= 100


@pytest.mark.parametrize(
    ("a", "b", "shown"),
    [
        ("mockllm/model (old)", "mockllm/model (new)", ("mockllm/model…old)", "mockllm/model…new)")),
        ("short", "also short", ("short", "also short")),
        ("x" * 30, "y" * 30, ("x" * 17 + "…", "y" * 17 + "…")),
        ("org/" + "a" * 40, "org/" + "b" * 40, ("…" + "a" * 16 + "…", "…" + "b" * 16 + "…")),
    ],
)
def test_names_are_cut_where_they_are_equal(a: str, b: str, shown: tuple[str, str]) -> None:
    assert fmt.cut_apart(a, b, 18) == shown


def test_the_caption_of_the_heat_map_names_its_models() -> None:
    (table,) = arena(board(4, 3, spread=0.25), Settings()).boards
    picture = arena_figures.heatmap(table)
    assert picture is not None
    named = picture.alt.partition("From left to right: ")[2]
    assert sorted(named.removesuffix(".").split(", ")) == [f"model {i}" for i in range(4)]


def test_means_that_differ_by_rounding_alone_keep_their_order() -> None:
    (table,) = arena(board(3, 3, spread=0.25), Settings()).boards
    first, second, _ = table.models
    assert first.mean is not None
    equal = (replace(first, mean=0.7), replace(second, mean=np.nextafter(0.7, 1)))
    assert [row.model for row in ranked(replace(table, models=equal))] == [first.model, second.model]

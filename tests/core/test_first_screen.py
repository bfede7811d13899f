"""The first screen of a comparison: short, and each reason that would change its verdict is computed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.data.clusters import CROSS
from harness_noise.report import terminal
from harness_noise.report.html import page
from harness_noise.report.sentences import sentence
from harness_noise.report.summary import changes
from harness_noise.results.rows import LARGEST, Difference

NUMBER = re.compile(r"(?<![\w.])[−+]?\d[\d,]*(?:\.\d+)?")


def run(name: str, values: np.ndarray, clusters: list[str] | None = None) -> hn.Run:
    questions = hn.Questions(tuple(map(str, range(len(values)))), "id")
    labels = None if clusters is None else tuple(clusters)
    missing = int(np.isnan(values).sum())
    part = hn.Scores("t", "acc", "none", questions, values, clusters=labels, n_missing=missing, bounds=(0.0, 1.0))
    return hn.Run(name, name, "array", scores=(part,))


def sides(n: int, won: int, lost: int) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.zeros((n, 1)), np.zeros((n, 1))
    a[:won], b[won : won + lost] = 1, 1
    return a, b


@pytest.mark.parametrize(("won", "lost"), [(30, 4), (12, 10)])
@pytest.mark.parametrize("width", [80, 120])
def test_one_row_has_at_most_12_lines_and_20_figures(
    won: int, lost: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = sides(200, won, lost)
    clusters = [f"c{i // 4}" for i in range(200)]
    table = hn.compare(run("new", a, clusters), run("old", b, clusters))
    monkeypatch.setenv("COLUMNS", str(width))
    text = terminal.text(table, details=False)
    assert len(text.splitlines()) <= 12, text
    assert len(NUMBER.findall(text)) <= 20, text
    for label in ("A ", "B ", "A − B ", "p ", "smallest detectable difference"):
        assert re.search(rf"^{label}", text, re.MULTILINE), label
    assert "SE (1 answer)" not in text
    assert "SE (1 answer)" in terminal.text(table, details=True)


def test_missing_answers_that_could_change_it_are_named_and_others_are_not() -> None:
    a, b = sides(480, 16, 4)
    whole = hn.compare(run("a", a), run("b", b)).rows[0]
    assert changes(whole) == []
    a[-8:], b[-8:] = np.nan, 1
    row = hn.compare(run("a", a), run("b", b)).rows[0]
    assert row.if_missing == "could change the verdict"
    said = "the 8 missing answers (to “not shown to differ”; the estimate from +0.83 to +2.50 points)"
    assert changes(row) == [f"What would change this verdict: {said}."]
    screen = " ".join(str(hn.compare(run("a", a), run("b", b))).split())
    assert said in screen
    alone = " ".join(hn.compare(run("a", a), run("b", b)).verdict.split())
    assert (
        "the 8 missing answers could change this to “not shown to differ” (A − B from +0.83 to +2.50 points)" in alone
    )


def test_what_the_missing_answers_allow_is_said_if_they_change_nothing_too() -> None:
    a, b = sides(480, 60, 4)
    a[-8:] = np.nan
    result = hn.compare(run("a", a), run("b", b))
    assert result.rows[0].if_missing == "could not change the verdict"
    low, high = (np.mean(np.where(np.isnan(a), fill, a) - b) for fill in (0, 1))
    within = f"A − B from +{100 * low:.1f} to +{100 * high:.1f} points"
    assert f"the 8 missing answers could not change this ({within})" in " ".join(str(result).split())


def test_clusters_and_the_largest_of_them_are_computed() -> None:
    """A wins by one cluster of 20 questions: counted singly it is better, by clusters it is not."""
    a, b = sides(200, 20, 0)
    clusters = [f"c{i // 20}" for i in range(200)]
    row = hn.compare(run("a", a, clusters), run("b", b, clusters)).rows[0]
    alone = hn.compare(run("a", a), run("b", b)).rows[0]
    assert (row.verdict, alone.verdict) == ("not separable", "A better")
    assert changes(row) == ["What would change this verdict: questions taken as unrelated (`cluster='none'`)."]
    rng = np.random.default_rng(2)
    x, y = (rng.random((2, 240, 1)) < 0.5).astype(float)
    x[:60], y[:60] = 1, 0
    clusters = ["big"] * 60 + [f"c{i // 4}" for i in range(180)]
    row = hn.compare(run("a", x, clusters), run("b", y, clusters), se="cr0").rows[0]
    without = hn.compare(*(run(name, z[60:], clusters[60:]) for name, z in (("a", x), ("b", y))), se="cr0").rows[0]
    assert ("the largest cluster left out (big)" in " ".join(changes(row))) is (row.verdict != without.verdict)


def test_the_largest_of_crossed_clusters_is_one_of_either_way() -> None:
    """Leaving out `d0 ⨯ k0`, the questions of one document on one topic, leaves out no cluster."""
    rng = np.random.default_rng(1)
    docs, topics = rng.integers(0, 6, 90), rng.integers(0, 5, 90)
    x, y = (rng.random((90, 1)) < 0.7).astype(float), (rng.random((90, 1)) < 0.5).astype(float)
    largest = int(np.bincount(docs).argmax())
    x[docs == largest], y[docs == largest] = 1, 0
    labels = [CROSS.join((f"d{d}", f"k{k}")) for d, k in zip(docs, topics, strict=True)]

    def compared(kept: np.ndarray) -> Difference:
        sides = ((name, z[kept], [labels[i] for i in np.flatnonzero(kept)]) for name, z in (("a", x), ("b", y)))
        return hn.compare(*(run(*side) for side in sides)).rows[0]

    row = compared(docs >= 0)
    ways = {"d": docs, "k": topics}
    tops = {f"{name}{(top := int(np.bincount(way).argmax()))}": compared(way != top) for name, way in ways.items()}
    assert {other.verdict != row.verdict for other in tops.values()} == {True, False}
    found = [change.what for change in row._would_change if change.name == LARGEST]
    assert found == [name for name, other in tops.items() if other.verdict != row.verdict]


def test_what_would_change_it_is_in_the_details_and_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = sides(480, 16, 4)
    a[-8:], b[-8:] = np.nan, 1
    table = hn.compare(run("new", a), run("old", b))
    (line,) = changes(table.rows[0])
    monkeypatch.setenv("COLUMNS", "120")
    for details in (False, True):
        assert line in " ".join(terminal.text(table, details=details).split())
    assert line.replace("'", "&#39;") in page(table)
    (said,) = terminal.text(table).split("What would")[:1]
    assert "missing" not in said  # said once on the first screen


def test_the_verdicts_that_missing_answers_lead_to_are_named() -> None:
    a, b = sides(200, 12, 8)
    a[-8:], b[-20:-8] = np.nan, np.nan
    row = hn.compare(run("new", a), run("old", b)).rows[0]
    assert row.verdict == "not separable"
    a[-8:], b[-20:-8] = 1, 0
    best = hn.compare(run("new", a), run("old", b)).rows[0]
    a[-8:], b[-20:-8] = 0, 1
    worst = hn.compare(run("new", a), run("old", b)).rows[0]
    reached = [f"{name} better" for name, end in (("old", worst), ("new", best)) if end.verdict != row.verdict]
    assert reached
    assert f"the 20 missing answers could change this to “{'” or “'.join(reached)}”" in sentence(row)


def test_other_weights_are_computed_of_the_overall_row() -> None:
    parts = []
    for name, shift in (("a", 1), ("b", 0)):
        small, large = sides(20, 16, 0), sides(400, 150, 152)
        scores = [
            hn.Scores(task, "acc", "none", hn.Questions(tuple(map(str, range(len(s[0])))), "id"), s[1 - shift],
                      bounds=(0.0, 1.0))
            for task, s in (("small", small), ("large", large))
        ]  # fmt: skip
        parts.append(hn.Run(name, name, "array", scores=tuple(scores)))
    by = {w: hn.compare(*parts, weights=w).rows[-1] for w in ("equal", "size")}
    assert by["equal"].is_overall
    differ = by["equal"].verdict != by["size"].verdict
    assert differ
    assert ("other weights of the tasks (`weights='size'`)" in " ".join(changes(by["equal"]))) is differ
    assert changes(replace(by["equal"], _would_change=())) == []


def test_hints_are_wrapped_on_a_terminal_and_one_line_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness_noise.cli import options

    text = "harness-noise: " + "a word and another " * 12
    assert options._wrapped(text) == text
    monkeypatch.setattr(options.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    lines = options._wrapped(text).splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()) == text.strip()


def test_the_two_most_important_hints_follow_and_the_rest_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("new", "old"):
        lines = [f"q{i},{int((i + len(name)) % 3 > 0)}" for i in range(40)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["question,score", *lines]) + "\n")
    typed = ["compare", str(tmp_path / "new.csv"), str(tmp_path / "old.csv")]
    assert main(typed) == 0
    few = capsys.readouterr().err.splitlines()
    assert len(few) <= 3
    assert main([*typed, "--details"]) == 0
    every = capsys.readouterr().err.splitlines()
    if len(every) > 2:
        assert few[-1].endswith(f"more hint{'s' * (len(every) > 3)}: --details")
        assert int(few[-1].split()[1]) == len(every) - 2
    assert {*few[:2]} <= {*every}


@pytest.mark.parametrize("width", [80, 120])
def test_one_mean_is_as_short_and_the_rest_is_in_the_details(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).random((200, 3)).round()
    table = hn.analyze(run("new", values, [f"c{i // 4}" for i in range(200)]))
    monkeypatch.setenv("COLUMNS", str(width))
    text = terminal.text(table)
    assert len(text.splitlines()) <= 12, text
    assert len(NUMBER.findall(text)) <= 20, text
    for label in ("mean ", "95% CI ", "standard error "):
        assert re.search(rf"^{label}", text, re.MULTILINE), label
    for words in ("SE (1 answer)", "prediction"):
        assert words not in text
        assert words in terminal.text(table, details=True)


def test_a_limit_that_few_questions_move_is_named_beside_its_code() -> None:
    a, b = sides(300, 6, 0)
    result = hn.compare(run("a", a), run("b", b))
    row = result.rows[0]
    assert row.ci_high - row.diff > 1.05 * (row.diff - row.ci_low)
    assert "few_flips (upper limit raised)" in " ".join(str(result).split())
    assert "few_flips (lower limit lowered)" in " ".join(str(hn.compare(run("b", b), run("a", a))).split())

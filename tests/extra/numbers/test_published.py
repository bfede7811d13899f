"""A run against a published number: on the same questions, on others, and with neither said."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.report.text import render
from support.notes import noted


def run(n: int = 30, K: int = 16, seed: int = 0, scale: float = 1.0) -> hn.Run:
    rng = np.random.default_rng(seed)
    right = (rng.random((n, K)) < rng.beta(0.6, 0.6, (n, 1))).astype(float)
    return hn.Run("new", "new", "array", scores=(hn.as_scores(scale * right, task="gpqa", higher_is_better=True),))


def test_on_the_same_questions_only_the_answers_vary() -> None:
    """V = (1/n²) Σ s²/K + p(1 − p)/(n K_B); the second part has no degrees of freedom to lose."""
    a = run()
    values = a.scores[0].values
    row = hn.compare(a, 0.474, answers_b=64).rows[0]
    own = values.var(axis=1, ddof=1).sum() / 16 / 30**2
    theirs = 0.474 * 0.526 / (30 * 64)
    alone = hn.analyze(a, questions_are="fixed").estimates[0]
    assert row.se == pytest.approx(math.sqrt(own + theirs))
    assert row.df == pytest.approx((own + theirs) ** 2 / (own**2 / alone.df))
    assert row.estimand == "these_questions"
    greedy = hn.compare(a, 0.474, answers_b=math.inf).rows[0]
    assert greedy.se == pytest.approx(alone.se)
    assert row.se < 0.3 * hn.compare(a, 0.474, n=30).rows[0].se


@pytest.mark.parametrize("choices", [{"answers_b": 4}, {"answers_b": math.inf}, {"n": 200}])
def test_the_gate_decides_as_compare_does(choices: dict[str, float]) -> None:
    a = run()
    mean = a.scores[0].values.mean()
    bar = {"n": 200} if "n" in choices else choices
    for number in np.round(mean + np.linspace(-0.1, 0.2, 13), 3):
        row, gate = hn.compare(a, float(number), **choices).rows[0], hn.gate(a, floor=float(number), **bar)
        assert gate.failed == (row.verdict == "B better")
        if gate.rows[0].p_value < 0.5:  # the limits of shares are not symmetric
            assert gate.rows[0].p_value * 2 == pytest.approx(row.p_value, rel=1e-9)


def test_a_gate_of_fixed_questions_says_so_as_every_table_does() -> None:
    said = "the figures hold for these questions, not for other questions of their kind"
    against = {"floor": 0.4}, {"against": run(seed=2)}
    for choices in ({"floor": 0.4, "answers_b": 4}, *(one | {"questions_are": "fixed"} for one in against)):
        for form in ("table", "markdown", "sentence"):
            assert said in render(hn.gate(run(), **choices), form)
    assert said not in render(hn.gate(run(), **against[1]), "table")


def test_without_a_word_on_its_questions_both_commands_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new.csv"
    path.write_text("question,score,repeat\n" + "".join(f"q{i},{(i + k) % 2},{k}\n" for i in range(9) for k in (0, 1)))
    for more in ([], ["--n", "30", "--answers-b", "2"]):
        assert main(["compare", str(path), "0.474", *more]) == 2
        said = capsys.readouterr().err
        assert "how many answers it had to each: --answers-b K (inf if it was greedy)" in said
        assert "If it is of N other questions: --n N" in said
    assert main(["gate", str(path), "--questions-are", "fixed", "--floor", ".474", "--n", "30"]) == 2
    said = capsys.readouterr().err
    assert "on the same questions: --answers-b K, K its answers" in said
    assert "If on 30 others: --n 30, without --questions-are fixed" in said


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(hn.InputError, match="one answer per question"):
        hn.compare(run(K=1), 0.474, answers_b=8)
    with pytest.raises(hn.InputError, match="known range"):
        hn.compare(run(scale=7.0), 0.474, answers_b=8)
    with pytest.raises(hn.InputError, match=r"Did you mean 0\.474"):
        hn.compare(run(), 47.4, answers_b=8)
    with pytest.raises(hn.InputError, match="not a number of answers"):
        hn.compare(run(), 0.474, answers_b=0.5)
    with pytest.raises(hn.InputError, match="published number"):
        hn.compare(run(), run(seed=1), answers_b=8)
    with pytest.raises(hn.InputError, match="True is no run"):
        hn.compare(run(), True)
    with pytest.raises(hn.InputError, match="leave one out"):
        hn.gate(run(), run(seed=1), floor=0.4, answers_b=8)


def test_a_number_that_these_questions_cannot_give_is_doubted() -> None:
    a = run()
    assert "not_these_questions" in hn.compare(a, 0.474, answers_b=1).rows[0].diagnostics  # 14/30 is .467
    assert any("not a mean of right and wrong" in note for note in noted(hn.gate(a, floor=0.474, answers_b=1)))
    for number, K in ((0.467, 1), (0.47, 1), (0.474, 64), (0.4667, math.inf)):
        assert "not_these_questions" not in hn.compare(a, number, answers_b=K).rows[0].diagnostics


@pytest.mark.parametrize(
    ("choices", "words", "each"),
    [
        ({"answers_b": 4}, "against a published number on the same questions", "16 answers each of new and 4 of 47.4%"),
        ({"n": 200}, "against a published number on 200 other questions", "30 questions, 16 answers each)"),
    ],
)
def test_a_published_number_is_not_called_paired(choices: dict[str, float], words: str, each: str) -> None:
    found = hn.compare(run(), 0.474, **choices)
    for form in ("sentence", "latex"):
        assert words in render(found, form)
        assert "paired" not in render(found, form)
    for form in ("latex", "markdown"):
        assert ("CR2" in render(found, form)) == ("n" in choices)  # of fixed questions only the answers vary
    assert each in render(found, "sentence")

"""What the first line says of a row is what decided it: its own interval, its own test, its missing answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.cli.commands import in_flags
from harness_noise.report.sentences import sentence, verdict_line


def runs(
    a: np.ndarray, b: np.ndarray, *, bounds: tuple[float, float] | None = (0.0, 1.0), tasks: int = 1
) -> tuple[hn.Run, hn.Run]:
    return tuple(
        hn.Run(name, name, "array", scores=tuple(
            hn.as_scores(values, task=f"t{i}", higher_is_better=True, bounds=bounds) for i in range(tasks)))
        for name, values in (("new", a), ("old", b))
    )  # type: ignore[return-value]  # fmt: skip


def flips(n: int, won: int, lost: int) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.zeros(n), np.zeros(n)
    a[:won], b[won : won + lost] = 1, 1
    return a, b


class TestOneQuestion:
    @pytest.mark.parametrize(("score", "ends"), [(1.0, (0.207, 1.0)), (0.0, (0.0, 0.793))])
    def test_right_or_wrong_it_has_wilsons_interval(self, score: float, ends: tuple[float, float]) -> None:
        row = hn.estimate([score])
        assert (row.ci_low, row.ci_high) == pytest.approx(ends, abs=5e-4)
        assert (row.se, row.interval) == (None, "wilson")
        assert "too_few_questions" in row.diagnostics

    def test_without_a_range_or_of_fixed_questions_it_has_none(self) -> None:
        assert hn.estimate([7.0]).ci_low is None
        assert hn.estimate([1.0], interval="t").ci_low is None
        assert hn.estimate([0.3]).ci_low is None  # graded
        assert hn.estimate([1.0, 1.0], clusters=["a", "a"]).ci_low is None


class TestCounts:
    def test_they_are_a_run_of_independent_questions(self, capsys: pytest.CaptureFixture[str]) -> None:
        (row,) = hn.analyze((17, 20)).estimates
        same = hn.estimate(np.repeat([1.0, 0.0], [17, 3]))
        assert (row.mean, row.se, row.ci_low, row.ci_high) == (same.mean, same.se, same.ci_low, same.ci_high)
        assert main(["analyze", "17/20", "3/9", "-q"]) == 0
        assert "17 of 20" in capsys.readouterr().out

    def test_no_count_is_refused_and_a_file_of_that_name_is_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for text in ("25/20", "0/0", "1/99999999"):
            assert main(["analyze", text]) == 2
            assert "no count of right answers" in capsys.readouterr().err
        monkeypatch.chdir(tmp_path)
        Path("17").mkdir()
        Path("17/20").write_text("question,acc\na,1\nb,0\n")
        assert main(["analyze", "17/20", "--format", "csv"]) in (0, 2)
        assert "17 of 20" not in capsys.readouterr().out


class TestHeadlines:
    def test_a_test_without_limits_has_no_interval_in_the_first_line(self) -> None:
        a, b = flips(40, 9, 2)
        row = hn.compare(*runs(a, b), test="sign").rows[0]
        line = verdict_line(row)
        assert "sign test, p = 0.065" in line
        assert "+0." not in line
        assert "detectable" not in line

    def test_equivalence_is_shown_by_the_interval_that_it_is_read_off(self) -> None:
        rng = np.random.default_rng(0)
        a, b = (rng.random((2, 400)) < 0.5).astype(float)
        row = hn.compare(*runs(a, b), margin=0.2).rows[0]
        assert row.verdict == "equivalent within 0.2"
        narrow = hn.compare(*runs(a, b), level=0.9).rows[0]
        assert f"{100 * narrow.ci_low:+.1f}" in verdict_line(row).replace("−", "-")
        for text in (verdict_line(row), sentence(row)):
            assert "90%" in text
            assert "two one-sided tests at 5%" in text


class TestMissing:
    def test_the_first_line_says_whether_they_could_change_the_verdict(self) -> None:
        for won, said in ((40, "the 8 missing answers could not change this"), (16, "could change this")):
            a, b = flips(480, won, 4)
            a[-8:], b[-8:] = np.nan, 1
            row = hn.compare(*runs(a, b)).rows[0]
            assert row.verdict == "A better"
            assert said in verdict_line(row)

    def test_it_is_the_verdict_of_the_filled_runs(self) -> None:
        rng, seen = np.random.default_rng(2), set()
        for _ in range(25):
            a, b = flips(120, int(rng.integers(4, 16)), int(rng.integers(0, 5)))
            holes = rng.integers(0, 120, 3)
            worst, best, a_holes = a.copy(), a.copy(), a.copy()
            worst[holes], best[holes], a_holes[holes] = 0, 1, np.nan
            row = hn.compare(*runs(a_holes, b)).rows[0]
            ends = {hn.compare(*runs(x, b)).rows[0].verdict for x in (worst, best)}
            assert (row.if_missing == "could not change the verdict") == (ends == {row.verdict})
            seen.add(row.if_missing)
        assert len(seen) == 2

    def test_without_a_range_it_says_what_to_type(self) -> None:
        rng = np.random.default_rng(1)
        a, b = rng.normal(0.4, 1, 50), rng.normal(0, 1, 50)
        a[:3] = np.nan
        row = hn.compare(*runs(a, b, bounds=None)).rows[0]
        assert "3 answers are missing (`range=(LOW, HIGH)` shows what they could change)" in verdict_line(row)
        assert row.if_missing == "not known without a range"
        gate = hn.gate(*runs(a, b, bounds=None), margin=3)
        for named in ("`range=(LOW, HIGH)`", "`missing='zero'`", "`vouch='CAUSE'`"):
            assert named in gate.sentence
        shown = hn.render(gate, words=in_flags)
        assert "--range LOW,HIGH" in " ".join(shown.split())
        assert "`" not in shown

    def test_nothing_missing_says_nothing(self) -> None:
        row = hn.compare(*runs(*flips(50, 9, 3))).rows[0]
        assert row.if_missing is None
        assert "missing" not in verdict_line(row)


def test_counts_are_not_explained_as_common_questions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "74/100", "66/100", "--details", "--legend"]) == 0
    assert "unpaired: of both together" in " ".join(capsys.readouterr().out.split())


def test_categories_that_are_all_there_are_are_no_sample() -> None:
    from harness_noise.results.diagnostics import DIAGNOSTICS

    assert "use `by`, not `cluster`" in DIAGNOSTICS["few_clusters"].to_do

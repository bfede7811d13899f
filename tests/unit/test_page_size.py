"""A page of a large leaderboard is one file that is sent and opened at once."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness_noise.extra.arena import figures as arena_figures
from harness_noise.extra.arena import pages
from harness_noise.extra.arena.build import arena
from harness_noise.settings import Settings
from support.boards import leaderboard


@pytest.mark.parametrize(
    ("models", "questions", "most"),
    [(30, 200, 1_200_000), pytest.param(300, 2000, 5_000_000, marks=pytest.mark.slow)],
)
def test_a_page_is_small(models: int, questions: int, most: int, tmp_path: Path) -> None:
    written = pages.write_arena(arena(leaderboard(models, questions), Settings()), tmp_path)
    assert written[1].stat().st_size < most
    text = written[1].read_text(encoding="utf-8")
    assert 'id="board"' in text, "with all pairs, for the picker"


def test_the_block_holds_every_pair_and_every_score() -> None:
    found = arena(leaderboard(12, 50, 3), Settings())
    board = found.boards[0]
    data = pages.board_data(board, arena_figures.pictures(found, board))
    assert data is not None

    def numbers(block: str, kind: str) -> np.ndarray:
        return np.frombuffer(base64.b64decode(block), dtype=kind)

    c = board.pairs.columns
    for key, column in (("diff", "diff"), ("low", "ci_low"), ("total", "se_total"), ("p", "p_adjusted")):
        np.testing.assert_array_equal(numbers(data[key], "<f4"), c[column].astype("f4"))
    np.testing.assert_array_equal(numbers(data["verdict"], "u1"), board.pairs.verdict)
    assert not data["questions"]["rounded"]
    codes = numbers(data["questions"]["scores"], "u1")
    codes = np.column_stack([codes & 15, codes >> 4]).ravel()[: board.scores.size]
    levels = np.array(data["questions"]["levels"])
    np.testing.assert_allclose(levels[codes].reshape(12, 50).T, board.scores, atol=1e-9)


def test_scores_of_many_levels_are_rounded_to_steps_too_small_to_see() -> None:
    runs = leaderboard(3, 400, 1)
    rng = np.random.default_rng(1)
    for run in runs:
        run.scores[0].values[:] = rng.normal(20, 5, (400, 1))
    board = arena(runs, Settings()).boards[0]
    held = pages.board_data(board, [])
    assert held is not None
    data = held["questions"]
    assert len(data["levels"]) == pages.LEVELS
    assert data["rounded"]
    codes = np.frombuffer(base64.b64decode(data["scores"]), dtype="u1").reshape(3, 400).T
    width = np.ptp(board.scores)
    assert np.abs(np.array(data["levels"])[codes] - board.scores).max() <= width / pages.LEVELS


def test_more_pairs_than_a_page_holds_leave_it_without_a_picker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PICKER_PAIRS", 5)
    text = pages.write_arena(arena(leaderboard(4, 30), Settings()), tmp_path)[1].read_text(encoding="utf-8")
    assert 'id="board"' not in text
    assert "too many pairs to choose" in text


def test_a_name_cannot_end_the_block(tmp_path: Path) -> None:
    runs = leaderboard(2, 20)
    name = "</script><script>alert(1)</script><!-- & \u2028 \ud800"
    path = pages.write_arena(arena([replace(runs[0], model=name), runs[1]], Settings()), tmp_path)[1]
    text = path.read_text(encoding="utf-8").partition('id="board">')[2].partition("</script>")[0]
    assert not set(text) & set("<>&\u2028")
    assert json.loads(text)["names"][0].startswith("</script><script>alert(1)")

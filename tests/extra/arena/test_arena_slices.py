"""`arena --by`: the models' means, and every pair, slice by slice."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.extra.arena import build
from harness_noise.extra.arena.build import arena
from harness_noise.extra.arena.tables import write_tables
from harness_noise.results.schema import json_schema
from harness_noise.settings import Settings
from support.boards import sliced_board


@pytest.fixture(scope="module")
def found() -> hn.Arena:
    return arena(sliced_board(), Settings(), by=["kind"])


def test_models_have_the_slices_that_analyze_gives(found: hn.Arena) -> None:
    runs = sliced_board()
    alone = hn.analyze(runs, by=["kind"])
    assert [row.mean for row in found.slices] == [row.mean for row in alone.slices]
    assert found.slices == alone.slices
    assert found.heterogeneity == alone.heterogeneity
    assert arena(runs, Settings()).slices == ()


def test_pairs_have_the_slices_that_compare_gives(found: hn.Arena) -> None:
    runs = sliced_board()
    for a, b in ((0, 1), (1, 3)):
        rows = {row.slice: row for row in hn.compare(runs[a], runs[b], by=["kind"]).slices}
        for one in found.boards[0].slices:
            pair = one.pairs.find(runs[a].model, runs[b].model)
            for name in ("diff", "se", "ci_low", "ci_high", "df", "p_value", "p_adjusted", "n_questions", "n_clusters"):
                assert getattr(pair, name) == pytest.approx(getattr(rows[one.slice], name)), (one.slice, name)


def test_too_many_pairs_have_no_slices_but_the_models_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "MOST_SLICES", 23)
    found = arena(sliced_board(), Settings(), by=["auto"])
    assert found.boards[0].slices == ()
    assert len(found.slices) == 16


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_the_tables_have_slices_and_ranks_for_others_to_plot(kind: str, found: hn.Arena, tmp_path: Path) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    written = {path.stem: path for path in write_tables(found, tmp_path, kind)}  # type: ignore[arg-type]
    assert set(written) == {"models", "pairs", "benchmarks", "questions", "slices", "heterogeneity"}
    read = {"csv": pd.read_csv, "json": pd.read_json, "parquet": pd.read_parquet}[kind]
    slices = read(written["slices"])
    assert len(slices) == 16
    assert {"model", "field", "slice", "mean", "se", "ci_low", "ci_high", "shrunken", "p_adjusted"} <= set(slices)
    assert {"rank", "rank_low", "rank_high", "ties"} <= set(read(written["models"]))


def test_the_json_follows_the_schema(found: hn.Arena) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(json.loads(found.to_json()), json_schema())
    assert len(found.to_frame("slices")) == 16


def test_the_command_writes_slices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["question,model,score,kind"]
    rows += [f"q{i},m{m},{(i * 7 + m) % 3 % 2},{'abc'[i % 3]}" for i in range(60) for m in range(3)]
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(rows) + "\n")
    out = tmp_path / "out"
    arguments = ["arena", str(path), "--by", "kind", "--tables", str(out), "--html", str(out), "-q"]
    assert main(arguments) == 0
    assert (out / "slices.csv").is_file()
    assert "varies over kind" in " ".join(capsys.readouterr().out.split())
    assert "By slice" in (out / "index.html").read_text(encoding="utf-8")
    board_page = next(item for item in out.glob("*.html") if item.name != "index.html").read_text(encoding="utf-8")
    assert '"title":"By kind"' in board_page  # the script draws what is picked
    command = " ".join(["harness-noise", *arguments])
    assert command in board_page

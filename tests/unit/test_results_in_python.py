"""What a result says of itself in Python: its sentence, its verdict, a short repr, its figure, its frames."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import harness_noise as hn
from harness_noise.extra.arena.report import BEST, leaderboard
from harness_noise.report import latex
from harness_noise.report import text as form
from support.notes import noted


def run(name: str, shift: float, tasks: tuple[str, ...] = ("t",)) -> hn.Run:
    scores = []
    for task in tasks:
        rng = np.random.default_rng([*name.encode(), *task.encode()])
        values = (rng.random((60, 2)) < 0.4 + shift).astype(float)
        questions = hn.Questions(tuple(f"q{i}" for i in range(60)), "id")
        scores.append(hn.Scores(task, "acc", "none", questions, values, bounds=(0.0, 1.0)))
    return hn.Run(name, name, "array", scores=tuple(scores))


def test_a_result_has_a_sentence_a_verdict_a_short_repr_and_its_figure() -> None:
    compared = hn.compare(run("new", 0.3), run("old", 0.0))
    board = hn.arena([run(f"m{i}", 0.1 * i, ("x", "y")) for i in range(5)])
    for result in (compared, hn.analyze(run("new", 0.3)), board, hn.plan(effect=0.05, accuracy=0.7)):
        assert len(repr(result)) <= 230
        assert repr(result).startswith(f"<{type(result).__name__}: ")
        assert result.verdict
        assert result.sentence
    assert compared.verdict.startswith("new is better than old by ")
    assert compared.sentence.endswith("new is better.")
    assert compared.plot().startswith("<?xml")
    assert compared.plot()._repr_svg_() == compared.plot()
    assert "new is better than old by" in compared._repr_html_()[:300]


def test_a_frame_by_question_has_both_means_of_every_question() -> None:
    a, b = run("new", 0.3), run("old", 0.0)
    frame = hn.compare(a, b, by_question=True).to_frame("by_question")
    assert list(frame.question) == [f"q{i}" for i in range(60)]
    assert np.allclose(frame.mean_a, a.scores[0].values.mean(axis=1))
    assert np.allclose(frame["diff"], (a.scores[0].values - b.scores[0].values).mean(axis=1))
    with pytest.raises(KeyError, match="by_question=True"):
        hn.compare(a, b).to_frame("by_question")


def test_a_task_without_a_shared_question_has_no_table_and_a_note_says_why() -> None:
    a, b = run("new", 0.3, ("t", "u")), run("old", 0.0, ("t", "u"))
    others = replace(b.scores[1], questions=hn.Questions(tuple(f"r{i}" for i in range(60)), "id"))
    found = hn.compare(a, replace(b, scores=(b.scores[0], others)), by_question=True)
    assert [table.task for table in found.by_question] == ["t"]
    assert any("left out: u" in note for note in noted(found))
    group = hn.Group("g", "acc", "none", ("t", "u"))
    found = hn.compare(*(replace(x, scores=(), parts=x.scores, groups=(group,)) for x in (a, b)), by_question=True)
    assert found.by_question == ()
    assert any("no table question by question" in note for note in noted(found))


def test_all_tables_of_a_result_come_at_once() -> None:
    a, b = run("new", 0.3), run("old", 0.0)
    found = hn.compare(a, b, by_question=True)
    frames = found.to_frames()
    assert list(frames) == ["comparisons", "by_question"]
    assert all(frame.equals(found.to_frame(name)) for name, frame in frames.items())
    assert list(hn.compare(a, b).to_frames()) == ["comparisons"]
    assert list(hn.analyze(a).to_frames()) == ["estimates"]
    assert list(hn.arena([a, b]).to_frames()) == ["models", "pairs", "benchmarks", "questions"]


def test_the_figures_of_a_comparison_are_written(tmp_path: Path) -> None:
    written = hn.write_figures(hn.compare(run("new", 0.3), run("old", 0.0)), tmp_path)
    assert [path.name for path in written] == ["01-acc.svg"]
    assert written[0].read_text(encoding="utf-8").startswith("<?xml")


def test_an_arena_opens_with_models_by_benchmarks_and_latex_is_that_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    board = hn.arena([run(f"m{i}", 0.1 * i, ("x", "y")) for i in range(5)])
    table = leaderboard(board)
    assert [column.heading for column in table.columns] == ["Model", "overall", "x", "y", BEST]
    assert table.units == "in %"
    best = {(row.model, row.task) for row in board.models if row.among_best}
    for cells in table.rows:
        for column, cell in zip(table.columns[1:-1], cells[1:-1], strict=True):
            assert cell.startswith(BEST) is ((cells[0], column.heading) in best)
    assert "Leaderboard, acc: mean ± standard error, ★ may be the best; in %" in str(board)
    assert "SE (1 answer)" not in str(board)
    text = latex.render(board)
    assert text.count(r"\begin{table}") == 1
    assert text.count("\n") < 40
    assert r"$\star$" in text
    assert "as one task." in text
    assert "weights" not in text  # an option is no footnote of a paper
    assert text.count(r"\footnotesize") <= 3
    assert r"\footnotesize x (acc)" not in text  # the stars say it


@pytest.mark.parametrize("width", [80, 200])
def test_the_first_screen_of_an_arena_is_short_in_any_width(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    board = hn.arena([run(f"m{i}", 0.1 * i, ("a", "b", "c", "d", "e")) for i in range(5)])
    shown = str(board)
    assert len(shown.splitlines()) <= 40
    assert "Pairs" not in shown
    assert "win rate" not in shown
    assert "win rate" in form.render(board, details=True)
    assert shown.startswith("overall (acc): ")
    assert "d (acc)" not in shown
    assert "Pairs" not in form.markdown(board)


def test_benchmarks_without_an_overall_mean_say_who_may_be_the_best() -> None:
    board = hn.arena([run(f"m{i}", 0.2 * i, ("x", "y")) for i in range(3)], weights="none")
    counts = {name: sum(bool(cell.among_best) for cell in cells.values()) for name, cells in board.leaderboard.items()}
    first = next(iter(counts))
    assert board.verdict.startswith(f"May be the best (95%, each benchmark by itself): {first} on {counts[first]} of 2")


def test_the_frame_and_the_csv_of_an_arena_are_its_leaderboard() -> None:
    board = hn.arena([run(f"m{i}", 0.1 * i, ("x", "y")) for i in range(3)])
    frame = board.to_frame()
    assert list(frame) == ["model", *(f"{task}{end}" for task in ("overall", "x", "y") for end in ("", "_se", "_best"))]
    for row in board.models:
        (cells,) = frame[frame["model"] == row.model].to_dict("records")
        assert (cells[row.task], cells[f"{row.task}_se"], cells[f"{row.task}_best"]) == (
            row.mean,
            row.se,
            row.among_best,
        )
    assert form.render(board, "csv").splitlines()[0] == ",".join(frame)
    assert form.render(board, "csv", details=True).splitlines()[0].startswith("task,metric,scorer")
    assert len(board.to_frame("pairs")) == 9


def test_a_task_that_is_called_as_a_column_takes_no_other_place() -> None:
    frame = hn.arena([run(f"m{i}", 0.2 * i, ("model", "x", "x_se")) for i in range(3)], weights="none").to_frame()
    assert sorted(frame["model"]) == ["m0", "m1", "m2"]
    assert list(frame)[1:] == [f"{name}{end}" for name in (
        "model acc none", "x", "x_se acc none"
    ) for end in ("", "_se", "_best")]  # fmt: skip


def frame(seed: int, rate: float) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"question": range(60), "score": (rng.random(60) < rate).astype(float)})


def test_runs_have_the_names_of_a_dict_of_attrs_or_are_a_and_b() -> None:
    high, low = frame(0, 0.9), frame(1, 0.3)
    assert hn.compare({"new": high, "old": low}).verdict.startswith("new is better than old by ")
    board = hn.arena({"x": high, "y": low, "z": frame(2, 0.5)})
    assert {row.model for row in board.models} == {"x", "y", "z"}
    assert hn.compare({"second": run("new", 0.3)}, {"first": run("old", 0.0)}).rows[0].model_a == "second"
    assert "DataFrame" not in hn.compare(high, low).verdict
    assert hn.compare(high, low).verdict.startswith("A is better than B by ")
    high.attrs["name"], low.attrs["name"] = "tuned", "base"
    assert hn.compare(high, low).verdict.startswith("tuned is better than base by ")


def test_a_name_is_of_one_run_alone() -> None:
    two = pd.concat([frame(0, 0.9).assign(model="m"), frame(1, 0.3).assign(model="o")])
    with pytest.raises(hn.InputError, match="both holds 2 runs"):
        hn.analyze({"both": two})


def test_a_repr_is_short_where_there_is_no_verdict() -> None:
    alone = frame(0, 0.9).assign(x=1.0, cluster="one")
    assert repr(hn.label_sample(frame(0, 0.9), n=5)) == "<LabelSample: 5 answers to label>"
    alone["x"] = np.arange(60.0)
    assert repr(hn.regress(alone, on=["x"])) == "<Regression: 2 rows>"


def test_unnamed_frames_of_an_arena_are_numbered() -> None:
    frames = [frame(i, rate) for i, rate in enumerate((0.9, 0.5, 0.3))]
    board = hn.arena(frames)
    assert [row.model for row in board.models] == ["DataFrame 1", "DataFrame 2", "DataFrame 3"]
    frames[1].attrs["name"] = "tuned"
    assert {row.model for row in hn.arena(frames).models} == {"DataFrame 1", "tuned", "DataFrame 2"}
    both = pd.concat([frames[0].assign(model="m"), frames[2].assign(model="o")])
    assert {row.model for row in hn.arena([both, frame(4, 0.6)]).models} == {"m", "o", "DataFrame 2"}


def test_the_figure_of_an_arena_is_of_all_benchmarks_together_and_says_so(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    for model in ("one", "two"):
        rows = [f"{task},q{i},{rng.integers(2)}" for task in ("arc", "gsm") for i in range(40)]
        (tmp_path / f"{model}.csv").write_text("task,question,score\n" + "\n".join(rows) + "\n")
    figure = hn.arena([tmp_path / "one.csv", tmp_path / "two.csv"]).plot()
    assert "overall: " in figure
    assert "arc: " not in figure
    alone = hn.arena([tmp_path / "one.csv", tmp_path / "two.csv"], tasks=["arc"]).plot()
    assert "arc: " not in alone, "it is the only one"


def test_many_runs_one_after_the_other_are_those_in_a_list(tmp_path: Path) -> None:
    frames = {name: frame(i, rate) for i, (name, rate) in enumerate((("ant", 0.9), ("bee", 0.5), ("cat", 0.3)))}
    for name, each in frames.items():
        each.to_csv(tmp_path / f"{name}.csv", index=False)
    paths = [tmp_path / f"{name}.csv" for name in frames]
    for function in (hn.arena, hn.analyze):
        wanted = function(paths).to_json()
        assert function(*paths).to_json() == wanted, function
        assert function(paths[:1], *paths[1:]).to_json() == wanted, function
    named, apart = hn.arena(frames), hn.arena({"ant": frames["ant"]}, {name: frames[name] for name in ("bee", "cat")})
    assert apart.to_json() == named.to_json()
    assert [row.model for row in named.models] == ["ant", "bee", "cat"]
    assert hn.analyze((17, 20), (3, 20)).to_json() == hn.analyze([(17, 20), (3, 20)]).to_json()
    for function in (hn.arena, hn.analyze, hn.drop_models):
        with pytest.raises(hn.InputError, match=r"no run is given|two"):
            function()
    with pytest.raises(TypeError, match=r"'runs': give the runs without a name, as in arena\(a, b\)"):
        hn.arena(runs=paths)
    tables = [{"score": 0.7}, {"score": 0.8}], [{"score": 0.6}]
    assert hn.totals(*tables) == hn.totals([*tables])


def test_unnamed_frames_have_the_names_of_the_text_everywhere() -> None:
    a, b, c = frame(0, 0.9), frame(1, 0.3), frame(2, 0.5)
    for result in (hn.compare(a, b), hn.compare([a, b]), hn.compare([a], [b]), hn.gate(a, b, margin=0.01)):
        row, text = result.rows[0], result.to_json() + hn.render(result, "csv") + hn.render(result, details=True)
        assert (getattr(row, "model_a", "A"), getattr(row, "model_b", "B")) == ("A", "B")
        assert "DataFrame" not in text, text
    several = hn.compare([a, c], against=b).to_frame()
    assert [*several["model_a"], *several["model_b"]] == ["DataFrame 1", "DataFrame 2", "B", "B"]
    assert [row.model for row in hn.analyze(a, b).rows] == ["DataFrame 1", "DataFrame 2"]
    assert [row.model for row in hn.analyze(a).rows] == ["DataFrame"]
    assert len(hn.analyze([a, b], as_repeats=True).rows) == 1
    a.attrs["name"] = "tuned"
    assert (hn.compare(a, b).rows[0].model_a, hn.compare(a, b).rows[0].run_b) == ("tuned", "B")

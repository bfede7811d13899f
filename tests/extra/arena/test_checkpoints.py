"""Checkpoints in the order of their steps: each is the pair that the arena has, judged in a family of its own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.data.clusters import Fields
from harness_noise.data.scores import Gradings, Run
from harness_noise.errors import InputError
from harness_noise.extra.arena import figures as arena_figures
from harness_noise.extra.arena import pages, report
from harness_noise.extra.arena.checkpoints import in_name
from harness_noise.extra.arena.results import Arena, Checkpoint
from support.boards import board, values_of, with_values
from support.notes import noted
from support.tables import table

STEPS = (0, 1000, 2000, 10_000)


def trained(*, K: int = 3, seed: int = 0, spread: float = 0.12, name: str = "run/step_{}") -> list[Run]:
    names = [name.format(step) for step in STEPS]
    return board(len(STEPS), K, seed=seed, names=names, spread=spread, clusters=tuple(f"c{i // 4}" for i in range(120)))


def rows_of(runs: list[Run], **more: object) -> tuple[Checkpoint, ...]:
    return hn.arena(runs, over="step", **more).checkpoints


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("step_1000", ("", 1000.0)),
        ("checkpoint-500", ("", 500.0)),
        ("runs/a/global_step2000", ("runs/a", 2000.0)),
        ("pythia-70m (step143000)", ("pythia-70m", 143000.0)),
        ("olmo-step10k-unsharded", ("olmo unsharded", 10000.0)),
        ("model,revision=step1.5m", ("model,revision", 1.5e6)),
        ("ckpt_3.csv", ("csv", 3.0)),
        ("500", ("", 500.0)),
        ("multistep_7", None),
        ("llama-3-8b", None),
        ("step_by_step", None),
    ],
)
def test_a_step_is_read_off_a_name(name: str, found: tuple[str, float] | None) -> None:
    assert in_name(name, "step") == found


def test_a_change_of_the_scoring_is_no_change_of_the_model() -> None:
    """The last step has the answers of the first one, scored differently: it is not known whether it has changed."""
    rng = np.random.default_rng(0)
    runs = [with_values(run, (rng.random((120, 1)) < 0.5).astype(float)) for run in trained(K=1)]
    runs[-1] = with_values(runs[-1], np.ones((120, 1)))
    texts = np.arange(1, 121, dtype=np.uint64)[:, None]
    apart = [np.uint64(1000 * i) + texts for i in range(3)]
    for i, known in enumerate((*apart, apart[0])):
        runs[i] = replace(runs[i], scores=(replace(runs[i].scores[0], gradings=Gradings(known)),))
    *_, before, last = rows_of(runs)
    assert (before.changed, before.p_first is None) == (False, False)
    assert (last.changed, last.p_first, last.onset) == (None, None, False)
    assert last.since_first is not None
    pairs = [pair for pair in hn.arena(runs).pairs if pair.verdict == "scored differently"]
    assert [{pair.model_a, pair.model_b} for pair in pairs] == [{runs[0].model, runs[-1].model}]


def test_another_word_is_read_off_names_and_nothing_of_it_is_a_pattern() -> None:
    assert in_name("tokens_100b", "tokens") == ("", 1e11)
    assert in_name("step_1", "tokens") is None
    assert in_name("aXb", "(") is None


def test_each_row_is_the_pair_that_compare_has() -> None:
    runs = trained()
    found = rows_of(runs)
    assert [row.step for row in found] == list(STEPS)
    first = [hn.compare(run, runs[0]).rows[0] for run in runs[1:]]
    before = [hn.compare(run, other).rows[0] for run, other in zip(runs[1:], runs, strict=False)]
    for row, start, previous in zip(found[1:], first, before, strict=True):
        assert row.since_first == pytest.approx(start.diff, abs=1e-12)
        assert (row.since_first_low, row.since_first_high) == pytest.approx((start.ci_low, start.ci_high), abs=1e-12)
        assert row.since_previous == pytest.approx(previous.diff, abs=1e-12)
    for name, pairs in (("p_first", first), ("p_previous", before)):
        p = multipletests([pair.p_value for pair in pairs], method="holm")[1]
        assert [getattr(row, name) for row in found[1:]] == pytest.approx(p.tolist(), abs=1e-12)
    assert (found[0].since_first, found[0].p_first, found[0].changed, found[0].onset) == (None, None, None, False)


def test_neither_the_order_of_the_files_nor_a_baseline_changes_anything() -> None:
    runs = trained()
    found = rows_of(runs)
    for again in (rows_of(runs[::-1]), rows_of(runs, against="run/step_1000")):
        for row, other in zip(found, again, strict=True):
            for field in Checkpoint.__dataclass_fields__:
                assert getattr(row, field) == pytest.approx(getattr(other, field), abs=1e-12), field


def test_the_onset_is_where_all_later_checkpoints_differ_too() -> None:
    runs = trained(spread=0.0)
    same, better = values_of(runs[0]), np.minimum(1.0, values_of(runs[0]) + (np.arange(120) % 3 == 0)[:, None])
    found = rows_of([with_values(run, x) for run, x in zip(runs, (same, better, same, better), strict=True)])
    assert [row.changed for row in found] == [None, True, False, True]
    assert [row.onset for row in found] == [False, False, False, True]
    rising = rows_of([with_values(run, x) for run, x in zip(runs, (same, same, better, better), strict=True)])
    assert [row.onset for row in rising] == [False, False, True, False]
    falling = rows_of([with_values(run, x) for run, x in zip(runs, (same, better, 1 - better, same), strict=True)])
    assert not any(row.onset for row in falling), "better, then worse, then as before: it has not left the start"


def test_copies_and_questions_that_nobody_shares_are_no_change() -> None:
    runs = trained(K=1)
    copies = rows_of([with_values(run, values_of(runs[0]).copy()) for run in runs])
    assert not any(row.changed or row.onset for row in copies)
    assert [row.since_first for row in copies[1:]] == [0.0, 0.0, 0.0]
    values = [values_of(run).copy() for run in runs]
    values[0][60:], values[2][:60] = np.nan, np.nan  # steps 0 and 2000 share nothing
    apart = rows_of([with_values(run, x) for run, x in zip(runs, values, strict=True)])
    assert (apart[2].since_first, apart[2].p_first, apart[2].changed) == (None, None, None)
    assert apart[2].since_previous is not None


def test_two_series_are_two_lines_and_one_run_without_a_step_is_named() -> None:
    runs = [*trained(), *trained(seed=1, name="other/step_{}"), *board(1, names=["llama"], seed=2)]
    found = hn.arena(runs, over="step")
    assert [row.series for row in found.checkpoints] == ["run"] * 4 + ["other"] * 4
    assert any("no step is known of llama" in note for note in noted(found))
    assert len(report.checkpoint_sentences(found)) == 2
    picture = arena_figures.steps(found, found.boards[0])
    assert picture is not None
    assert picture.body.count('class="iv"') == 8
    unknown = [replace(row, ci_low=None, ci_high=None) if row.series == "run" else row for row in found.checkpoints]
    picture = arena_figures.steps(replace(found, checkpoints=tuple(unknown)), found.boards[0])
    assert picture is not None
    assert picture.body.count('class="iv"') == 4, "a series of which no interval is known leaves the other"


def test_a_page_says_what_its_own_metric_did_and_not_one_whose_name_begins_alike(tmp_path: Path) -> None:
    runs = []
    for run in trained():
        part = run.scores[0]
        runs.append(replace(run, scores=(part, replace(part, metric=f"{part.metric}_norm", values=1 - part.values))))
    found = hn.arena(runs, over="step")
    assert len(report.checkpoint_sentences(found)) == 2
    for one in found.boards:
        (line,) = report.checkpoint_sentences(found, one.key)
        assert line.startswith(f"{one.key[0]} {one.key[1]}: ")
    first = min(pages.write_arena(found, tmp_path)[1:]).read_text(encoding="utf-8")
    assert "_norm: " not in first.partition("<h2>")[0]


def test_what_cannot_be_ordered_is_refused() -> None:
    with pytest.raises(InputError, match="neither the names of the runs nor a field"):
        rows_of(board(3))
    runs = trained()
    twice = [*runs, replace(runs[1], model="run/checkpoint_1000", name="again")]
    with pytest.raises(InputError, match="are both at 1000"):
        rows_of(twice)


def test_a_field_with_one_number_in_each_run_orders_them_too() -> None:
    runs = []
    for run, epoch in zip(board(3, spread=0.2), (2.0, 0.5, 1.0), strict=True):
        part = run.scores[0]
        fields = Fields({"epoch": [epoch] * 120}, (), ("epoch",))
        runs.append(replace(run, scores=(replace(part, questions=replace(part.questions, fields=fields)),)))
    found = hn.arena(runs, over="epoch").checkpoints
    assert [(row.model, row.step) for row in found] == [("model 1", 0.5), ("model 2", 1.0), ("model 0", 2.0)]


@pytest.mark.simulation
def test_under_no_change_few_series_have_any_that_changed() -> None:
    """Holm over a series: at most 5% of series say anything, up to simulation error (3 standard errors)."""
    false = [any(row.changed for row in rows_of(trained(K=1, seed=seed, spread=0.0))) for seed in range(100)]
    assert np.mean(false) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("checkpoints")
    for run, step in zip(trained(spread=0.2), STEPS, strict=True):
        rows = [(f"q{i}", k, int(x)) for i, answers in enumerate(values_of(run)) for k, x in enumerate(answers)]
        table(out / f"step_{step}.csv", ("question", "repeat", "score"), *rows)
    return out


def test_the_command_says_it_in_one_sentence_and_in_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arena", str(folder), "--over", "step", "-q"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "from step 1,000 on the mean is higher than at step 0 by more than noise" in said
    assert main(["arena", str(folder), "--over", "step", "--format", "json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)["checkpoints"]
    assert [row["onset"] for row in found] == [False, True, False, False]


@pytest.mark.parametrize("several", [False, True])
def test_a_column_orders_the_runs_of_one_file_and_of_several(tmp_path: Path, several: bool) -> None:
    """Their questions are equal, and the column is not."""
    header = ("question", "model", "score", "cost", "step")
    rows = [(i, m, int(i % 3 < s), 0.1 * s + 0.001 * i, 10 * s) for s, m in enumerate("cab", 1) for i in range(60)]
    files = [[row for row in rows if row[1] == model] for model in "cab"] if several else [rows]
    paths = [str(table(tmp_path / f"{n}.csv", header, *part)) for n, part in enumerate(files)]
    found = hn.arena(paths, over="step", measures=["score", "cost"])
    assert [(row.metric, row.model, row.step) for row in found.checkpoints] == [
        (metric, model, step) for metric in ("score", "cost") for model, step in zip("cab", (10, 20, 30), strict=True)
    ]
    assert "the score" not in report.checkpoint_sentences(found)[1]


def test_tables_and_pages_have_them(folder: Path, tmp_path: Path) -> None:
    found: Arena = hn.arena(str(folder), over="step")
    assert list(found.to_frames()["checkpoints"]["step"]) == list(STEPS)
    pages = hn.write_html(found, tmp_path)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert 'data-figure="steps"' in text
        assert "Since the first" in text

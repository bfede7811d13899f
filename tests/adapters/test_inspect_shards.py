"""A shard set, `NAME.shards/K/*.eval`, is one run and not several incomplete ones."""

from __future__ import annotations

import pytest

import harness_noise as hn
from support.notes import noted

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai.log import read_eval_log, write_eval_log


@pytest.fixture
def sharded(inspect_logs, tmp_path):
    """The twelve questions of a log in three shards, of which the first was tried twice."""
    for k in range(3):
        log = read_eval_log(str(inspect_logs.a))
        log.eval.eval_id = log.eval.task_id = f"shard{k}"
        mine = [f"q{i}" for i in range(4 * k, 4 * k + 4)]
        log.samples = [sample for sample in log.samples if sample.id in mine]
        log.eval.dataset.sample_ids, log.results, log.reductions = mine, None, None
        (tmp_path / f"run.shards/{k}").mkdir(parents=True)
        write_eval_log(log, str(tmp_path / f"run.shards/{k}/{log.eval.created[:19].replace(':', '-')}_x.eval"))
        if k == 0:
            log.eval.created, log.samples = "2020-01-01T00:00:00+00:00", log.samples[:2]
            write_eval_log(log, str(tmp_path / "run.shards/0/2020-01-01T00-00-00_x.eval"))
    return tmp_path


def test_the_shards_of_a_set_are_one_run(inspect_logs, sharded):
    (whole,) = hn.analyze(inspect_logs.a).estimates
    (row,) = hn.analyze(sharded).estimates
    assert (row.n_questions, row.mean, row.repeats_max) == (12, pytest.approx(whole.mean), whole.repeats_max)
    assert row.se == pytest.approx(whole.se)
    (run,) = hn.read(sharded)
    assert any("3 shards, read as one run" in note for note in noted(run))
    (difference,) = hn.compare(sharded, inspect_logs.b).comparisons
    (want,) = hn.compare(inspect_logs.a, inspect_logs.b).comparisons
    assert (difference.diff, difference.se) == (pytest.approx(want.diff), pytest.approx(want.se))


def test_the_merged_log_counts_in_their_place(inspect_logs, sharded):
    (sharded / "run.eval").write_bytes(inspect_logs.a.read_bytes())
    (run,) = hn.read(sharded)
    assert run.path.endswith("run.eval")
    assert any("merged from them" in note for note in noted(run))


@pytest.mark.parametrize("lost", [0, 3])
def test_shards_that_each_name_all_questions_lack_only_what_no_shard_has(inspect_logs, tmp_path, lost):
    """Each worker's log may select all 12 questions: none says that the others' were never given."""
    for k in range(3):
        log = read_eval_log(str(inspect_logs.a))
        log.eval.eval_id = f"shard{k}"
        mine = [f"q{i}" for i in range(4 * k, 4 * k + 4 - (lost if k == 2 else 0))]
        log.samples, log.status = [sample for sample in log.samples if sample.id in mine], "cancelled"
        log.results = log.reductions = None
        (tmp_path / f"run.shards/{k}").mkdir(parents=True)
        write_eval_log(log, str(tmp_path / f"run.shards/{k}/2024-01-01T00-00-00_x.eval"))
    (run,) = hn.read(tmp_path)
    K = run.scores[0].values.shape[1]
    (row,) = hn.analyze(tmp_path).estimates
    assert row.n_questions == 12 - lost
    assert ("not_a_random_part" in row.diagnostics) == bool(lost)
    never = [note for note in noted(run) if "never given" in note]
    assert never == ([f"coins: {lost * K} of {12 * K} answers were never given (status cancelled)"] if lost else [])


def test_a_set_has_the_measures_and_the_fields_of_all_its_shards(inspect_logs, sharded):
    """Not those of its first shard only."""
    (whole,) = hn.analyze(inspect_logs.a, measures=["time"]).estimates
    (row,) = hn.analyze(sharded, measures=["time"]).estimates
    assert (row.n_questions, row.n_missing) == (12, 0)
    assert (row.mean, row.se) == (pytest.approx(whole.mean), pytest.approx(whole.se))
    slices = [
        (x.slice, x.n_questions, pytest.approx(x.mean)) for x in hn.analyze(inspect_logs.a, by=["passage"]).slices
    ]
    assert [(x.slice, x.n_questions, x.mean) for x in hn.analyze(sharded, by=["passage"]).slices] == slices


def test_shards_may_divide_the_epochs(inspect_logs, tmp_path):
    for k in (1, 2, 3):
        log = read_eval_log(str(inspect_logs.a))
        log.samples, log.results, log.reductions = [x for x in log.samples if x.epoch == k], None, None
        (tmp_path / f"run.shards/{k}").mkdir(parents=True)
        write_eval_log(log, str(tmp_path / f"run.shards/{k}/2024-01-01T00-00-00_x.eval"))
    (row,) = hn.analyze(tmp_path).estimates
    (whole,) = hn.analyze(inspect_logs.a).estimates
    assert (row.n_questions, row.repeats_max, row.se) == (12, 3, pytest.approx(whole.se))


def test_one_shard_that_is_named_is_read_alone(sharded):
    (path,) = (sharded / "run.shards/1").iterdir()
    for place in (path, path.parent):
        (run,) = hn.read(place)
        assert (run.path, len(run.scores[0].questions)) == (str(path), 4)


def test_shards_with_an_answer_in_common_are_refused(inspect_logs, tmp_path):
    for k in range(2):
        (tmp_path / f"run.shards/{k}").mkdir(parents=True)
        (tmp_path / f"run.shards/{k}/2024-01-01T00-00-00_x.eval").write_bytes(inspect_logs.a.read_bytes())
    with pytest.raises(hn.InputError, match="has the same answer"):
        hn.read(tmp_path)

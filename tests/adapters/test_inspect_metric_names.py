"""What a mean is called whose metrics are the task's own: by its scorer, and by what the runs beside it tell."""

from __future__ import annotations

import pytest

import harness_noise as hn
from harness_noise.cli import main
from support.notes import noted

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.scorer import SampleScore, Score, accuracy, metric, scorer, stderr

N = 12


def own(name, value):
    """A metric of the task's own code."""

    @metric(name=name)
    def build():
        def compute(scores: list[SampleScore]) -> float:
            return value([item.score.as_float() for item in scores])

        return compute

    return build


mean_reward = own("mean_reward", lambda scores: 100 * sum(x * (1 + i % 3) for i, x in enumerate(scores)) / len(scores))
win_rate = own("win_rate", lambda scores: sum(scores) / len(scores))
rounds = own("rounds", lambda scores: float(len(scores)))


def game(*metrics):
    @scorer(metrics=[item() for item in metrics], name="game")
    def build():
        async def score(state, target):
            return Score(value=float(state.output.completion == "yes"))

        return score

    return build()


def log(canned, folder, model, right, *metrics):
    """The log of a model that is right on the first questions."""
    task = canned.task(
        scorer=game(*(metrics or (mean_reward, win_rate, rounds))),
        answer=lambda state: "yes" if int(state.sample_id[1:]) < right else "no",
    )
    (found,) = canned.eval(task, folder, model=f"mockllm/{model}")
    assert found.status == "success", found.error
    return found.location


@pytest.fixture(scope="module")
def logs(canned, tmp_path_factory):
    folder = tmp_path_factory.mktemp("games")
    return {model: log(canned, folder / model, model, right) for model, right in (("none", 0), ("some", 5))}


def test_the_metric_that_equals_the_mean_is_its_name_and_the_others_have_rows_without_error_bars(logs):
    found = {row.metric: row for row in hn.analyze(logs["some"]).estimates}
    assert found.keys() == {"win_rate", "mean_reward", "rounds"}
    assert found["win_rate"].mean == 5 / N
    assert found["win_rate"].se > 0
    assert (found["rounds"].mean, found["rounds"].se, found["rounds"].n_questions) == (12.0, None, 0)
    assert found["mean_reward"].diagnostics == ("skipped_metric",)


def test_where_several_equal_it_none_is_guessed_and_a_note_says_so(logs):
    analysis = hn.analyze(logs["none"])
    assert [(row.metric, row.mean) for row in analysis.estimates] == [("mean", 0.0), ("rounds", 12.0)]
    assert any("mean_reward, win_rate" in note and "`metrics`" in note for note in noted(analysis))
    (row, _) = hn.analyze(logs["none"], metrics=["win_rate", "rounds"]).estimates
    assert (row.metric, row.mean) == ("win_rate", 0.0)


def test_a_run_beside_it_tells_the_name(logs):
    for a, b, diff in (("none", "some", -5 / N), ("some", "none", 5 / N)):
        comparison = hn.compare(logs[a], logs[b])
        (row,) = comparison.comparisons
        assert (row.metric, row.scorer, row.diff) == ("win_rate", "game", pytest.approx(diff))
        assert not any("several metrics equal the mean" in note for note in noted(comparison))
    found = hn.analyze([logs["none"], logs["some"]])
    assert [row.metric for row in found.estimates if row.se is not None] == ["win_rate", "win_rate"]
    board = hn.arena([logs["none"], logs["some"]])
    assert sorted((model.metric, model.mean) for model in board.models) == [("win_rate", 0.0), ("win_rate", 5 / N)]


def test_a_run_beside_it_can_refute_a_name(canned, logs, tmp_path):
    """Its only candidate is one that is not the mean where the scores differ."""
    reward = log(canned, tmp_path, "reward", 0, mean_reward)
    (alone,) = hn.analyze(reward).estimates
    assert alone.metric == "mean"
    (row,) = hn.compare(reward, logs["some"]).comparisons
    assert (row.metric, row.mean_a, row.mean_b) == ("mean", 0.0, 5 / N)


def test_metrics_of_inspect_are_the_name_whatever_else_is_equal(canned, tmp_path):
    where = log(canned, tmp_path, "zero", 0, mean_reward, accuracy, stderr, rounds)
    analysis = hn.analyze(where)
    assert [(row.metric, row.mean) for row in analysis.estimates] == [("accuracy", 0.0), ("rounds", 12.0)]
    assert not any("several metrics equal the mean" in note for note in noted(analysis))


def test_the_commands_take_the_name_of_the_run_beside_it(logs, capsys):
    assert main(["compare", logs["none"], logs["some"], "--metric", "win_rate", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("coins,win_rate,game,")


attacked = own("attack_success_rate", lambda scores: sum(scores[:9]) / 9)
"""Of nine of the twelve samples."""


def test_equal_scores_prove_no_name(canned, tmp_path):
    """The metric is of fewer samples than the mean, which nothing shows where all are wrong."""
    where = log(canned, tmp_path, "safe", 0, attacked)
    analysis = hn.analyze(where)
    (row,) = analysis.estimates
    assert (row.metric, row.n_questions, row.mean) == ("mean", N, 0.0)
    assert any("nothing shows that the metric attack_success_rate" in str(note) for note in noted(analysis))
    (named,) = hn.analyze(where, metrics=["attack_success_rate"]).estimates
    assert named.metric == "attack_success_rate"


def test_nor_does_an_export_write_its_noise_beside_it(canned, tmp_path):
    where = log(canned, tmp_path / "in", "safe", 0, attacked)
    with pytest.raises(hn.InputError, match="nothing to add"):
        hn.export(where, tmp_path / "out")


def test_a_run_beside_it_proves_the_name(canned, tmp_path):
    runs = [log(canned, tmp_path / str(right), str(right), right, win_rate) for right in (0, 5)]
    assert [row.metric for row in hn.analyze(runs).estimates] == ["win_rate", "win_rate"]
    (row,) = hn.compare(*runs).comparisons
    assert row.metric == "win_rate"


def test_without_results_only_inspects_own_metrics_name_a_row(canned, tmp_path):
    where = log(canned, tmp_path, "ended", 5, win_rate)
    ended = canned.quietly(read_eval_log, where)
    ended.results, ended.status = None, "error"
    path = str(tmp_path / "ended.json")
    canned.quietly(write_eval_log, ended, path)
    (row,) = hn.analyze(path).estimates
    assert row.metric == "mean"

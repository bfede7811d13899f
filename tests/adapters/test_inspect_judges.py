"""A judge whose flips are known, in real evals: the share that is measured, scorings appended, votes of a panel."""

import random

import numpy as np
import pytest

from support.notes import noted

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai import score
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ChatMessageTool, ModelOutput
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import solver

import harness_noise as hn
from harness_noise_adapters.inspect_logs.records import answer_hash

N, K, FLIPS = 60, 5, 0.2


@scorer(metrics=[accuracy()])
def judge(flips: float = FLIPS, seed: str = "first"):
    """Right where the answer is "yes", and then taken back with the chance `flips`."""

    async def graded(state, target):
        flip = random.Random(f"{seed} {state.sample_id} {state.epoch}").random() < flips
        right = ("yes" in state.output.completion) != flip
        return Score(value="C" if right else "I", answer=state.output.completion)

    return graded


@pytest.fixture(scope="module")
def log(canned, tmp_path_factory):
    """A log of a model that says "yes" to a third of the questions for sure, and else tosses a coin."""
    dataset = canned.samples(N)
    for i, sample in enumerate(dataset):
        sample.metadata["ease"] = 1.0 if i % 3 == 0 else 0.5
    (log,) = canned.eval(canned.task(dataset, scorer=judge()), tmp_path_factory.mktemp("judged"), epochs=K)
    return log


@pytest.fixture(params=["eval", "json"])
def judged(request, canned, log, tmp_path):
    if request.param == "eval":
        return log.location
    canned.quietly(write_eval_log, log, str(tmp_path / "judged.json"))
    return str(tmp_path / "judged.json")


def test_the_share_of_a_judge_who_flips(judged):
    """s²_judge = .2 · .8; a coin's verdict has .25, that of a sure answer .16: the judge's share is .16/.22."""
    (row,) = hn.analyze(judged).estimates
    flips = row.judge_flips
    truth = FLIPS * (1 - FLIPS)
    assert flips.of == "answers"
    assert flips.n_same_text > 200
    assert flips.variance == pytest.approx(truth, abs=4 * 0.5 * np.sqrt(2 * truth * (1 - 2 * truth) / 120))
    assert flips.rate == pytest.approx(2 * flips.variance)
    assert flips.share == pytest.approx(truth / (truth / 3 + 0.25 * 2 / 3), abs=0.25)
    assert flips.share == pytest.approx(flips.variance / N / row.var_prediction)


def test_it_is_what_inspect_itself_reads(judged):
    """The texts, as `read_eval_log` gives them, and the verdicts on them."""
    (row,) = hn.analyze(judged).estimates
    by_text = {}
    for sample in read_eval_log(judged).samples:
        by_text.setdefault((sample.id, sample.output.completion), []).append(sample.scores["judge"].value == "C")
    groups = [group for group in by_text.values() if len(group) > 1]
    pairs = [(a, b) for group in groups for i, a in enumerate(group) for b in group[:i]]
    assert (row.judge_flips.n_same_text, row.judge_flips.n_flips) == (len(pairs), sum(a != b for a, b in pairs))
    variance = sum(len(group) * np.var(group, ddof=1) for group in groups) / sum(map(len, groups))
    assert row.judge_flips.variance == pytest.approx(variance)


def test_a_judge_who_never_flips_says_nothing(canned, tmp_path):
    (log,) = canned.eval(canned.task(canned.samples(30), scorer=judge(0.0)), tmp_path, epochs=4)
    analysis = hn.analyze(log.location)
    assert analysis.estimates[0].judge_flips is None
    assert not any("grading" in note for note in noted(analysis))


def test_copies_of_one_answer_that_are_graded_anew(canned, tmp_path):
    """Then all that varies is the judge: what the model itself varies is not known, and no number says it is."""
    task = canned.task(canned.samples(60), scorer=judge(), answer=lambda state: f"yes to {state.sample_id}")
    (log,) = canned.eval(task, tmp_path, epochs=3)
    analysis = hn.analyze(log.location)
    (row,) = analysis.estimates
    assert "identical_repeats" in row.diagnostics
    assert (row.se_data, row.se_prediction, row.judge_flips.share) == (None, None, None)
    assert row.judge_flips.n_same_text == 60 * 3
    assert any("all answers to each question are one text" in note for note in noted(analysis))
    (pair,) = hn.compare(log.location, hn.read(log.location)).comparisons
    assert "identical_repeats" in pair.diagnostics


@pytest.mark.parametrize("text", ["", " \n"])
def test_empty_answers_are_no_texts(canned, tmp_path, text):
    task = canned.task(canned.samples(40), scorer=judge(0.4), answer=lambda state: text)
    (log,) = canned.eval(task, tmp_path, epochs=3)
    (row,) = hn.analyze(log.location).estimates
    assert row.judge_flips is None
    assert row.se_prediction is not None


def test_the_last_words_of_an_agent_are_not_its_work(canned, tmp_path):
    @solver
    def agent():
        async def solve(state, generate):
            state.messages.append(ChatMessageTool(content=f"{random.random()}", tool_call_id="1", function="bash"))
            state.output = ModelOutput.from_content("mockllm/model", "I have done it.")
            return state

        return solve

    task = canned.task(canned.samples(40), scorer=judge(0.4))
    task.solver = agent()
    (log,) = canned.eval(task, tmp_path, epochs=3)
    assert hn.analyze(log.location).estimates[0].judge_flips is None


def test_what_is_no_answer():
    said = {"role": "assistant", "content": "yes"}
    output = {"choices": [{"message": said}], "completion": "yes"}
    thought = {**said, "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "yes"}]}
    assert answer_hash({"output": output}) == answer_hash({"output": {"choices": [{"message": thought}]}}) != 0
    assert answer_hash({"output": output, "messages": [said]}) == answer_hash({"output": output})
    assert answer_hash({"output": output, "messages": [{"role": "user", "content": "?"}, said]}) != 0
    assert answer_hash({"output": output, "error": {"message": "x"}}) == 0
    assert answer_hash({"output": output, "messages": [{**said, "tool_calls": [{"id": "1"}]}]}) == 0
    assert answer_hash({}) == answer_hash({"output": None}) == answer_hash({"output": {"choices": []}}) == 0


@pytest.fixture(scope="module")
def appended(canned, tmp_path_factory):
    """One answer each, scored, and scored three times more; and once by a judge with other options."""
    folder = tmp_path_factory.mktemp("appended")
    (log,) = canned.eval(canned.task(canned.samples(N), scorer=judge()), folder / "first")
    for again in (judge(FLIPS, "second"), judge(FLIPS, "third"), judge(FLIPS, "fourth"), judge(0.4, "harsh")):
        log = canned.quietly(score, log, again, action="append", display="none")
    for spec in log.eval.scorers:  # a seed is no option of a real judge, whose calls differ by themselves
        (spec.options or {}).pop("seed", None)
        if (spec.options or {}).get("flips") == FLIPS:
            spec.options = {}
    path = folder / "appended.eval"
    canned.quietly(write_eval_log, log, str(path))
    return path


def test_scorings_appended_are_gradings_of_one_text(appended):
    rows = {row.scorer: row for row in hn.analyze(appended).estimates}
    assert list(rows) == ["judge", "judge1", "judge2", "judge3", "judge4"]
    flips = rows["judge"].judge_flips
    assert (flips.n_same_text, flips.share) == (6 * N, None)  # four gradings of one answer each
    assert rows["judge2"].judge_flips == flips
    truth = FLIPS * (1 - FLIPS)
    assert flips.variance == pytest.approx(truth, abs=0.04)
    assert rows["judge4"].judge_flips is None  # another judge, and each text once


def test_scorings_appended_are_levels_of_a_factor(appended):
    result = hn.factors(appended, {"judge": "scorer"})
    found = {row.factor: row for row in result.factors}
    assert (found["question"].levels, found["judge"].levels, found["residual"].levels) == (N, 5, 5 * N)
    assert result.n_answers == 5 * N
    assert len(result.judges) == 1 + 10
    verdicts = np.array(
        [[row.scores[name].value == "C" for name in ("judge", "judge1")] for row in read_eval_log(appended).samples]
    )
    pair = result.judges[1]
    assert (pair.judge_a, pair.judge_b) == ("judge", "judge1")
    assert pair.agreement == pytest.approx((verdicts[:, 0] == verdicts[:, 1]).mean())
    assert pair.diff == pytest.approx(verdicts[:, 0].mean() - verdicts[:, 1].mean())


def test_votes_of_a_panel(canned, tmp_path):
    """As `model_graded_qa(model=[…])` leaves them in `metadata.panel`."""

    @scorer(metrics=[accuracy()])
    def panel():
        async def graded(state, target):
            votes = [["C", "I", None][i % 3] for i in range(int(str(state.sample_id)[1:]) % 2, 3)]
            return Score(value="C", metadata={"panel": {"votes": votes, "size": 3, "failures": []}})

        return graded

    (log,) = canned.eval(canned.task(canned.samples(40), scorer=panel()), tmp_path)
    (row,) = hn.analyze(log.location).estimates
    assert (row.judge_flips.of, row.judge_flips.n_same_text, row.judge_flips.n_flips) == ("panel", 20, 20)
    assert row.judge_flips.share is None


def test_only_some_questions_of_a_large_log_are_read(log, monkeypatch):
    """Drawn by their ids, whatever was seen in the first ones; and none where those show no flip."""
    from harness_noise_adapters.inspect_logs import logfile

    monkeypatch.setattr(logfile, "GRADED", 30)
    (run,) = hn.read(log.location)
    assert (run.scores[0].gradings.texts != 0).any(axis=1).sum() == 30
    assert hn.analyze(run).estimates[0].judge_flips is not None
    read = []
    monkeypatch.setattr(logfile, "PROBED", 0)
    monkeypatch.setattr(logfile, "_beginning", lambda archive, name: read.append(name) or {})
    (run,) = hn.read(log.location)
    assert (run.scores[0].gradings, read) == (None, [])


@pytest.mark.parametrize("suffix", ["eval", "json"])
def test_one_log_that_was_scored_again_as_repeats(canned, tmp_path, suffix):
    """One answer each, graded in two logs: two repeats that vary by the judge alone."""
    (log,) = canned.eval(canned.task(canned.samples(40), scorer=judge()), tmp_path / "first")
    again = canned.quietly(score, log, judge(FLIPS, "second"), action="overwrite", display="none")
    paths = [tmp_path / f"{name}.{suffix}" for name in ("a", "b")]
    for path, one in zip(paths, (log, again), strict=True):
        canned.quietly(write_eval_log, one, str(path))
    (row,) = hn.analyze(paths, as_repeats=True).estimates
    assert (row.repeats_max, row.judge_flips.n_same_text) == (2, 40)
    verdicts = [[sample.scores["judge"].value for sample in one.samples] for one in (log, again)]
    assert row.judge_flips.n_flips == sum(a != b for a, b in zip(*verdicts, strict=True))
    assert "identical_repeats" in row.diagnostics
    assert (row.se_prediction, row.judge_flips.share) == (None, None)

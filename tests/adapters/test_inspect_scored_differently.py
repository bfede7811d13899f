"""Two versions of Inspect's own f1(): before #4619 it counted each word once, since then as often as it comes."""

import random

import pytest

from support.notes import noted

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai.scorer import Score, _classification, accuracy, f1, mean, scorer, stderr
from inspect_ai.scorer._classification import _normalize

import harness_noise as hn
from harness_noise.cli import main

if not hasattr(_classification, "Counter"):
    pytest.skip("this Inspect has the older f1() alone", allow_module_level=True)

N = 60


def _old():
    @scorer(metrics=[mean(), stderr()], name="f1")
    def old_f1():
        """The bag of words without multiplicities, as it was."""

        async def score(state, target):
            answer, right = (set(_normalize(text).split()) for text in (state.output.completion, target.text))
            common = len(answer & right)
            precision, recall = common / len(answer), common / len(right)
            value = 2 * precision * recall / (precision + recall) if common else 0.0
            return Score(value=round(value, 2), answer=state.output.completion)

        return score

    return old_f1()


def _answers(repeating):
    """State → an answer, the same for every model; the first `repeating` questions get one that repeats itself."""

    def answer(state):
        i = int(str(state.sample_id)[1:])
        more = ["yes"] * (2 + i % 3) if i < repeating else [random.Random(i).choice("abc")]
        return " ".join([*more, "yes", f"x{i}"])

    return answer


@pytest.fixture(scope="module")
def logs(canned, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scored")

    def run(name, scorer_, repeating=N, **options):
        answer = options.pop("answer", _answers(repeating))
        task = canned.task(canned.samples(N), answer=answer, scorer=scorer_)
        (log,) = canned.eval(task, folder / name, model=f"mockllm/{name}", **options)
        return log.location

    return {
        "new": run("new", f1()),
        "old": run("old", _old()),
        "new-few": run("new-few", f1(), repeating=3),
        "old-few": run("old-few", _old(), repeating=3),
        "new-3": run("new-3", f1(), epochs=3),
        "other": run("other", f1(), answer=lambda state: f"other {state.sample_id} yes"),
    }


def test_equal_answers_scored_by_two_versions_get_no_verdict(logs):
    table = hn.compare(logs["new"], logs["old"])
    (row,) = table.comparisons
    assert row.verdict == "scored differently"
    assert {"scored_differently"} <= set(row.diagnostics)
    assert (row.equal_answers.n_equal, row.equal_answers.n_differ) == (N, N)
    assert row.p_value is not None
    assert row.ci_low is not None
    assert table.to_dict()["comparisons"][0]["equal_answers"] == {"n_equal": N, "n_differ": N}


def test_the_first_line_says_so(logs, capsys):
    assert main(["compare", logs["new"], logs["old"]]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("60 of 60 equal answers are scored differently: the scoring differs, not the models.")


def test_the_gate_cannot_judge_them(logs):
    gate = hn.gate(logs["new"], logs["old"])
    assert gate.outcome == "cannot judge"
    assert "scored_differently" in gate.rows[0].diagnostics
    assert hn.gate(logs["new"], logs["old"], ratio=0.9).outcome == "cannot judge"
    assert hn.gate(logs["new"], [logs["new-few"], logs["old"]]).outcome == "cannot judge"


def test_an_arena_withholds_the_verdict_of_that_pair_alone(logs):
    (board,) = hn.arena([logs[name] for name in ("new", "old", "other")]).boards
    verdicts = {(row.model_a, row.model_b): row for row in board.pairs}
    withheld = verdicts["mockllm/new", "mockllm/old"]
    assert withheld.verdict == "scored differently"
    assert withheld.equal_answers.n_differ == N
    others = [row for pair, row in verdicts.items() if "mockllm/other" in pair]
    assert all("scored_differently" not in row.diagnostics for row in others)
    assert {row.verdict for row in others} <= {"A better", "B better", "not separable"}


def test_a_few_of_them_are_a_note(logs):
    table = hn.compare(logs["new-few"], logs["old-few"])
    (row,) = table.comparisons
    assert row.verdict != "scored differently"
    assert row.equal_answers.n_differ == 3
    assert any("3 of 60 equal answers" in str(note) for note in noted(table))


def test_other_answers_say_nothing(logs):
    table = hn.compare(logs["new"], logs["other"])
    assert table.comparisons[0].equal_answers is None
    assert not any("equal answers" in str(note) for note in noted(table))


def test_unequal_numbers_of_repeats_are_compared_as_sets(logs):
    (row,) = hn.compare(logs["new-3"], logs["old"]).comparisons
    assert row.verdict == "scored differently"
    assert row.equal_answers.n_equal == N


@pytest.fixture(scope="module")
def judged(canned, tmp_path_factory):
    """Two runs with equal answers, which a judge of Inspect's name grades at random."""

    def judge(seed):
        @scorer(metrics=[accuracy()], name="model_graded_qa")
        def graded():
            async def score(state, target):
                return Score(value=random.Random(f"{seed} {state.sample_id}").choice("CI"))

            return score

        return graded()

    out = []
    for name in ("a", "b"):
        task = canned.task(canned.samples(N), answer=_answers(N), scorer=judge(name))
        (log,) = canned.eval(task, tmp_path_factory.mktemp(name), model=f"mockllm/{name}")
        out.append(log.location)
    return out


def test_a_judge_is_noise(judged):
    table = hn.compare(*judged)
    (row,) = table.comparisons
    assert row.verdict in ("A better", "B better", "not separable")
    assert row.equal_answers is None
    assert row.judge_flips.n_same_text == N
    assert 10 < row.judge_flips.n_flips < 50
    assert row.judge_flips.variance == pytest.approx(row.judge_flips.rate / 2)


def test_other_versions_are_named(logs, tmp_path, canned):
    from inspect_ai.log import read_eval_log, write_eval_log

    log = canned.quietly(read_eval_log, logs["new"])
    log.eval.packages = {"inspect_ai": "0.3.1"}
    log.eval.task_version = 2
    path = str(tmp_path / "other.eval")
    canned.quietly(write_eval_log, log, path)
    table = hn.compare(logs["new"], path)
    assert "other_version" in table.comparisons[0].diagnostics
    (note,) = [str(note) for note in noted(table) if "other versions" in str(note)]
    assert "task version 0 and 2" in note
    assert "inspect_ai" in note

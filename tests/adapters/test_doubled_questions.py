"""Questions that are asked twice under several ids: one code for all readers, and what clusters by words would give."""

import json
import random

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.data.doubled import clusters_with_doubles, find_doubles, n_doubled
from harness_noise.data.questions import Questions

N, TWICE = 100, 20


def asked(i):
    """The number of what question i asks: the last twenty ask what the first twenty do."""
    return i if i < N - TWICE else i - (N - TWICE)


def right(i, seed=1):
    return int(random.Random(f"{seed} {asked(i)}").random() < 0.5)


def by_hand(values):
    """Mean and standard error (CR2 with clusters of one and two) where equal questions are one cluster."""
    return hn.estimate(np.array(values, dtype=float), [asked(i) for i in range(N)])


def says(result, spec, se):
    (note,) = [note.as_text() for note in result.notes if note.code == "doubled_questions"]
    assert f"{TWICE} of {N} questions are the same as another one" in note
    assert spec in note
    assert f"{100 * se:.2f} points" in note


def check(path, spec, other=None):
    """The code and the note come, the SPEC that the note names does what it says, and it then is silent."""
    values = [right(i) for i in range(N)]
    result = hn.analyze(path)
    (row,) = result.estimates
    assert "doubled_questions" in row.diagnostics
    assert row.n_clusters == N
    says(result, spec, by_hand(values).se)
    clustered = hn.analyze(path, cluster=spec)
    (row,) = clustered.estimates
    assert row.se == pytest.approx(by_hand(values).se)
    assert row.n_clusters == N - TWICE
    assert "doubled_questions" not in row.diagnostics
    assert not [note for note in clustered.notes if note.code == "doubled_questions"]
    if other is not None:
        compared = hn.compare(path, other)
        assert "doubled_questions" in compared.comparisons[0].diagnostics
        d = np.array([right(i) - right(i, 2) for i in range(N)], dtype=float)
        says(compared, spec, by_hand(d).se)
        (board,) = hn.arena([path, other]).boards
        assert "doubled_questions" in board.pairs[0].diagnostics


def test_a_table(tmp_path):
    paths = []
    for seed in (1, 2):
        lines = [f"q{i},What is the answer to item {asked(i)} of the list?,{right(i, seed)}" for i in range(N)]
        paths.append(tmp_path / f"{seed}.csv")
        paths[-1].write_text("\n".join(["id,question,score", *lines]))
    check(paths[0], "question", paths[1])


@pytest.mark.parametrize("column", ["choices", "options", "A", "context", "passage", "target"])
def test_of_a_table_other_choices_or_passages_are_other_questions(tmp_path, column):
    lines = [f"q{i},What is the answer to item {asked(i)} of the list?,{column} {{}},{right(i)}" for i in range(N)]
    for of, codes in ((asked, ("doubled_questions",)), (int, ())):
        rows = [line.format(of(i)) for i, line in enumerate(lines)]
        (tmp_path / "t.csv").write_text("\n".join([f"id,question,{column},score", *rows]))
        (row,) = hn.analyze(tmp_path / "t.csv").estimates
        assert tuple(code for code in row.diagnostics if code == "doubled_questions") == codes


def lm_eval_run(folder, seed=1, *, same_id=False, choices=lambda i: "x", target=lambda i: "yes"):
    folder.mkdir()
    lines, times = [], {}
    for i in range(N):
        doc = {"question": f"Question {asked(i)}?"} | ({} if same_id else {"id": i})
        number = asked(i) if same_id else i
        lines.append({
            "doc_id": i, "doc": doc, "target": target(i), "resps": [["yes"]], "filtered_resps": ["yes"],
            "arguments": {"gen_args_0": {"arg_0": f"Q: {asked(i)}?", "arg_1": choices(i)}}, "filter": "none",
            "metrics": ["acc"], "doc_hash": f"{number:064x}", "prompt_hash": f"{asked(i):064x}",
            "target_hash": "0" * 64, "acc": float(right(i, seed)),
        })  # fmt: skip
        times[number] = times.get(number, 0) + 1
    (folder / "samples_t_2026-01-01T00-00-00.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    results = {
        "results": {"t": {"acc,none": sum(right(i, seed) for i in range(N)) / N}}, "configs": {"t": {"task": "t"}},
        "versions": {"t": 1}, "config": {"model": f"toy-{seed}"}, "higher_is_better": {"t": {"acc": True}},
    }  # fmt: skip
    (folder / "results_2026-01-01T00-00-00.json").write_text(json.dumps(results))
    return folder


@pytest.mark.parametrize("same_id", [False, True])
def test_lm_eval(tmp_path, same_id):
    a, b = (lm_eval_run(tmp_path / str(seed), seed, same_id=same_id) for seed in (1, 2))
    check(a, "question", b)


@pytest.mark.parametrize("other", [{"choices": lambda i: f" choice {i}"}, {"target": lambda i: f"target {i}"}])
def test_other_choices_or_targets_are_other_questions(tmp_path, other):
    (row,) = hn.analyze(lm_eval_run(tmp_path / "a", **other)).estimates
    assert "doubled_questions" not in row.diagnostics


@pytest.mark.parametrize("kept", [[], {}, None])
def test_of_lm_eval_requests_that_were_not_kept_are_not_equal(tmp_path, kept):
    folder = lm_eval_run(tmp_path / "a")
    (file,) = folder.glob("samples_*")
    rows = [json.loads(line) | {"arguments": kept} for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (row,) = hn.analyze(folder).estimates
    assert "doubled_questions" not in row.diagnostics


def test_inspect(canned, tmp_path):
    dataset = canned.samples(N)
    for i, sample in enumerate(dataset):
        sample.input = f"Question {asked(i)}?"
    paths = []
    for seed in (1, 2):
        answers = {f"q{i}": "yes" if right(i, seed) else "no" for i in range(N)}
        task = canned.task(dataset, answer=lambda state, answers=answers: answers[state.sample_id])
        (log,) = canned.eval(task, tmp_path / str(seed), model=f"mockllm/{seed}")
        paths.append(log.location)
    check(paths[0], "input", paths[1])


def test_of_inspect_other_choices_are_other_questions(canned, tmp_path):
    dataset = canned.samples(12)
    for i, sample in enumerate(dataset):
        sample.input, sample.choices = "Which one?", ["yes", "no", f"{i}"]
    (log,) = canned.eval(canned.task(dataset), tmp_path)
    (row,) = hn.analyze(log.location).estimates
    assert "doubled_questions" not in row.diagnostics


def test_clusters_that_hold_them_together_say_nothing():
    questions = Questions(tuple("abcd"), doubles=((0, 2),))
    assert clusters_with_doubles(questions, ("x", "y", "x", "y")) is None
    assert clusters_with_doubles(questions, ("x", "y", "z", "y")) == ("x", "y", "x", "y")
    assert clusters_with_doubles(Questions(tuple("abcd"), doubles=((0, 1), (1, 2))), None) == ("a", "a", "a", "d")
    assert n_doubled(Questions(tuple("abcd"), doubles=((0, 1), (1, 2)))) == 2


def test_one_pair_among_many_says_nothing(tmp_path):
    """It could raise the variance by 2/300, the standard error by a third of a percent."""
    for n, codes in ((300, ()), (150, ("doubled_questions",))):
        lines = [f"q{i},What is the answer to item {max(i, 1)} of the list?,{i % 2}" for i in range(n)]
        (tmp_path / f"{n}.csv").write_text("\n".join(["id,question,score", *lines]))
        (row,) = hn.analyze(tmp_path / f"{n}.csv").estimates
        assert tuple(code for code in row.diagnostics if code == "doubled_questions") == codes


def test_what_is_not_known_is_not_equal():
    assert find_doubles(["", "", "x", "x"]) == ((2, 3),)
    assert find_doubles(["x", "x"], None) == ()
    assert find_doubles(["x", "x"], ["y", "z"]) == ()

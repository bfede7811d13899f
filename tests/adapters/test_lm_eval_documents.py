"""The documents of lm-eval's samples files are read when their texts are needed, and not before."""

import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import harness_noise as hn
from harness_noise.analysis.repeats import as_repeats
from harness_noise.data.matching import pair_questions, union_of_questions
from harness_noise.data.questions import Questions, content_hash
from harness_noise.data.scores import ReadOptions
from harness_noise.errors import InputError
from harness_noise.extra.arena import workers
from harness_noise.io.registry import ReadUnit
from harness_noise_adapters.lm_eval_harness import adapter
from harness_noise_adapters.lm_eval_harness.files import samples as samples_module
from harness_noise_adapters.lm_eval_harness.files import scan

N = 12


def row(i: int, *, doc=None, key: str = "", seed: int = 0) -> dict:
    right = float((i * 7 + seed) % 3 > 0)
    return {
        "doc_id": i, "doc": {"question": f"Question {i}?"} if doc is None else doc, "target": "1",
        "arguments": {"gen_args_0": {"arg_0": f"Q: {i}?", "arg_1": {"until": []}}}, "resps": [["1"]],
        "filtered_resps": ["1"], "filter": "none", "metrics": ["acc", "em"],
        "doc_hash": content_hash(f"{key}{i}").ljust(64, "0"), "prompt_hash": f"{i:064x}", "target_hash": "0" * 64,
        "acc": right, "em": 1.0 - right,
    }  # fmt: skip


def write(folder: Path, model: str, rows) -> Path:
    """A run's folder; the model is its name."""
    (folder / model).mkdir(parents=True)
    path = folder / model / "samples_t_2026-01-01T00-00-00.000000.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in rows))
    return path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files whose documents were read."""
    found: list[Path] = []
    read = samples_module.Documents.read

    def spied(self):
        found.append(self.path)
        return read(self)

    monkeypatch.setattr(samples_module.Documents, "read", spied)
    return found


def eager(questions: Questions) -> Questions:
    """The questions that an adapter gives once it has read everything."""
    assert questions.documents is not None
    inputs, texts = questions.documents.read()
    return Questions(questions.keys, questions.kind, inputs, questions.targets, questions.prompts, texts)


# who asks, and who does not


def test_what_does_not_need_texts_does_not_read_them(tmp_path, reads):
    a = write(tmp_path, "a", [row(i) for i in range(N)])
    b = write(tmp_path, "b", [row(i, seed=1) for i in range(N)])
    fewer = write(tmp_path, "c", [row(i, seed=2) for i in range(3, N)])
    again = write(tmp_path, "d", [row(i, seed=3) for i in range(N)])
    assert hn.analyze(a).estimates[0].n_questions == N
    (one, *_) = hn.compare(a, b).comparisons
    assert (one.n_questions, one.n_only_a, one.n_only_b) == (N, 0, 0)
    (one, *_) = hn.compare(a, fewer).comparisons
    assert (one.n_questions, one.n_only_a, one.n_only_b) == (N - 3, 3, 0)
    runs = [replace(hn.read(path)[0], model="a") for path in (a, again)]
    (joined,) = as_repeats(runs)
    assert hn.analyze(joined).estimates[0].repeats_max == 2
    assert reads == []


def test_the_arena_reads_the_texts_that_it_shows_from_one_file(tmp_path, reads):
    paths = [write(tmp_path, f"m{seed}", [row(i, seed=seed) for i in range(seed, N)]) for seed in range(4)]
    found = hn.arena(paths)
    assert len(found.benchmarks) == 2, "acc and em"
    assert reads == [paths[0]]
    for board in found.boards:
        assert tuple(board.texts) == tuple(f"Question {i}?" for i in range(N))


@pytest.mark.parametrize("other", ["new hashes", "another harness", "half of the hashes"])
def test_a_match_by_content_reads_them_and_is_what_it_was(tmp_path, reads, other):
    a = hn.read(write(tmp_path, "a", [row(i) for i in range(N)]))[0].scores[0].questions
    order = list(reversed(range(N)))
    rows = [row(i, key="" if other.startswith("half") and i % 2 else "new") for i in order]
    b = hn.read(write(tmp_path, "b", rows))[0].scores[0].questions
    if other == "another harness":
        b = Questions(tuple(map(str, order)), "sample id", tuple(content_hash(f"Question {i}?") for i in order))
    elif other == "half of the hashes":
        b = replace(b)  # one of the two has been read before
    wanted = pair_questions(eager(a), b if b.documents is None else eager(b))
    assert wanted.by == "content"
    assert wanted.rows_b == order
    reads.clear()
    assert pair_questions(a, b) == wanted
    assert len(reads) == (2 if other == "new hashes" else 1)
    assert pair_questions(a, b) == wanted
    assert len(reads) <= 2, "they are read once"


def test_runs_that_other_processes_have_read_share_their_questions_unread(tmp_path, reads):
    paths = [write(tmp_path, f"m{seed}", [row(i, seed=seed) for i in range(N)]) for seed in range(3)]
    units = [ReadUnit("lm-eval", part) for path in paths for part in adapter.parts(path)]
    found = workers.read_units(units, ReadOptions(), jobs=2)
    questions = {id(part.questions): part.questions for answer in found for run in answer.runs for part in run.scores}
    assert len(questions) == 1
    assert reads == []
    (shared,) = questions.values()
    assert shared.texts[3] == "Question 3?"
    assert shared.inputs[3] == content_hash("Question 3?")


@given(st.lists(st.sets(st.integers(0, 9), min_size=1), min_size=2, max_size=5))
def test_the_union_has_every_question_of_every_run(subsets):
    keys = [tuple(map(str, sorted(rows, reverse=m % 2 > 0))) for m, rows in enumerate(subsets)]
    whole, rows, notes = union_of_questions([Questions(each, "doc_hash", inputs=each) for each in keys])
    assert (set(whole.keys), notes) == (set().union(*keys), [])
    for each, at in zip(keys, rows, strict=True):
        assert [whole.keys[i] for i in at] == list(each)


# what is read


@pytest.mark.parametrize("loads", [scan.loads, json.loads])
def test_what_is_read_later_is_what_the_file_says(lm_eval_runs, loads, monkeypatch):
    monkeypatch.setattr(scan, "loads", loads)
    told = 0
    for path in lm_eval_runs.rglob("samples_*.jsonl"):
        found = samples_module.read_samples(path, scan.Wanted("t"))
        docs: dict[tuple[str, int], dict] = {}
        count: dict[tuple[str, str], int] = {}
        for line in path.read_text().splitlines():
            item = json.loads(line)
            key = item["doc_hash"], item.get("filter", "none")
            count[key] = count.get(key, 0) + 1
            docs.setdefault((item["doc_hash"], count[key]), item["doc"])
        texts = [samples_module._texts(doc) for doc in docs.values()]
        inputs, shown = found.documents.read()
        assert tuple(shown) == tuple(short for _, short in texts)
        if inputs is not None:
            assert inputs == tuple(content_hash(text) for text, _ in texts)
            told += 1
        else:
            assert None in (long := [text for text, _ in texts]) or len(set(long)) < len({key for key, _ in docs})
    assert told > 2


def test_texts_that_do_not_tell_documents_apart_match_nothing(tmp_path):
    path = write(tmp_path, "a", [row(i, doc={"question": f"{i % 5}?"}) for i in range(N)])
    questions = hn.read(path)[0].scores[0].questions
    assert questions.inputs is None
    assert questions.texts[7] == "2?"


def test_unread_questions_travel_unread(tmp_path, reads):
    questions = hn.read(write(tmp_path, "a", [row(i) for i in range(N)]))[0].scores[0].questions
    there = pickle.loads(pickle.dumps(questions))  # noqa: S301
    assert repr(there).startswith("Questions(")
    assert reads == []
    assert tuple(there.texts) == tuple(f"Question {i}?" for i in range(N))
    assert there.documents is None
    back = pickle.loads(pickle.dumps(there))  # noqa: S301
    assert (back.inputs, back.texts) == (questions.inputs, questions.texts)
    assert len(reads) == 2
    assert replace(questions, kind="other").inputs is questions.inputs
    assert not hasattr(questions, "text")


def test_what_is_given_is_not_read(tmp_path, reads):
    questions = hn.read(write(tmp_path, "a", [row(i) for i in range(N)]))[0].scores[0].questions
    given = replace(questions, inputs=None, texts=("x",) * N)
    assert (given.inputs, given.texts, given.documents, reads) == (None, ("x",) * N, None, [])


# a file that is not there any more


def gone(path: Path) -> None:
    path.unlink()


def grown(path: Path) -> None:
    with path.open("a") as file:
        file.write(json.dumps(row(N)) + "\n")


def rewritten(path: Path) -> None:
    """Size and time are what they were."""
    before = path.stat()
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert scan.stamp(path) == (before.st_size, before.st_mtime)


@pytest.mark.parametrize("change", [gone, grown, rewritten])
def test_a_file_that_is_another_by_now_is_refused(tmp_path, change):
    paths = [write(tmp_path, name, [row(i, key=name) for i in range(N)]) for name in "ab"]
    a, b = (hn.read(path)[0] for path in paths)
    change(paths[1])
    with pytest.raises(InputError, match=r"changed, moved or deleted after its scores were read") as caught:
        hn.compare(a, b)
    assert str(paths[1]) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert b.scores[0].questions.shown() is None


def test_an_arena_goes_on_without_texts(tmp_path):
    # each model has its own answers: equal ones that are scored differently could not be told without texts
    own = [[row(i, seed=seed) | {"resps": [[f"{seed}: {i}"]]} for i in range(N)] for seed in range(3)]
    paths = [write(tmp_path, f"m{seed}", rows) for seed, rows in enumerate(own)]
    runs = [hn.read(path)[0] for path in paths]
    whole = hn.arena(runs)
    runs = [hn.read(path)[0] for path in paths]
    for path in paths:
        path.unlink()
    found = hn.arena(runs)
    assert {board.texts for board in found.boards} == {None}
    assert found.benchmarks == whole.benchmarks
    assert list(found.pairs) == list(whole.pairs)


# lines without their bulk

ANY = st.recursive(
    st.none() | st.integers(-3, 3) | st.sampled_from([', "target": ', '"doc_id": ', "é", "}", "]"]),
    lambda some: (
        st.lists(some, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "doc_id", "doc", "target", "arguments"]), some, max_size=4)
    ),
    max_leaves=8,
)


@given(ANY, ANY, st.booleans(), st.booleans())
def test_a_row_without_its_bulk_says_nothing_wrong(doc, target, choices, inner):
    if inner:
        doc = {"log": row(5, doc=doc) | {"target": 77}, "more": doc}
    full = row(3, doc=doc) | {"target": target}
    line = json.dumps(full).encode() + b"\n"
    found, _ = scan._cut(line, choices)
    assume(found is not None)
    names = ("doc_id", "doc", "target", "doc_hash", "filter", "metrics", "acc")
    assert found.items() >= {name: full[name] for name in names}.items()
    if choices:
        assert found["filtered_resps"] == full["filtered_resps"]
    assert {name: full[name] for name in found} == found


def test_two_lines_run_together_are_refused(tmp_path):
    """What a run leaves that was killed while it wrote, and started again."""
    path = write(tmp_path, "a", [row(i) for i in range(3)])
    torn = json.dumps(row(3))[:30] + json.dumps(row(4)) + "\n"
    path.write_text(path.read_text() + torn)
    with pytest.raises(InputError, match="line 4: not JSON"):
        hn.read(path)


def test_doc_ids_are_read_from_what_is_left(tmp_path):
    path = write(tmp_path, "a", [row(i) | {"doc_id": 10 * i} for i in range(N)])
    found = samples_module.read_samples(path, scan.Wanted("t"))
    np.testing.assert_array_equal(found.doc_ids, 10 * np.arange(N))

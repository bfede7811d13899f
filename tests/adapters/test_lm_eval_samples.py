"""Samples files, line by line: what any JSON in them becomes, with either decoder, and what it costs."""

import json
import math
import re
import tracemalloc
from itertools import chain

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness_noise.data.clusters import UserSpec, namer
from harness_noise.data.questions import content_hash, occurrences
from harness_noise.errors import InputError
from harness_noise.io import paths
from harness_noise_adapters.lm_eval_harness.files import scan
from harness_noise_adapters.lm_eval_harness.files.read import names_of
from harness_noise_adapters.lm_eval_harness.files.samples import read_samples
from harness_noise_adapters.lm_eval_harness.files.scan import Index, Wanted
from harness_noise_adapters.lm_eval_harness.scoring import gather as gather_module
from harness_noise_adapters.lm_eval_harness.scoring.gather import Scored


def line(i=0, **changes) -> dict:
    """A row as lm-eval writes it."""
    return {
        "doc_id": i, "doc": {"id": i, "question": f"Question {i}?"}, "target": "1",
        "arguments": {"gen_args_0": {"arg_0": f"Q: {i}?", "arg_1": {"until": []}}}, "resps": [["1"]],
        "filtered_resps": ["1"], "filter": "none", "metrics": ["acc"], "doc_hash": f"{i:064x}",
        "prompt_hash": f"{i:064x}", "target_hash": "0" * 64, "acc": 1.0,
    } | changes  # fmt: skip


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def told(path, wanted):
    """Everything that is read, or what is wrong."""
    try:
        found = read_samples(path, wanted)
    except InputError as error:
        return str(error).partition("(")[0]
    columns = {
        key: (column.matrix(len(found.keys))[0].tolist(), list(column.own), sorted(column.kinds), repr(column.raw))
        for key, column in found.columns.items()
    }
    inputs, texts = found.documents.read()
    packed = [None if item is None else tuple(item) for item in (inputs, found.targets, found.prompts)]
    more = (found.kind, list(found.doc_ids), found.clusters, found.unclustered, found.answers, found.scored)
    return repr((tuple(found.keys), packed, tuple(texts), more, columns))


# any JSON

HUGE = [2**63, -(2**63) - 1, 2**64, 2**64 + 1, 10**25, 10**25 + 1, 10**400]
SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(HUGE) | st.floats() | st.text(max_size=5)
    | st.sampled_from(["\ud800", "\x00", " at 0x7F>", "True", "1.5", '", "filter": "', "  ", "a\nb"])
)  # fmt: skip
ANY = st.recursive(
    SCALARS, lambda some: st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=3), some, max_size=3),
    max_leaves=6,
)  # fmt: skip
FIELDS = [*line(), "cluster", "scores_per_repeat", "f1"]
CHANGES = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(FIELDS), ANY | st.just(...) | st.lists(st.floats(), max_size=3)),
    max_size=4,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHANGES, st.booleans(), st.sampled_from(["plain", "cluster", "key", "raw"]))
@example([(0, "doc_id", ...), (0, "doc_id", " at 0x7F>")], False, "plain")
@example([(0, "resps", [[" at 0x7F>"]])], False, "plain")
@example([(1, "metrics", []), (1, "filter", ...)], False, "plain")
def test_both_decoders_and_whole_lines_say_the_same(tmp_path, monkeypatch, changes, ascii_only, what):
    pytest.importorskip("orjson", reason="orjson is not installed")
    rows = [line(i % 4, **({"filter": "other"} if i > 3 else {})) for i in range(6)]
    for i, name, value in changes:
        if value is ...:
            rows[i].pop(name, None)
        elif name == "doc" and not isinstance(value, dict):
            rows[i]["doc"] = {"id": value, "question": "?"}
        else:
            rows[i][name] = value
    path = tmp_path / "samples_t.jsonl"
    text = "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    wanted = {
        "plain": Wanted("t"), "cluster": Wanted("t", cluster=namer("id")), "key": Wanted("t", key=namer("id")),
        "raw": Wanted("t", raw=frozenset(("acc", "f1"))),
    }[what]  # fmt: skip
    fast = told(path, wanted)
    with monkeypatch.context() as patch:
        patch.setattr(scan, "_cut", lambda *_, **__: (None, 0))
        assert told(path, wanted) == fast
        patch.setattr(scan, "loads", json.loads)
        patch.setattr(paths, "_codec", lambda: None)
        assert told(path, wanted) == fast
    with monkeypatch.context() as patch:
        patch.setattr(scan, "loads", json.loads)
        patch.setattr(paths, "_codec", lambda: None)
        assert told(path, wanted) == fast
        patch.setattr(scan, "_BLOCK", 1)
        small = told(path, wanted)
        # of two faults in one file, the filters' is found before the documents' within a block
        assert small == fast or (type(small), type(fast)) == (str, str)


def test_ids_that_are_one_float_are_two_clusters_and_two_questions(tmp_path):
    path = write(tmp_path / "s.jsonl", [line(i, doc={"id": 2**64 + i, "question": f"{i}?"}) for i in range(4)])
    ids = tuple(str(2**64 + i) for i in range(4))
    assert read_samples(path, Wanted("t", cluster=namer("id"))).clusters == ids
    assert read_samples(path, Wanted("t", key=namer("id"))).keys == ids
    rows = [
        {key: value for key, value in json.loads(text).items() if key != "doc_hash"}
        for text in path.read_text().splitlines()
    ]
    assert len(set(read_samples(write(path, rows), Wanted("t")).keys)) == 4


def test_a_document_that_is_itself_a_sample(tmp_path):
    inner = line(7, doc={"question": "inner"})
    path = write(tmp_path / "s.jsonl", [line(i, doc={"log": inner | {"n": i}, "question": f"{i}?"}) for i in range(3)])
    found = read_samples(path, Wanted("t"))
    assert found.documents.read()[0] == tuple(content_hash(f"{i}?") for i in range(3))
    assert found.keys == tuple(f"{i:064x}" for i in range(3))


def by_names(*fields):
    """Return what is wanted of documents whose fields have these names."""
    return Wanted("t", cluster=namer("id"), names=names_of(map(UserSpec, fields)))


@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize(
    ("name", "twice", "wanted"),
    [
        ("doc_id", '"doc_id": 2, "acc": 0.25', Wanted("t")),
        ("target", '"target": "0", "target": "1"', Wanted("t", cluster=namer("id"))),
        ("acc", '"acc": 0.25, "acc": 1.0', Wanted("t")),
        ("acc", '"acc": 0.25, "acc" : 1.0', Wanted("t")),
        ("target_hash", '"target_hash": "b", "target_hash": "a"', Wanted("t")),
        ("acc", '"acc": 0.25, "acc": 1.0', Wanted("t", choices=True)),
        ("id", '"id": 3, "id": 2', Wanted("t", cluster=namer("id"))),
        ("id", '"id": 3, "id": 2', Wanted("t", key=namer("id"))),
        ("id", '"id": 3, "id": 2', by_names("id")),
        ("id", r'"id": 3, "\u0069d": 2', by_names("id")),
        ("id", r'"id": 2, "a/b": 3, "a\/b": 2', by_names("id", "a/b")),
        ("doc", '"doc": {}, "doc": {"id": 2', by_names("id")),
    ],
)
def test_a_name_that_stands_twice_in_a_line_is_refused(tmp_path, name, twice, wanted, array):
    path = write(tmp_path / "s.jsonl", [line(i) for i in range(4)])
    assert len(read_samples(path, wanted).keys) == 4
    lines = path.read_text().splitlines()
    lines[2] = re.sub(rf'"{name}": [^,}}]+', lambda match: twice, lines[2])
    path.write_text(f"[{', '.join(lines)}]" if array else "\n".join(lines))
    with pytest.raises(InputError, match=rf"{'' if array else 'line 3: '}.*'[\w/]+' is in one of its objects twice"):
        read_samples(path, wanted)


def test_one_question_with_a_million_answers_among_many_is_refused(tmp_path):
    rows = [line(i, metrics=["acc"], scores_per_repeat={"acc": [1.0]}) for i in range(100)]
    rows[7]["scores_per_repeat"]["acc"] *= 10**6
    found = read_samples(write(tmp_path / "s.jsonl", rows), Wanted("t"))
    with pytest.raises(InputError, match="1000099 answers to 100 questions"):
        found.columns["acc", "none"].matrix(100)


# which document a line is


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from(("f", "g"))), max_size=60), st.integers(1, 6))
def test_documents_are_numbered_by_hash_and_occurrence(rows, size):
    index, at_once, known, counts = Index(), Index(), {}, {}
    keys, found = [], []
    for letter, scorer in rows:
        key = letter * 64
        n = counts[key, scorer] = counts.get((key, scorer), 0) + 1
        new = (key, n) not in known
        number = known.setdefault((key, n), len(known))
        keys += [key] if new else []
        assert index.find(key, scorer) == (number, new)
        found.append((number, new))
    parts = [rows[i : i + size] for i in range(0, len(rows), size)]
    told = [at_once.find_all([key * 64 for key, _ in part], [scorer for _, scorer in part]) for part in parts]
    assert list(chain.from_iterable(told)) == found
    assert at_once.unique_keys() == occurrences(keys)
    assert len(index.keys) == len(keys)
    assert index.distinct() == len(set(keys))
    assert index.unique_keys() == occurrences(keys)


def test_many_documents_are_found_again():
    index = Index()
    keys = [f"{i:064x}" for i in range(5000)]
    assert [index.find(key, "f") for key in keys] == [(i, True) for i in range(5000)]
    assert [index.find(key, "g") for key in keys] == [(i, False) for i in range(5000)]
    assert index.find(keys[17], "g") == (5000, True)
    assert index.unique_keys()[5000] == f"{keys[17]}#2"


# scores

VALUE = st.sampled_from([0.0, 1.0, 0.5, math.nan, math.inf, 1, True, None, "x", "1.5", [1]])
SCORES = st.none() | st.lists(VALUE, max_size=3)


@given(st.lists(st.tuples(VALUE, SCORES), min_size=1, max_size=12), st.booleans())
def test_a_column_holds_each_row_as_it_came(rows, keep):
    column, at_once = (Scored(raw=[] if keep else None) for _ in range(2))
    for i, (own, repeats) in enumerate(rows):
        column.add(i, own, repeats)
    for i in range(0, len(rows), 3):
        own, repeats = zip(*rows[i : i + 3], strict=True)
        at_once.extend(range(i, i + len(own)), own, repeats)
    assert repr(at_once) == repr(column)
    expected = [gather_module.scalar(own)[1] for own, _ in rows]
    np.testing.assert_array_equal(column.own, expected)
    assert column.raw is None or repr([own for own, _ in column.raw]) == repr([own for own, _ in rows])
    matrix, asked = column.matrix(len(rows))
    for row, wanted, (own, repeats) in zip(matrix, asked, rows, strict=True):
        np.testing.assert_array_equal(row[wanted], [gather_module.scalar(item)[1] for item in repeats or (own,)])
        assert np.isnan(row[~wanted]).all()


def test_two_keys_of_one_hash_are_two_documents(monkeypatch):
    monkeypatch.setattr(scan, "hash", lambda key: 7, raising=False)
    index = Index()
    keys = [f"{i:064x}" for i in range(4)]
    assert [index.find(key, "f") for key in (*keys, *keys)] == [(i, True) for i in range(8)]
    assert [index.find(key, "g") for key in (*keys, *keys)] == [(i, False) for i in range(8)]
    assert index.unique_keys() == occurrences((*keys, *keys))


# what is refused


@pytest.mark.parametrize(
    "damage",
    [b"\x00" * 4096, b"[" * 10**6, b'{"doc":' * 10**6, b'{"doc_id": ' + b"9" * 10**5 + b"}", b'{"doc": "\xff\xfe"}'],
)
def test_damaged_lines_name_their_number(tmp_path, damage):
    path = write(tmp_path / "s.jsonl", [line()])
    with path.open("ab") as file:
        file.write(damage + b"\n")
    with pytest.raises(InputError, match=r"s\.jsonl, line 2: not JSON") as caught:
        read_samples(path, Wanted("t"))
    assert len(str(caught.value)) < 500


def test_a_line_without_end_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "s.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 31)  # takes no room on the disk
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"line 1: longer than 134217728 bytes"):
            read_samples(path, Wanted("t"))
        assert tracemalloc.get_traced_memory()[1] < 3 * scan.LONGEST
    finally:
        tracemalloc.stop()


def test_blank_lines_are_no_samples(tmp_path, monkeypatch):
    path = tmp_path / "s.jsonl"
    path.write_text(f"\n \n{json.dumps(line(0))}\n\n\n{json.dumps(line(1))}\n\n")
    for size in (1, 1 << 18):
        monkeypatch.setattr(scan, "_BLOCK", size)
        assert list(read_samples(path, Wanted("t")).doc_ids) == [0, 1]
        assert [number for number, *_ in scan.Scan(path, Wanted("t"))] == [3, 6]


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "_BLOCK", 1)
    path = write(tmp_path / "s.jsonl", [line(i) for i in range(3)])
    reading = scan.blocks(path)
    next(reading)
    with path.open("a") as file:
        file.write(json.dumps(line(3)) + "\n")
    with pytest.raises(InputError, match="changed while it was read"):
        list(reading)
    assert len(list(scan.blocks(path))) == 4


def test_a_file_that_is_replaced_while_it_is_read_is_the_old_one(tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "_BLOCK", 1)
    path = write(tmp_path / "s.jsonl", [line(i) for i in range(3)])
    reading = scan.blocks(path)
    next(reading)
    write(tmp_path / "new", [line(9)]).replace(path)
    assert [row["doc_id"] for block in reading for _, _, row, _ in block] == [1, 2]


# what it costs


def test_a_question_takes_less_than_300_bytes_however_long_its_row(tmp_path):
    text = "A question of the usual length, which fills the eighty characters that are shown of it, {}?"

    def peak(n, more):
        rows = (
            line(
                i, doc={"question": text.format(i)}, doc_hash=content_hash(str(i)).ljust(64, "0"), resps=[["x" * more]]
            )
            for i in range(n)
        )
        path = write(tmp_path / "s.jsonl", rows)
        tracemalloc.start()
        try:
            found = read_samples(path, Wanted("t"))
            values, _ = found.columns["acc", "none"].matrix(n)
            assert len(values) == len(found.keys) == n
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10, 0)
    few, many, long = peak(1500, 0), peak(6000, 0), peak(1500, 3000)
    assert (many - few) / 4500 < 300
    assert long - few < 100_000

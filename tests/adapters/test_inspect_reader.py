"""The reader of Inspect's files against Inspect's own, and what it makes of files that Inspect refuses."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise_adapters.inspect_logs import logfile
from harness_noise_adapters.inspect_logs.finding import is_log
from support.notes import noted

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai.log import (
    ProvenanceData,
    invalidate_samples,
    read_eval_log,
    read_eval_log_sample_summaries,
    write_eval_log,
)

from harness_noise_adapters.inspect_logs.records import Faults, SampleAnswers, header_of, is_cut_value


def ours(path: Path) -> logfile.LogFile:
    return logfile.read(path, lambda header: ("cluster",))


def native(path: Path) -> logfile.LogFile:
    """A log as Inspect's own functions read it: its summaries, or its samples where these have lost something."""
    header, faults, answers = read_eval_log(str(path), header_only=True), Faults(), SampleAnswers()
    made = header_of(header.model_dump(mode="json", exclude={"samples", "reductions"}), faults)
    answers.extend(row.model_dump(mode="json") for row in read_eval_log_sample_summaries(str(path)))
    questions = answers.questions.values()
    chosen = any(name.endswith("multiple_choice") for name in made.solvers)
    lost = any(item.cut or is_cut_value(item.metadata.get("cluster")) for item in questions)
    if made.invalidated or lost or (chosen and not any(item.has_choices for item in questions)):
        answers = SampleAnswers()
        answers.extend(row.model_dump(mode="json") for row in read_eval_log(str(path)).samples)
    answers.named(made.scores)
    return logfile.LogFile((path,), made, answers, faults)


def contents(found: logfile.LogFile) -> tuple[object, ...]:
    """Header, scores by id and epoch, questions by id: all that the two readers may differ in."""
    rows = found.answers
    scores = {
        answer: {scorer: repr(value) for scorer, value in row.scores.items()} | {"": row.invalid}
        for answer, row in rows.rows.items()
    }
    questions = {
        key: (item.epoch, item.input, item.target, item.text, item.has_choices, item.cut)
        for key, item in rows.questions.items()
    }
    return repr(found.header), scores, questions, {key: dict(item.metadata) for key, item in rows.questions.items()}


def assert_agrees(path: Path) -> logfile.LogFile:
    found = ours(path)
    for one, other in zip(contents(found), contents(native(path)), strict=True):
        assert one == other
    return found


def document(path: Path) -> dict:
    return json.loads(read_eval_log(str(path)).model_dump_json(exclude_none=True))


def written(path: Path, log: dict, **options) -> Path:
    path.write_text(json.dumps(log, **options))
    return path


# agreement


def test_agreement_on_real_logs_of_every_version(shared_data):
    paths = [path for path in sorted((shared_data / "inspect").rglob("*")) if path.is_file()]
    assert len(paths) >= 7
    for path in paths:
        if "15-17-00" in path.name:
            continue  # has no scores, which both say
        assert not assert_agrees(path).faults.messages()


@pytest.mark.parametrize("name", ["a", "b", "automatic", "shuffled"])
@pytest.mark.parametrize("suffix", [".eval", ".json"])
def test_agreement_on_logs_of_the_installed_inspect(inspect_logs, tmp_path, name, suffix):
    path = tmp_path / f"log{suffix}"
    write_eval_log(read_eval_log(str(getattr(inspect_logs, name))), str(path))
    found = assert_agrees(path)
    assert len(found.answers) == 36


@pytest.fixture
def rich(canned, tmp_path):
    """Questions of several messages, with a picture, choices, long text and metadata, other scripts."""
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText

    image = ContentImage(image="data:image/png;base64,iVBORw0KGgo=")
    chat = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content=[ContentText(text="What is this?"), image])]
    samples = [
        canned.Sample(id=1, input=chat, target=["yes", "ja"], metadata={"name": "q1", "list": [1, {"a": None}]}),
        canned.Sample(
            id="zwei/2", input="Größe? 日本語 🎉\n\n  x", target="yes", metadata={"name": "q2", "long": "é" * 9000}
        ),
        canned.Sample(id="three", input="word " * 3000, target="yes", choices=["yes", "no"], metadata={"name": "q3"}),
    ]  # fmt: skip
    return Path(canned.eval(canned.task(samples), tmp_path, epochs=2)[0].location)


def test_agreement_on_long_and_mixed_questions(rich):
    found = assert_agrees(rich)
    assert len(found.answers.questions) == 3
    assert not any(item.cut for item in found.answers.questions.values())


def test_agreement_on_invalidated_samples(inspect_logs, tmp_path):
    log = read_eval_log(str(inspect_logs.a))
    chosen = [sample.uuid for sample in log.samples[:5]]
    path = tmp_path / "log.eval"
    write_eval_log(invalidate_samples(log, chosen, ProvenanceData(author="me", reason="leaked")), str(path))
    assert sum(row.invalid for row in assert_agrees(path).answers.rows.values()) == 5


def test_a_value_that_a_summary_has_cut_is_read_from_the_sample(rich):
    long = logfile.read(rich, lambda header: ("long",)).answers.questions["zwei/2"].metadata["long"]
    assert long == "é" * 9000


# layouts


def repacked(source: Path, target: Path, method: int) -> Path:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", method) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return target


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93])
def test_every_packing(inspect_logs, tmp_path, method):
    path = repacked(inspect_logs.a, tmp_path / "log.eval", method)
    with logfile.Archive(path) as archive:
        assert {item.compress_type for item in archive.members.values()} == {method}
    assert contents(ours(path)) == contents(ours(inspect_logs.a))


def test_zstandard_that_is_not_there_is_named(inspect_logs, tmp_path, monkeypatch):
    path = repacked(inspect_logs.a, tmp_path / "log.eval", 93)
    for module in ("zstandard", "compression", "compression.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(hn.InputError, match=r"pip install 'harness-noise\[zstd\]'"):
        hn.read(path)


def orders(log: dict) -> dict[str, dict]:
    names = ["samples", "results", "stats", "plan"]
    return {
        "sorted": dict(sorted(log.items())),
        "backwards": dict(reversed(log.items())),
        "samples first": {name: log[name] for name in names} | log,
    }


@pytest.mark.parametrize("order", ["sorted", "backwards", "samples first"])
@pytest.mark.parametrize("indent", [None, 3])
def test_names_in_any_order(inspect_logs, tmp_path, order, indent):
    path = written(tmp_path / "log.json", orders(document(inspect_logs.a))[order], indent=indent)
    assert is_log(path)
    assert hn.analyze(path).to_dict()["estimates"][0]["se"] == hn.analyze(inspect_logs.a).estimates[0].se


def test_eval_behind_many_samples_is_found(inspect_logs, tmp_path):
    log = document(inspect_logs.a)
    log["samples"][0]["store"] = {"much": "x" * (1 << 23)}
    assert is_log(written(tmp_path / "log.json", orders(log)["samples first"]))


@pytest.mark.parametrize(
    "other",
    [
        {"results": {"hellaswag": {"acc,none": 0.5}}, "groups": {}},
        {"version": 2, "status": "ok"},
        {"samples": [{"eval": {"a": 1}}], "name": "x"},
        {"status": "success", "eval": "text", "x": {"eval": {}}},
        [{"version": 2, "status": "success", "eval": {}}],
    ],
)
def test_other_json_is_no_log(tmp_path, other):
    assert not is_log(written(tmp_path / "other.json", other))


def test_the_first_version_of_the_schema(inspect_logs, tmp_path):
    log = document(inspect_logs.a)
    (row,) = log["results"].pop("scores")
    log["results"] |= {"scorer": {"name": row["name"], "params": {}}, "metrics": row["metrics"]}
    for sample in log["samples"]:
        sample["score"] = sample.pop("scores")["match"]
    path = written(tmp_path / "log.json", log | {"version": 1})
    assert contents(ours(path))[1] == contents(ours(inspect_logs.a))[1]
    found, want = hn.analyze(path).estimates[0], hn.analyze(inspect_logs.a).estimates[0]
    assert (found.scorer, found.metric, found.se) == ("match", "accuracy", want.se)


# what Inspect refuses


def loose(log: dict) -> None:
    """Logs by programs in other languages: empty lists for empty objects, a list around single values."""
    log["eval"]["config"], log["eval"]["task_args"] = [], []
    log["eval"]["model"] = [log["eval"]["model"]]
    log["results"]["scores"][0]["params"] = []
    for sample in log["samples"]:
        sample["id"], sample["epoch"] = [sample["id"]], str(sample["epoch"])
        sample["metadata"], sample["output"] = [], "text"
        sample["events"] = [{"event": "unknown"}]


def test_a_log_that_fails_the_schema_is_read_and_noted(inspect_logs, tmp_path):
    log = document(inspect_logs.a)
    loose(log)
    path = written(tmp_path / "log.json", log)
    with pytest.raises(Exception, match="validation error"):
        read_eval_log(str(path))
    (run,) = hn.read(path)
    assert hn.analyze(run).estimates[0].se == hn.analyze(inspect_logs.a).estimates[0].se
    (note,) = [note for note in noted(run) if "not quite as Inspect writes it" in note]
    assert "metadata of a sample is a list, not an object (12 times)" in note
    assert "the epoch of a sample is a text (36 times)" in note


def test_such_a_log_is_not_written_again(inspect_logs, tmp_path, capsys):
    log = document(inspect_logs.a)
    loose(log)
    path = written(tmp_path / "log.json", log)
    assert main(["export", str(path), "-o", str(tmp_path / "out")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "can be analysed, but not written again, because Inspect itself does not read it" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("id", None, "the id of sample 1 is missing"),
        ("id", {"a": 1}, "the id of sample 1 is an object"),
        ("epoch", None, "the epoch of sample q0 is missing"),
        ("epoch", 1.5, "the epoch of sample q0 is a number"),
        ("epoch", "first", "the epoch of sample q0 is a text"),
    ],
)
def test_samples_that_cannot_be_told_apart_are_refused(inspect_logs, tmp_path, field, value, reason):
    log = document(inspect_logs.a)
    log["samples"].sort(key=lambda sample: (int(sample["id"][1:]), sample["epoch"]))
    log["samples"][0][field] = value
    with pytest.raises(hn.InputError, match=f"schema: {reason}"):
        hn.read(written(tmp_path / "log.json", log))


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"


def test_every_cause_is_said_and_refuses_no_folder(inspect_logs, tmp_path):
    whole = inspect_logs.a.read_bytes()
    text = json.dumps(document(inspect_logs.b))
    bad = {
        "2025-01-01T00-00-00+00-00_coins_a.json": (POINTER.encode(), "Git LFS pointer"),
        "pointer.eval": (POINTER.encode(), "Git LFS pointer"),
        "cut.eval": (whole[: len(whole) // 2], "the file was cut short"),
        "cut.json": (text[: len(text) // 2].encode(), "the file was cut short"),
        "schema.json": (json.dumps({"version": 2, "status": "success", "eval": {"task": 1}}).encode(), "eval.task is"),
        "empty.eval": (b"", "the file is empty"),
    }
    for name, (data, reason) in bad.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(hn.InputError, match=reason):
            hn.read(tmp_path / name)
    (tmp_path / "good.eval").write_bytes(whole)
    (run,) = hn.read(tmp_path)
    assert run.scores
    assert len([note for note in noted(run) if note.startswith("left out: ")]) == len(bad)


def test_a_pointer_is_named_whatever_it_stands_for(tmp_path):
    for name in ("scores.csv", "results_2025-01-01T00-00-00.000000.json", "notes.txt"):
        (tmp_path / name).write_text(POINTER)
        with pytest.raises(hn.InputError, match="git lfs pull"):
            hn.read(tmp_path / name)


def test_bytes_that_have_changed_are_refused(inspect_logs, tmp_path):
    path = repacked(inspect_logs.a, tmp_path / "log.eval", zipfile.ZIP_STORED)
    data = path.read_bytes()
    place = data.rindex(b'"value": "C"' if b'"value": "C"' in data else b'"value":"C"')
    path.write_bytes(data[:place] + data[place : place + 12].replace(b"C", b"I") + data[place + 12 :])
    with pytest.raises(hn.InputError, match=r"not what its checksum says"):
        hn.read(path)


# without Inspect

WITHOUT = """
import sys
for name in ("inspect_ai", "pydantic", "pydantic_core"):
    sys.modules[name] = None
from harness_noise.cli import main
code = main(sys.argv[1:])
assert "upath" not in sys.modules
sys.exit(code)
"""


@pytest.mark.parametrize("suffix", [".eval", ".json"])
def test_logs_are_analysed_without_inspect(inspect_logs, tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    write_eval_log(read_eval_log(str(inspect_logs.a)), str(path))
    command = [sys.executable, "-c", WITHOUT]
    done = subprocess.run([*command, "analyze", path, "--format", "json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["estimates"]
    assert row["se"] == pytest.approx(hn.analyze(inspect_logs.a).estimates[0].se, rel=1e-12)
    done = subprocess.run([*command, "export", path, "-o", tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "to write an Inspect log again needs inspect-ai" in " ".join(done.stderr.split())
    assert "pip install 'harness-noise[inspect]'" in " ".join(done.stderr.split())


def test_memory_is_of_the_questions_and_not_of_the_file(inspect_logs, tmp_path):
    """A JSON log whose samples carry 60 MB of events is read in a fraction of that."""
    log = document(inspect_logs.a)
    for sample in log["samples"]:
        sample["store"] = {"much": "x" * 1_700_000}
    path = written(tmp_path / "log.json", log)
    assert path.stat().st_size > 60e6
    import tracemalloc

    tracemalloc.start()
    found = ours(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.answers) == 36
    assert peak < 25e6
    assert np.isfinite(hn.analyze(path).estimates[0].mean)


def test_why_an_answer_has_no_score(inspect_logs, tmp_path):
    """An error, a limit, and nothing: left out by default as in Inspect, and each cause may count as wrong."""
    log = document(inspect_logs.a)
    error = {"message": "no room", "traceback": "", "traceback_ansi": ""}
    lost = [{"error": error}, {"limit": {"type": "time", "limit": 9}}, {}]
    for sample, more in zip(log["samples"], lost, strict=False):
        sample |= more | {"scores": {}}
    for row in log["results"]["scores"]:
        row["metrics"] = {}
    plain = written(tmp_path / "log.json", log)
    packed = tmp_path / "log.eval"
    write_eval_log(read_eval_log(str(plain)), str(packed))
    for path in (plain, packed):
        (part,) = hn.read(path)[0].scores
        assert (part.n_missing, part.missing, part.n_zero) == (3, {"infrastructure": 1, "limit": 1}, 0)
        (some,), (every,) = (hn.read(path, missing=how)[0].scores for how in ("limit=zero", "zero"))
        assert (some.n_missing, some.n_zero, np.isnan(some.values).sum()) == (3, 1, 2)
        assert (every.n_missing, every.n_zero, np.isnan(every.values).sum()) == (3, 3, 0)
        assert hn.analyze(path).estimates[0].missing == {"infrastructure": 1, "limit": 1}


@pytest.mark.parametrize("output", [{"choices": True}, {"choices": [None, {"message": 3}]}, [], "words"])
def test_an_output_of_another_form_costs_no_sample(inspect_logs, tmp_path, output):
    log = document(inspect_logs.a)
    for sample in log["samples"]:
        sample["output"] = output
    assert hn.read(written(tmp_path / "log.json", log))[0].scores[0].n_missing == 0

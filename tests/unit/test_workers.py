"""What travels between processes, and the map in one of them."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from harness_noise import InputError
from harness_noise.data.questions import Questions
from harness_noise.data.scores import ReadOptions, Run, Scores
from harness_noise.extra.arena import workers
from harness_noise.io import registry as adapters
from harness_noise.io.protocol import PartRead
from harness_noise.io.registry import ReadUnit


def made(name: str, clusters: bool = True) -> Run:
    """Every string is a new object, as if it came from another process."""
    questions = Questions(tuple(f"q{i}" for i in range(9)), "id", inputs=tuple(f"h{i}" for i in range(9)))
    labels = tuple(f"c{i // 3}" for i in range(9)) if clusters else None
    one = Scores("t", "acc", "none", questions, np.asfortranarray(np.eye(9)[:, :2]), clusters=labels)
    return Run(name, name, "made", scores=(one, Scores("t", "em", "none", questions, np.ones((9, 2)))))


def test_equal_questions_of_many_runs_are_one_object() -> None:
    interner = workers.Interner()
    a, b = (interner.shared(pickle.loads(pickle.dumps(workers.travelling(made(name))))) for name in "ab")  # noqa: S301
    assert a.scores[0].questions is a.scores[1].questions
    for name in ("keys", "inputs"):
        assert getattr(a.scores[0].questions, name) is getattr(b.scores[0].questions, name)
    assert a.scores[0].clusters is b.scores[0].clusters
    assert np.array_equal(a.scores[0].values, np.eye(9)[:, :2])
    other = made("c")
    changed = Questions(other.scores[0].questions.keys, "id", inputs=("x", *(f"h{i}" for i in range(1, 9))))
    c = interner.shared(Run("c", "c", "made", scores=(Scores("t", "acc", "none", changed, np.ones((9, 1))),)))
    assert c.scores[0].questions.keys is a.scores[0].questions.keys
    assert c.scores[0].questions.inputs == changed.inputs != a.scores[0].questions.inputs


def test_texts_that_are_not_read_yet_stay_so() -> None:
    class Unread:
        def read(self) -> None:
            raise AssertionError("read")

    questions = Questions(("q0", "q1"), "doc_hash", documents=Unread())  # type: ignore[arg-type]
    run = Run("m", "m", "made", scores=(Scores("t", "acc", "none", questions, np.ones((2, 1))),))
    assert workers.Interner().shared(run).scores[0].questions.documents is questions.documents


def test_the_answers_are_in_the_order_of_the_units_and_errors_are_answers(tmp_path: Path) -> None:
    units = []
    for name, text in (("a", "question,score\nq,1\n"), ("b", "nothing\n"), ("c", "question,score\nq,0\n")):
        (tmp_path / f"{name}.csv").write_text(text)
        units.append(ReadUnit("table", tmp_path / f"{name}.csv"))
    seen: list[int] = []
    a, b, c = workers.read_units(units, ReadOptions(), watch=lambda found, total: (seen.append(total), found)[1])
    assert seen == [3]
    assert isinstance(a, PartRead)
    assert isinstance(c, PartRead)
    assert (a.runs[0].model, c.runs[0].model) == ("a", "c")
    assert isinstance(b, InputError)
    assert b.__traceback__ is None  # its frames would keep what was read


def test_an_adapter_that_only_reads_is_one_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain:
        name = "plain"

        def sniff(self, path: Path) -> bool:
            return path.suffix == ".plain"

        def read(self, path: Path, options: ReadOptions) -> list[Run]:
            if path.stem == "bad":
                raise InputError(f"{path}: bad")
            if path.stem == "shut":
                raise PermissionError(13, "Permission denied", f"{path}/inside")
            return [made(f"{path.stem}1"), made(f"{path.stem}2")]

    load = adapters.load
    monkeypatch.setattr(adapters, "names", lambda: ["plain"])
    monkeypatch.setattr(adapters, "load", lambda name: Plain() if name == "plain" else load(name))
    paths = [tmp_path / f"{name}.plain" for name in ("x", "bad", "y", "shut")]
    for path in paths:
        path.touch()
    assert [run.model for run in adapters.read(paths[0])] == ["x1", "x2"]
    runs, errors = adapters.read_what_can_be(paths)
    assert [run.model for run in runs] == ["x1", "x2", "y1", "y2"]
    shut = f"{paths[3]}/inside: cannot be read (Permission denied)"
    assert [str(error) for error in errors] == [f"{paths[1]}: bad", shut]
    with pytest.raises(InputError, match="bad"):
        adapters.read(paths[1])


def test_closed_folders_are_named_but_those_that_an_adapter_owns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("job/shut", "runs/shut", "open"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).name != "shut")

    def named(place: Path, *owned: Path) -> list[str]:
        return [str(error) for error in adapters.closed_folders(place, set(map(str, owned)))]

    said = f"{tmp_path}/{{}}/shut: cannot be opened (Permission denied)"
    assert sorted(named(tmp_path)) == [said.format("job"), said.format("runs")]
    assert named(tmp_path, tmp_path / "job") == [said.format("runs")]
    assert named(tmp_path / "job", tmp_path / "job") == []
    assert named(tmp_path / "job" / "shut") == [said.format("job")]


def test_a_folder_of_links_stands_for_what_they_lead_to(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "samples_t_2025-01-01T00-00-00.jsonl").write_text(
        '{"doc_id": 0, "doc": {"question": "?"}, "target": "1", "resps": [["a"]], "filtered_resps": ["a"], '
        '"filter": "none", "metrics": ["acc"], "doc_hash": "00", "prompt_hash": "00", "target_hash": "0", "acc": 1.0}\n'
    )
    here = tmp_path / "here"
    here.mkdir()
    (here / "link").symlink_to(there)
    (here / "table.csv").write_text("question,score\nq,1\n")
    (here / "notes.txt").write_text("a note")
    follow = ReadOptions(follow_links=True)
    runs, errors = adapters.read_what_can_be([here], follow)
    assert ([run.harness for run in runs], errors) == (["table", "lm-eval"], [])
    assert [run.harness for run in adapters.read(here, follow)] == ["table", "lm-eval"]
    runs, errors = adapters.read_what_can_be([here])
    assert [run.harness for run in runs] == ["table"]
    assert [str(error).partition(": ")[0] for error in errors] == [
        f"left out, because they are links that lead out of {here}"
    ]

"""The files that only we write: kept runs, looks, thresholds; each made once, and read as the commands read them."""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import harness_noise as hn
from harness_noise.errors import InputError
from harness_noise.extra.gate.thresholds import read_recovery, read_thresholds

from . import mutate

THRESHOLDS = """\
rtol: 0.05
limit: 40
recovery_threshold: 0.95
tasks:
- name: table
  metrics:
  - {name: "score,none", value: 0.4}
- {name: other, rtol: 0.1, metrics: [{name: score, value: 1}]}
"""


def _rows(path: Path, seed: int, n: int) -> Path:
    draw = random.Random(seed)
    asked = sorted(random.Random(3).sample(range(40), n))  # a run that grows asks in a random order
    path.write_text("question,score\n" + "".join(f"q{i},{draw.randint(0, 1)}\n" for i in asked))
    return path


def _asked(path: Path, n: int) -> Path:
    """The first n of 40 questions in one order for all models."""
    draw = random.Random(path.stem)
    path.write_text("question,order,score\n" + "".join(f"q{i},{i + 1},{draw.randint(0, 1)}\n" for i in range(n)))
    return path


@cache
def _made() -> dict[str, Any]:
    """The content of each kind of file, and of the tables that it is about."""
    with tempfile.TemporaryDirectory() as folder:
        a, b = _rows(Path(folder, "a.csv"), 1, 30), _rows(Path(folder, "b.csv"), 2, 40)
        hn.gate(b, floor=0.1, store=Path(folder, "kept"))
        hn.compare(a, b, looks=5)
        (kept,) = Path(folder, "kept").iterdir()
        looks = Path(f"{a}.looks.json").read_bytes()
        return {
            "a.csv": a.read_bytes(),
            "b.csv": b.read_bytes(),
            "kept": gzip.decompress(kept.read_bytes()),
            "looks": looks,
            "arena-looks": _arena_looks(Path(folder, "arena")),
            "longer": {name: _asked(Path(folder, name), 36).read_bytes() for name in ("a.csv", "b.csv")},
        }


def _arena_looks(folder: Path) -> bytes:
    folder.mkdir()
    a, b = (_asked(folder / name, 24) for name in ("a.csv", "b.csv"))
    hn.drop_models([a, b], looks=5, n=40)
    return Path(f"{a}.arena.looks.json").read_bytes()


def kept(_folder: Path) -> list[tuple[str, dict[str, bytes]]]:
    made = _made()
    return [("kept/run-1-a.json.gz", {"a.csv": made["b.csv"], "kept/run-1-a.json.gz": gzip.compress(made["kept"])})]


def looks(_folder: Path) -> list[tuple[str, dict[str, bytes]]]:
    made = _made()
    return [("a.csv.looks.json", {"a.csv": made["a.csv"], "b.csv": made["b.csv"], "a.csv.looks.json": made["looks"]})]


def arena_looks(_folder: Path) -> list[tuple[str, dict[str, bytes]]]:
    name = "a.csv.arena.looks.json"
    return [(name, {**_made()["longer"], name: _made()["arena-looks"]})]


def thresholds(_folder: Path) -> list[tuple[str, dict[str, bytes]]]:
    return [("bar.yaml", {"a.csv": _made()["b.csv"], "bar.yaml": THRESHOLDS.encode()})]


def packed(draw: st.DrawFn, _name: str, data: bytes) -> bytes:
    """What a kept run holds with nodes changed, or its bytes."""
    if draw(st.integers(0, 5)) == 0:
        return mutate.edited(data, draw(mutate.edits))
    return gzip.compress(mutate.text(mutate.changed(json.loads(gzip.decompress(data)), draw(mutate.changes))))


def yaml(draw: st.DrawFn, _name: str, data: bytes) -> bytes:
    """The values of a threshold file changed (JSON is YAML), or its bytes."""
    import yaml as library

    if draw(st.booleans()):
        return mutate.edited(data, draw(mutate.edits))
    return mutate.text(mutate.changed(library.safe_load(data), draw(mutate.changes)))


def _used(work: Callable[[], object]) -> bool:
    try:
        work()
    except InputError:
        return False
    return True


def check_kept(path: Path) -> bool:
    return _used(lambda: hn.gate(path.parents[1] / "a.csv", path.parent, margin=0.1, self_test=True).to_markdown())


def check_looks(path: Path) -> bool:
    a, b = path.parent / "a.csv", path.parent / "b.csv"
    return _used(lambda: hn.compare(a, b, looks=5).to_json())


def check_arena_looks(path: Path) -> bool:
    return _used(lambda: hn.drop_models([path.parent / name for name in ("a.csv", "b.csv")], looks=5, n=40).to_json())


def check_thresholds(path: Path) -> bool:
    def work() -> None:
        read_thresholds(path)
        read_recovery(path)
        hn.gate(path.parent / "a.csv", thresholds=path).to_json()

    return _used(work)

"""Files that are made to do harm: refused in one paragraph, or read right, within bounded memory."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness_noise as hn
from harness_noise.errors import InputError

MEMORY = 1 << 30
"""Bytes of private memory that reading any of the hostile files may take, the libraries included."""
DATE = "2026-01-02T03-04-05.678901"
DEEP = 10**6
GIGABYTE = 1 << 30
LOG_START = b'{"version": 2, "status": "success", "eval": '
ROW = b'{"doc_id": 0, "doc": {"q": "a"}, "doc_hash": "x", "filter": "none", "metrics": ["acc"], "acc": 1.0, "more": '

# archives


def pack(members: dict[str, bytes], level: int = 6) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return out.getvalue()


def members_of(path: Path) -> dict[str, bytes]:
    import inspect_ai.log  # noqa: F401 - teaches zipfile Zstandard, which Inspect packs with

    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


@pytest.fixture(scope="module")
def log(real_files: Path) -> Path:
    return real_files / "inspect" / "plain.eval"


def _declared(data: bytes, name: bytes, size: int, crc: int) -> bytes:
    """An archive whose list of members says another size and checksum of one of them."""
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(name))
    return (
        data[: at + 16] + struct.pack("<I", crc) + data[at + 20 : at + 24] + struct.pack("<I", size) + data[at + 28 :]
    )


def _bomb(log: Path) -> bytes:
    return pack(members_of(log) | {"summaries.json": b"[" + b"[]," * 20_000_000 + b"[]]"})


def _lying_bomb(log: Path) -> bytes:
    return _declared(_bomb(log), b"summaries.json", 2, zlib.crc32(b"[["))


def _samples_bomb(log: Path) -> bytes:
    members = members_of(log)
    header = json.loads(members["header.json"]) | {"invalidated": True}  # then the samples are read in full
    name = next(name for name in members if name.startswith("samples/"))
    filled = members[name].rstrip()[:-1] + b', "store": {"x": [' + b"0," * 40_000_000 + b"0]}}"
    return pack(members | {"header.json": json.dumps(header).encode(), name: filled})


def _many_summaries(log: Path) -> bytes:
    members = members_of(log)
    del members["summaries.json"]
    return pack(members | {"_journal/summaries/999999999.json": b"[]"})


def _no_summaries_by_null(log: Path) -> bytes:
    """For the standard library the name ends at the null byte, for Inspect it does not."""
    members = {name.replace("summaries.json", "summaries.jsonX"): data for name, data in members_of(log).items()}
    return pack(members | {"_journal/summaries/999999999.json": b"[]"}).replace(b"summaries.jsonX", b"summaries.json\0")


def _encrypted(log: Path) -> bytes:
    data = bytearray(log.read_bytes())
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(b"header.json"))
    data[at + 8] |= 1
    data[struct.unpack("<I", data[at + 42 : at + 46])[0] + 6] |= 1
    return bytes(data)


def _checksum(log: Path) -> bytes:
    """A score that was changed in place: valid JSON, another checksum."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as file:
        for name, content in members_of(log).items():
            file.writestr(name, content)
    data = out.getvalue()
    at = data.index(b'"value"', data.index(b"summaries.json", data.index(b"PK\x03\x04")))
    digit = next(i for i in range(at, at + 40) if data[i : i + 1] in (b"C", b"I", b"0", b"1"))
    return data[:digit] + {b"C": b"I", b"I": b"C", b"0": b"1", b"1": b"0"}[data[digit : digit + 1]] + data[digit + 1 :]


def _two_lists(log: Path) -> bytes:
    """Another archive before this one, and the last record points at the other's list."""
    other, data = pack({"header.json": b"{}"}), log.read_bytes()
    return other + data


def _comment(log: Path) -> bytes:
    data = log.read_bytes()
    return data[:-2] + struct.pack("<H", 4) + b"PK\x05\x06"


def _deep_header(log: Path) -> bytes:
    return pack(members_of(log) | {"header.json": b"[" * DEEP + b"]" * DEEP})


def _deep_metadata(log: Path) -> bytes:
    members = members_of(log)
    rows = json.loads(members["summaries.json"])
    text = json.dumps(rows).replace('"passage":', '"passage": ' + "[" * 900 + "]" * 900 + ', "p":', 1)
    return pack(members | {"summaries.json": text.encode()})


ARCHIVES: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "bomb": (_bomb, "unpacks to more than"),
    "lying_bomb": (_lying_bomb, "unpacks to more than"),
    "samples_bomb": (_samples_bomb, "unpacks to more than"),
    "many_summaries": (_many_summaries, "numbered as no run"),
    "null_name": (_no_summaries_by_null, "null byte"),
    "encrypted": (_encrypted, "encrypted"),
    "checksum": (_checksum, "checksum"),
    "two_lists": (_two_lists, "ambiguous"),
    "comment": (_comment, "ambiguous|not an Inspect log"),
    "deep_header": (_deep_header, "not an Inspect log"),
    "cut": (lambda log: log.read_bytes()[:-300], "not an Inspect log"),
    "empty": (lambda log: b"", "not an Inspect log"),
}


def _sparse(path: Path, start: bytes, size: int = GIGABYTE) -> None:
    """A file of one endless line that takes no room on the disk."""
    with path.open("wb") as file:
        file.write(start)
        file.truncate(size)


def _results(folder: Path, content: bytes) -> Path:
    path = folder / f"results_{DATE}.json"
    path.write_bytes(content)
    return path


NEST = b"[" * DEEP + b"]" * DEEP
OBJECTS = b'{"a":' * DEEP + b"1" + b"}" * DEEP
PLAIN: dict[str, Callable[[Path], Any]] = {
    "deep.json": lambda path: path.write_bytes(NEST),
    "deep.jsonl": lambda path: path.write_bytes(b'{"question": 1, "score": ' + NEST + b"}\n"),
    "deep_objects.jsonl": lambda path: path.write_bytes(OBJECTS),
    "deep_log.json": lambda path: path.write_bytes(LOG_START + OBJECTS + b"}"),
    "deep_list_log.json": lambda path: path.write_bytes(LOG_START + NEST + b"}"),
    "results_deep.json": lambda path: path.write_bytes(b'{"results": {"a": ' + OBJECTS + b"}}"),
    f"samples_deep_{DATE}.jsonl": lambda path: path.write_bytes(ROW + NEST + b"}\n"),
    f"samples_objects_{DATE}.jsonl": lambda path: path.write_bytes(ROW + OBJECTS + b"}\n"),
    "long.csv": lambda path: _sparse(path, b"question,score\nq,1\nq2,"),
    "long_header.csv": lambda path: _sparse(path, b"question,"),
    "long.jsonl": lambda path: _sparse(path, b'{"question": "a", "score": 1}\n{"question": "'),
    "long.json": lambda path: _sparse(path, b'[{"question": "'),
    "long_log.json": lambda path: _sparse(path, LOG_START + b'{"x": "'),
    f"samples_long_{DATE}.jsonl": lambda path: _sparse(path, ROW + b'0}\n{"doc_id": 1, "doc": "'),
    "count.json": lambda path: path.write_text(
        json.dumps([{"benchmark_id": "b", "model": "m", "example_id": i, "pass1": 1, "count": 10**12} for i in (1, 2)])
    ),
    "counts.json": lambda path: path.write_text(
        json.dumps([{"benchmark_id": "b", "model": "m", "example_id": i, "pass1": 1, "count": 10**6} for i in range(60)]
        )
    ),
    "sparse.csv": lambda path: path.write_text(
        "question,score\n" + "q,1\n" * 30_000 + "".join(f"q{i},1\n" for i in range(30_000))
    ),
    "diagonal.csv": lambda path: path.write_text(
        "question,repeat,score\n" + "".join(f"q{i // 2},{i},1\n" for i in range(200)) + "x,y,z\n"
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory needs Linux")
def test_no_file_takes_more_than_a_gigabyte_or_a_crash(log: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    for name, make in PLAIN.items():
        make(tmp_path / name)
    _parquet_of_a_billion(tmp_path / "billion.parquet")
    for name, (archive, _) in ARCHIVES.items():
        (tmp_path / f"{name}.eval").write_bytes(archive(log))
    paths = sorted(tmp_path.iterdir())
    program = Path(__file__).with_name("read_within.py")
    done = subprocess.run([sys.executable, program, str(MEMORY), *paths], capture_output=True, text=True)
    *rows, peak = map(json.loads, done.stdout.splitlines())
    assert [row[0] for row in rows] == list(map(str, paths)), done.stderr[-2000:]
    wrong = [row for row in rows if row[1] != 2 or row[2].count("\n") != 1]
    assert not wrong
    assert peak < 1.5e9


def _parquet_of_a_billion(path: Path) -> None:
    """Runs of equal values: some kilobytes say a billion rows."""
    import pyarrow
    from pyarrow import parquet

    n = 5_000_000
    batch = pyarrow.table(
        {"question": pyarrow.DictionaryArray.from_arrays(pyarrow.nulls(n, pyarrow.int8()).fill_null(0), ["q"]),
         "score": pyarrow.nulls(n, pyarrow.int8()).fill_null(1)}
    )  # fmt: skip
    with parquet.ParquetWriter(path, batch.schema, compression="zstd") as file:
        for _ in range(10):
            file.write_table(batch, row_group_size=n)


@pytest.mark.parametrize("name", [name for name in ARCHIVES if "bomb" not in name])
def test_a_damaged_or_ambiguous_archive_is_refused_with_its_reason(name: str, log: Path, tmp_path: Path) -> None:
    make, reason = ARCHIVES[name]
    (tmp_path / "x.eval").write_bytes(make(log))
    with pytest.raises(InputError, match=reason):
        hn.read(tmp_path / "x.eval")

"""RUNs by URL: the in-memory and the local file system of fsspec, for every reader; and what goes wrong."""

from __future__ import annotations

import gzip
import json
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.io.paths import is_url, resolve_path

upath = pytest.importorskip("upath", reason="universal-pathlib is not installed")


@pytest.fixture
def memory() -> Iterator[str]:
    """The URL of an empty folder in memory."""
    import fsspec

    name = uuid.uuid4().hex
    yield f"memory://{name}"
    if (files := fsspec.filesystem("memory")).exists(f"/{name}"):
        files.rm(f"/{name}", recursive=True)


def upload(source: Path, url: str) -> str:
    """A copy of a file or folder in memory."""
    import fsspec

    files = fsspec.filesystem("memory")
    for path in [source] if source.is_file() else [item for item in source.rglob("*") if item.is_file()]:
        target = url if path == source else f"{url}/{path.relative_to(source).as_posix()}"
        files.pipe(target, path.read_bytes())
    return url


def numbers(path: object, **options: object) -> list[dict[str, object]]:
    """All estimates, without what depends on where the run lies."""
    rows = hn.analyze(path, **options).to_dict()["estimates"]
    return [{name: value for name, value in row.items() if name not in ("run", "model")} for row in rows]


TABLES: dict[str, str | bytes] = {
    "scores.csv": "question,score,repeat\nq0,1,0\nq0,0,1\nq1,0.5,0\nq1,,1\nq2,1,0\n",
    "scores.tsv": "question\tscore\nq0\t1\nq1\t0\nq2\t1\n",
    "scores.jsonl": '{"question": "q0", "score": 1}\n{"question": "q1", "score": 0}\n{"question": "q2", "score": 1}\n',
    "scores.json": '[{"question": "q0", "score": 1}, {"question": "q1", "score": 0}, {"question": "q2", "score": 1}]',
}
TABLES |= {f"{name}.gz": gzip.compress(str(text).encode()) for name, text in TABLES.items()}


@pytest.mark.parametrize("name", TABLES)
def test_tables_in_memory_are_the_tables_on_disk(name: str, tmp_path: Path, memory: str) -> None:
    path, content = tmp_path / name, TABLES[name]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    url = upload(path, f"{memory}/{name}")
    assert numbers(url) == numbers(path) == numbers(path.as_uri()) == numbers(upath.UPath(url))
    (run,) = hn.read(url)
    assert (run.path, run.model) == (url, "scores")


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files as those of S3, GCS and HTTP are, whose `readline` takes no size."""
    from fsspec.implementations.memory import MemoryFileSystem
    from fsspec.spec import AbstractBufferedFile

    class Remote(AbstractBufferedFile):
        def _fetch_range(self, start: int, end: int) -> bytes:
            content: bytes = self.fs.store[self.path].getvalue()
            return content[start:end]

    def opened(self: MemoryFileSystem, path: str, mode: str = "rb", **options: object) -> object:
        if mode != "rb":
            return whole(self, path, mode, **options)
        return Remote(self, path, size=len(self.store[path].getvalue()))

    whole = MemoryFileSystem._open
    monkeypatch.setattr(MemoryFileSystem, "_open", opened)


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_a_remote_file_system(name: str, memory: str, tmp_path: Path, remote: None) -> None:
    path, content = tmp_path / name, TABLES[name]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert numbers(upload(path, f"{memory}/{name}")) == numbers(path)


def test_lm_eval_on_a_remote_file_system(lm_eval_runs: Path, memory: str, remote: None) -> None:
    assert numbers(upload(lm_eval_runs / "a", memory)) == numbers(lm_eval_runs / "a")


def test_parquet_in_memory(tmp_path: Path, memory: str) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pandas as pd

    path = tmp_path / "scores.parquet"
    pd.DataFrame({"question": ["a", "b", "c"], "score": [1.0, 0.0, 1.0]}).to_parquet(path)
    assert numbers(upload(path, f"{memory}/scores.parquet")) == numbers(path)


def test_lm_eval_in_memory(lm_eval_runs: Path, memory: str) -> None:
    url = upload(lm_eval_runs / "a", memory)
    folder = numbers(lm_eval_runs / "a")
    assert folder
    assert numbers(url) == folder
    one = next((lm_eval_runs / "a").rglob("results_*.json"))
    assert numbers(f"{url}/{one.relative_to(lm_eval_runs / 'a').as_posix()}") == numbers(one)
    samples = next((lm_eval_runs / "a").rglob("samples_*.jsonl"))
    there = f"{url}/{samples.relative_to(lm_eval_runs / 'a').as_posix()}"
    assert numbers(there) == numbers(samples) == numbers(samples.as_uri())


def test_inspect_in_memory(inspect_logs: SimpleNamespace, memory: str, canned: SimpleNamespace) -> None:
    folder = inspect_logs.a.parent
    url = upload(folder, memory)
    found = canned.quietly(numbers, url, cluster="passage")
    assert found == canned.quietly(numbers, folder, cluster="passage")
    assert canned.quietly(numbers, f"{url}/{inspect_logs.a.name}") == canned.quietly(numbers, inspect_logs.a)
    assert canned.quietly(numbers, inspect_logs.a.as_uri()) == canned.quietly(numbers, inspect_logs.a)


def test_inspect_json_logs_in_memory(
    inspect_logs: SimpleNamespace, tmp_path: Path, memory: str, canned: SimpleNamespace
) -> None:
    from inspect_ai.log import read_eval_log, write_eval_log

    path = tmp_path / "log.json"
    canned.quietly(lambda: write_eval_log(read_eval_log(str(inspect_logs.a)), str(path)))
    assert canned.quietly(numbers, upload(path, f"{memory}/log.json")) == canned.quietly(numbers, path)


def test_the_arena_of_a_folder_in_memory(tmp_path: Path, memory: str, capsys: pytest.CaptureFixture[str]) -> None:
    for m in range(3):
        rows = [f"q{i},{int((i * 7 + m) % 10 < 5 + m)}" for i in range(30)]
        (tmp_path / f"m{m}.csv").write_text("question,score\n" + "\n".join(rows) + "\n")
    (tmp_path / "broken.csv").write_text("question,score\nq0,x\n")
    out = {}
    for place in (str(tmp_path), upload(tmp_path, memory), tmp_path.as_uri()):
        assert main(["arena", place, "--format", "json"]) == 0
        found = capsys.readouterr()
        assert "broken.csv, line 2: score 'x'" in found.err
        pairs = json.loads(found.out)["pairs"]
        out[place] = [{name: row[name] for name in ("model_a", "model_b", "diff", "se", "p_value")} for row in pairs]
    assert len(out[memory]) == 3
    assert out[str(tmp_path)] == out[memory] == out[tmp_path.as_uri()]


@pytest.mark.parametrize("name", ["ä ö.csv", "100%25.csv", "a#b?.csv", "50%.csv"])
def test_names_of_files_are_kept(name: str, tmp_path: Path, memory: str) -> None:
    path = tmp_path / name
    path.write_text(TABLES["scores.csv"])
    assert resolve_path(path.as_uri()) == path
    assert hn.read(upload(path, f"{memory}/{name}"))[0].model == path.stem


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("memory://nothing/there.csv", "no such file"),
        ("nobody://x/y", "nobody:// cannot be read here"),
        ("file://elsewhere/x.csv", "names a file of this machine"),
        ("file:///no/such/file.csv", "no such file"),
    ],
)
def test_a_url_that_leads_nowhere_is_one_paragraph(url: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", url]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert words in err


def test_a_missing_library_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    assert main(["analyze", "gs://bucket/run"]) == 2
    assert "gs:// cannot be read here (Please install gcsfs" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "upath", None)
    assert main(["analyze", "memory://x"]) == 2
    assert "pip install 'harness-noise[remote]'" in capsys.readouterr().err


def test_what_a_file_system_raises_is_one_paragraph(
    tmp_path: Path, memory: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The libraries behind URLs raise exceptions of their own: no credentials, no network."""
    from fsspec.implementations.memory import MemoryFileSystem

    class NoCredentialsError(Exception):
        pass

    def refuse(*_: object, **__: object) -> object:
        raise NoCredentialsError("Unable to locate\ncredentials")

    good = tmp_path / "good.csv"
    good.write_text(TABLES["scores.csv"])
    url = upload(good, f"{memory}/scores.csv")
    for method, error in (("_open", "cannot be read"), ("info", "cannot be opened")):
        monkeypatch.setattr(MemoryFileSystem, method, refuse)
        assert main(["analyze", url]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{url}: {error} (Unable to locate credentials)" in line


@pytest.mark.parametrize("option", ["-o", "--html", "--figures", "--tables", "--write-profile"])
def test_results_are_written_to_local_files_only(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "scores.csv"
    path.write_text(TABLES["scores.csv"])
    assert main(["arena", str(path), option, "s3://bucket/out"]) == 2
    assert "results are written to local files" in capsys.readouterr().err
    assert [item.name for item in tmp_path.iterdir()] == ["scores.csv"]


def test_export_is_for_local_runs(tmp_path: Path, memory: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scores.csv").write_text(TABLES["scores.csv"])
    url = upload(tmp_path / "scores.csv", f"{memory}/scores.csv")
    assert main(["export", url, "-o", str(tmp_path / "out")]) == 2
    assert "copy the run first" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_is_a_url() -> None:
    assert all(map(is_url, ("s3://b/x", "gs://b", "memory://", "abfs+x://y")))
    assert not any(map(is_url, ("runs/a", "/runs/a", "C:\\runs\\a", "a:b", "://x", Path("s3:/b"))))


def test_workers_read_by_url(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The local file system by its URL, in processes."""
    urls = []
    for m in range(3):
        rows = [f"q{i},{int((i * 7 + m) % 10 < 5 + m)}" for i in range(30)]
        (tmp_path / f"m{m}.csv").write_text("question,score\n" + "\n".join(rows) + "\n")
        urls.append("local://" + str(tmp_path / f"m{m}.csv"))
    assert main(["arena", *urls, "--format", "json"]) == 0
    alone = capsys.readouterr()
    assert main(["arena", *urls, "--format", "json", "--jobs", "2"]) == 0
    assert capsys.readouterr() == alone
    assert "local://" in json.loads(alone.out)["models"][0]["run"]

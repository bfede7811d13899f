"""Only regular files inside the place that the user named are read, and written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from .limits import limited, log, refused, shown, table

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="links, pipes and limits are those of Linux"),
]

NAMES = ["a.csv", "a.tsv", "a.jsonl", "a.ndjson", "a.json", "a.parquet", "a.eval", "results_a.json", "samples_a.jsonl",
         "report.json", "details_a_2026-01-02T03-04-05.parquet", "a.csv.gz"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_pipe_is_refused_and_never_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    assert "a pipe or a device" in refused("analyze", tmp_path / name)


def test_pipes_beside_runs_and_as_every_other_file(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in NAMES[1:]:
        os.mkfifo(folder / name)
    run = table(folder / "a.csv")
    (row,) = shown("analyze", folder)["estimates"]
    assert row["n_questions"] == 40
    os.mkfifo(tmp_path / "pipe")
    for option in ("--thresholds", "--labels", "--format-file"):
        assert "pipe" in refused("gate", run, "--floor", "0.1", option, tmp_path / "pipe")
    refused("compare", run, run, "--complete", tmp_path / "pipe")
    for device in ("/dev/zero", "/dev/random"):
        refused("gate", run, "--thresholds", device)


def test_links_are_followed_within_the_place_and_left_out_beyond_it(tmp_path: Path) -> None:
    other, folder = tmp_path / "other", tmp_path / "runs"
    other.mkdir()
    folder.mkdir()
    table(other / "secret.csv")
    table(folder / "own.csv")
    (folder / "linked-secret.csv").symlink_to(other / "secret.csv")
    (folder / "all").symlink_to("/")
    (folder / "folder").symlink_to(other)
    found = shown("analyze", folder)
    assert [row["model"] for row in found["estimates"]] == ["own"]
    (note,) = [note for note in map(str, found["notes"]) if "follow_links" in note or "--follow-links" in note]
    assert "linked-secret.csv" in note
    (folder / "all").unlink()
    models = {row["model"] for row in shown("analyze", folder, "--follow-links")["estimates"]}
    assert models == {"own", "linked-secret", "secret"}
    (row,) = shown("analyze", folder / "linked-secret.csv")["estimates"]  # what is named is followed
    assert row["model"] == "linked-secret"
    (tmp_path / "link").symlink_to(folder)
    assert [row["model"] for row in shown("analyze", tmp_path / "link")["estimates"]] == ["own"]


def test_a_file_is_not_read_twice_because_a_link_leads_to_it(tmp_path: Path) -> None:
    table(tmp_path / "a.csv")
    (tmp_path / "latest.csv").symlink_to("a.csv")
    assert [row["model"] for row in shown("analyze", tmp_path)["estimates"]] == ["a"]


def hub(folder: Path) -> Path:
    """A run of lm-eval as a hub of models caches it: every file is a link to one that is named by its content."""
    snapshot, blobs = folder / "datasets--x" / "snapshots" / "abc", folder / "datasets--x" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    row = {"doc_id": 0, "doc": {"q": "a"}, "target": "1", "arguments": [], "resps": [["1"]], "filtered_resps": ["1"],
           "filter": "none", "metrics": ["acc"], "doc_hash": "h", "prompt_hash": "p", "target_hash": "t"}  # fmt: skip
    lines = [
        json.dumps(row | {"doc_id": i, "doc": {"q": f"{i}"}, "doc_hash": f"h{i}", "acc": float(i % 3 > 0)})
        for i in range(30)
    ]
    results = {
        "results": {"t": {"alias": "t", "acc,none": 2 / 3, "acc_stderr,none": 0.08}}, "configs": {"t": {"task": "t"}},
        "higher_is_better": {"t": {"acc": True}}, "n-samples": {"t": {"original": 30, "effective": 30}},
    }  # fmt: skip
    date = "2026-01-02T03-04-05.678901"
    for name, content in (
        (f"samples_t_{date}.jsonl", "\n".join(lines) + "\n"),
        (f"results_{date}.json", json.dumps(results)),
    ):
        digest = sha256(content.encode()).hexdigest()
        (blobs / digest).write_text(content)
        (snapshot / name).symlink_to(Path("../../blobs") / digest)
    return snapshot


def test_the_cache_of_a_hub_is_read_and_exported_and_never_written_into(tmp_path: Path) -> None:
    snapshot = hub(tmp_path)
    before = {path: path.read_bytes() for path in (snapshot.parents[1] / "blobs").iterdir()}
    for place in (snapshot, snapshot.parents[1]):
        (row,) = shown("analyze", place)["estimates"]
        assert (row["n_questions"], row["task"]) == (30, "t")
    done = limited("export", snapshot, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        path.name for path in snapshot.iterdir()
    )
    assert not any(path.is_symlink() for path in (tmp_path / "out").iterdir())
    refused("export", snapshot, "--in-place")
    assert before == {path: path.read_bytes() for path in before}
    assert all(path.is_symlink() for path in snapshot.iterdir())


def test_in_place_writes_through_no_link_that_leads_out(tmp_path: Path) -> None:
    snapshot, run = hub(tmp_path), tmp_path / "run"
    run.mkdir()
    (tmp_path / "elsewhere").mkdir()
    for link in snapshot.iterdir():
        (tmp_path / "elsewhere" / link.name).write_bytes(link.read_bytes())
        (run / link.name).symlink_to(tmp_path / "elsewhere" / link.name)
    before = {path: path.read_bytes() for path in (tmp_path / "elsewhere").iterdir()}
    refused("export", run, "--in-place")
    refused("export", run, "--in-place", "--follow-links")
    assert before == {path: path.read_bytes() for path in before}
    for link in list(run.iterdir()):  # inside, the link stays one, and what it leads to is replaced
        link.unlink()
        (run / "real").mkdir(exist_ok=True)
        (run / "real" / link.name).write_bytes(before[tmp_path / "elsewhere" / link.name])
    assert limited("export", run, "--in-place").returncode == 0


def test_a_shells_own_input_is_read_once_as_one_table_or_document(tmp_path: Path) -> None:
    run = table(tmp_path / "a.csv")
    for path in (run, log(tmp_path / "b.json")):
        done = subprocess.run(
            [sys.executable, "-m", "harness_noise", "analyze", "/dev/stdin", "--format", "json"],
            input=path.read_bytes(), capture_output=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (row,) = json.loads(done.stdout)["estimates"]
        assert (row["n_questions"], row["mean"]) == (40, 0.5)
    command = f'{sys.executable} -m harness_noise compare <(cat "{run}") <(cat "{run}") --format json'
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["comparisons"][0]["n_questions"] == 40
    bar = 'cat <<< "tasks: [{name: table, metrics: [{name: score, value: 0.1}]}]"'
    command = f'{sys.executable} -m harness_noise gate "{run}" --thresholds <({bar})'
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_files_that_vanish_while_a_folder_is_read_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import harness_noise as hn
    from harness_noise.io import registry

    for name in "abc":
        table(tmp_path / f"{name}.csv")
    parts_of = registry._units

    def then_one_is_gone(name: str, path: Path) -> list[registry.ReadUnit]:
        units = parts_of(name, path)
        (tmp_path / "b.csv").unlink(missing_ok=True)
        return units

    monkeypatch.setattr(registry, "_units", then_one_is_gone)
    runs = hn.read(tmp_path)
    assert [run.model for run in runs] == ["a", "c"]
    assert any("b.csv" in str(note) for note in runs[0].notes)

"""`arena --jobs N|ADDRESS`: the same bytes whoever reads, and what happens when a reader fails."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness_noise.cli import main
from support import odd_adapter
from support.processes import environment as installed
from support.slow import rest_slow


def write_lm_eval(folder: Path, model: str, seed: int) -> None:
    """A run as lm-eval writes it, of one task with 40 questions and 3 answers each, one of them without a score."""
    draw = random.Random(seed)
    folder.mkdir(parents=True)
    rows = []
    for i in range(40):
        scores = [float(draw.random() < 0.4 + 0.05 * seed) for _ in range(3)]
        rows.append(
            {
                "doc_id": i,
                "doc": {"question": f"What is {i}?"},
                "target": "1",
                "arguments": {},
                "resps": [["a"] * 3],
                "filtered_resps": ["a"],
                "filter": "none",
                "metrics": ["acc"],
                "doc_hash": f"{i:064x}",
                "prompt_hash": f"{i:064x}",
                "target_hash": "0" * 64,
                "acc": scores[0],
                "scores_per_repeat": {"acc": scores},
                "cluster": f"c{i // 4}",
            }
        )
    rows[0]["scores_per_repeat"] = {"acc": [1.0, None, 0.0]}
    date = "2025-01-01T00-00-00.000000"
    (folder / f"samples_sums_{date}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    mean = sum(row["acc"] for row in rows) / len(rows)
    results = {
        "results": {"sums": {"alias": "sums", "acc,none": mean, "acc_stderr,none": 0.1}},
        "configs": {"sums": {"task": "sums", "metric_list": [{"metric": "acc", "aggregation": "mean"}], "repeats": 3}},
        "higher_is_better": {"sums": {"acc": True}},
        "n-samples": {"sums": {"original": 40, "effective": 40}},
        "model_name": model,
    }
    (folder / f"results_{date}.json").write_text(json.dumps(results))


def write_table(path: Path, seed: int) -> None:
    """Real-valued scores: their sums depend on the order in which they are added."""
    draw = random.Random(seed)
    rows = [f"q{i},{k},{draw.gauss(0.1 * seed, 1)!r}\n" for i in range(50) for k in range(4)]
    path.write_text("question,repeat,score\n" + "".join(rows))


def write_odd(path: Path, seed: int, **told: object) -> Path:
    draw = random.Random(seed)
    path.write_text(json.dumps({"scores": [[int(draw.random() < 0.6) for _ in "ab"] for _ in range(30)], **told}))
    return path


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process in which the odd adapter is installed."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copy(Path(odd_adapter.__file__), folder)
    about = folder / "odd_adapter-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-adapter\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[harness_noise.adapters]\nodd = odd_adapter:adapter\n")
    return installed(folder, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="1")


Arena = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def arena(environment: dict[str, str]) -> Arena:
    """Calls the command as a user does."""

    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "harness_noise", "arena", "--format", "json", *map(str, arguments)]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    return call


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Tables, a folder of lm-eval runs one of which is broken, and a broken table."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in range(5):
        write_table(folder / f"m{seed}.csv", seed)
        write_lm_eval(folder / "lm_eval" / f"model_{seed}", f"model-{seed}", seed)
    (folder / "lm_eval" / "model_2" / "results_2025-01-02T00-00-00.json").write_text('{"results": {')
    (folder / "broken.csv").write_text("question,score\nq0,not-a-number\n")
    return [*sorted(folder.glob("*.csv")), folder / "lm_eval"]


@dataclass
class Cluster:
    """A real scheduler and real workers, each a process."""

    environment: dict[str, str]
    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, command: str, *arguments: str, **more: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "distributed.cli." + command, "--no-dashboard", *arguments],
                env=self.environment | more, cwd=self.folder, stdout=log, stderr=log,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def begin(self) -> None:
        self.start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", "scheduler.json")
        while not (self.folder / "scheduler.json").exists():
            assert self.processes[0].poll() is None, (self.folder / "0.log").read_text()
            time.sleep(0.05)

    @property
    def address(self) -> str:
        found: str = json.loads((self.folder / "scheduler.json").read_text())["address"]
        return found

    def worker(self, name: str) -> subprocess.Popen[bytes]:
        return self.start(
            "dask_worker", "--scheduler-file", "scheduler.json", "--nthreads", "1", "--no-nanny", "--name", name,
            ODD_WORKER=name,
        )  # fmt: skip

    def with_workers(self, *names: str) -> Cluster:
        """Once these workers are there, and no others: those that no test has started yet, or that one has killed."""
        from distributed import Client

        alive = {name for process in self.processes if process.poll() is None for name in process.args[-1:]}  # type: ignore[index]
        for name in names:
            if name not in alive:
                self.worker(name)
        with Client(self.address, set_as_default=False) as client:
            while len(client.nthreads()) != len(names):
                time.sleep(0.05)
        return self


@pytest.fixture(scope="module")
def cluster(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pytest.importorskip("distributed", reason="dask is not installed")
    found = Cluster(environment, tmp_path_factory.mktemp("cluster"))
    try:
        found.begin()
        yield found
    finally:
        for process in found.processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def alone(arena: Arena, runs: Sequence[Path]) -> subprocess.CompletedProcess[str]:
    done = arena(*runs)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.process
@pytest.mark.parametrize("jobs", rest_slow([2, 3]))
def test_any_number_of_processes_gives_the_same_bytes(
    arena: Arena, runs: Sequence[Path], alone: subprocess.CompletedProcess[str], jobs: int
) -> None:
    found = json.loads(alone.stdout)
    assert {row["task"] for row in found["benchmarks"]} == {"sums", "table"}
    assert alone.stderr.count("left out") == 2
    done = arena(*runs, "--jobs", jobs)
    assert (done.stdout, done.stderr) == (alone.stdout, alone.stderr)


@pytest.mark.process
@pytest.mark.slow
def test_any_number_of_dask_workers_gives_the_same_bytes(
    arena: Arena, runs: Sequence[Path], alone: subprocess.CompletedProcess[str], cluster: Cluster
) -> None:
    for names in (("one",), ("one", "two")):
        cluster.with_workers(*names)
        done = arena(*runs, "--jobs", cluster.address)
        assert (done.stdout, done.stderr) == (alone.stdout, alone.stderr)


@pytest.mark.slow
def test_another_worker_takes_over_from_one_that_is_killed(arena: Arena, cluster: Cluster, tmp_path: Path) -> None:
    files = [write_odd(tmp_path / f"m{i}.odd", i) for i in range(6)]
    plain = arena(*files)
    assert plain.returncode == 0, plain.stderr
    cluster.with_workers("one", "two")
    before = [process for process in cluster.processes if process.poll() is None]
    write_odd(files[2], 2, deaths=1)
    done = arena(*files, "--jobs", cluster.address)
    assert (done.stdout, done.stderr) == (plain.stdout, "")
    (dead,) = [process for process in before if process.poll() is not None]
    assert dead.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_what_one_worker_cannot_read_this_process_reads(arena: Arena, cluster: Cluster, tmp_path: Path) -> None:
    files = [write_odd(tmp_path / f"m{i}.odd", i) for i in range(6)]
    plain = arena(*files)
    for i, path in enumerate(files):
        write_odd(path, i, not_on="two", tried=str(tmp_path / "tried"))
    done = arena(*files, "--jobs", cluster.with_workers("one", "two").address)
    assert done.stdout == plain.stdout
    (hint,) = done.stderr.splitlines()
    assert "of 6 files failed on a worker and were read by this process instead" in hint
    assert "Permission denied" in hint


@pytest.mark.slow
@pytest.mark.parametrize("where", ["processes", "cluster"])
def test_ctrl_c_ends_all_processes_with_one_line(
    where: str, environment: dict[str, str], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The signal goes to the whole group, as a terminal sends it, while the workers read."""
    begun = [tmp_path / f"begun{i}" for i in range(2)]
    released = tmp_path / "released"  # the cluster's workers go on to live
    files = [write_odd(tmp_path / f"w{i}.odd", i, mark=str(mark)) for i, mark in enumerate(begun)]
    files += [write_odd(tmp_path / f"m{i}.odd", i, wait=str(released)) for i in range(4)]
    how = (
        ["--jobs", "2"]
        if where == "processes"
        else ["--jobs", request.getfixturevalue("cluster").with_workers("one", "two").address]
    )
    command = [sys.executable, "-m", "harness_noise", "arena", *map(str, files), *how]
    process = subprocess.Popen(
        command, env=environment, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not all(mark.exists() for mark in begun):
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()  # returns when the last process that holds the pipes has ended
    released.touch()
    assert (process.returncode, out, err) == (130, "", "harness-noise: stopped\n")


@pytest.mark.slow
def test_a_file_that_kills_every_worker_is_named(arena: Arena, cluster: Cluster, tmp_path: Path) -> None:
    files = [write_odd(tmp_path / f"m{i}.odd", i) for i in range(4)]
    write_odd(files[1], 1, deaths=1000)
    done = arena(*files, "--jobs", cluster.with_workers("one", "two").address)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert ".odd: every worker that was to read it died" in line  # Dask also blames what waits beside it


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_one_line(environment: dict[str, str], cluster: Cluster, tmp_path: Path) -> None:
    cluster.with_workers("three")
    files = [write_odd(tmp_path / f"m{i}.odd", i, mark=str(tmp_path / "begun")) for i in range(2)]
    files.append(write_odd(tmp_path / "m2.odd", 2, wait=str(tmp_path / "never")))
    command = [sys.executable, "-m", "harness_noise", "arena", *map(str, files), "--jobs", cluster.address]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        time.sleep(0.02)
    cluster.processes[0].kill()
    out, err = process.communicate()
    assert (process.returncode, out) == (2, "")
    assert err.count("\n") == 1, err
    assert "the connection to the scheduler was lost" in err


@pytest.mark.slow
def test_a_process_that_is_killed_is_replaced(arena: Arena, tmp_path: Path) -> None:
    files = [write_odd(tmp_path / f"m{i}.odd", i) for i in range(6)]
    plain = arena(*files)
    write_odd(files[1], 1, deaths=2)
    done = arena(*files, "--jobs", 2)
    assert (done.stdout, done.stderr) == (plain.stdout, "")
    assert (tmp_path / "m1.deaths").read_bytes() == b"xx"


@pytest.mark.slow
def test_a_file_that_kills_every_process_is_named(arena: Arena, tmp_path: Path) -> None:
    files = [write_odd(tmp_path / f"m{i}.odd", i) for i in range(4)]
    write_odd(files[1], 1, deaths=1000)
    done = arena(*files, "--jobs", 2)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "m1.odd: every process that was to read it died" in line


@pytest.mark.parametrize(
    ("address", "words"),
    rest_slow(
        [
            ("no:", "no scheduler answers there"),
            ("tcp://127.0.0.1:9", "no scheduler answers there"),
            ("foo://x:1", "foo"),
        ]
    ),
)
def test_a_cluster_that_is_not_there_is_one_paragraph(
    address: str, words: str, runs: Sequence[Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="dask is not installed")
    monkeypatch.setattr("harness_noise.extra.arena.workers.CONNECT", 0.5)
    assert main(["arena", *map(str, runs), "--jobs", address]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert f"--jobs {address}" in err
    assert words in err


def test_without_dask_it_says_what_to_install(
    runs: Sequence[Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["arena", *map(str, runs), "--jobs", "tcp://127.0.0.1:9"]) == 2
    assert "pip install 'harness-noise[dask]'" in capsys.readouterr().err


def test_jobs_are_a_number_or_an_address(runs: Sequence[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arena", *map(str, runs), "--jobs", "many"]) == 2
    assert "--jobs many is neither a number of processes nor the address" in capsys.readouterr().err
    assert main(["arena", *map(str, runs), "--jobs", "0"]) == 2
    assert "--jobs 0 is not a whole number of 1 or more" in capsys.readouterr().err

"""Ctrl-C anywhere: one line, exit 130, no traceback, no process left."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from harness_noise import errors
from harness_noise.cli import main
from harness_noise.io import atomic as files

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends POSIX signals")

STOPPED = "harness-noise: stopped\n"
TABLE = "question,model,score\n" + "".join(
    f"q{i},{model},{int((7 * i + 3 * j) % 5 < 3)}\n" for j, model in enumerate("abc") for i in range(40)
)


@pytest.fixture
def table(tmp_path) -> Path:
    path = tmp_path / "scores.csv"
    path.write_text(TABLE)
    return path


def start(folder: Path, program: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
    """A Python program; Ctrl-C is not ignored in it, whoever started these tests."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **options,
    )  # fmt: skip


AT_EVENT = """
    import os, signal, sys
    left = int(sys.argv.pop(1))
    kind = sys.argv.pop(1)

    def hook(event, arguments):
        global left
        if event == kind:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGINT)

    from harness_noise.cli import main
    sys.addaudithook(hook)
    code = main()
    if kind == "import" and left > 0:
        print(left)
    sys.exit(code)
"""


@pytest.mark.slow
def test_during_the_imports(table):
    command = ["analyze", table, "-q", "--interval", "bootstrap", "-o", table.with_name("out.txt")]
    whole = start(table.parent, AT_EVENT, 10**6, "import", *command)
    out, _ = whole.communicate()
    total = 10**6 - int(out)
    assert total > 300
    table.with_name("out.txt").unlink()
    for n in [1, 2, *random.Random(6).sample(range(3, total), 10)]:
        child = start(table.parent, AT_EVENT, n, "import", *command)
        assert child.communicate() == ("", STOPPED), n
        assert child.returncode == 130, n
    assert [path.name for path in table.parent.iterdir()] == [table.name]


def test_at_interpreter_shutdown(tmp_path):
    program = """
        import atexit, os, signal, sys
        from harness_noise.cli import main
        atexit.register(os.kill, os.getpid(), signal.SIGINT)
        sys.exit(main())
    """
    child = start(tmp_path, program, "--version")
    out, said = child.communicate()
    assert (child.returncode, said) == (130, STOPPED)
    assert out.startswith("harness-noise")


def test_where_an_exception_would_be_swallowed(tmp_path):
    """A destructor, like an import hook or a callback from C, cannot raise: KeyboardInterrupt would be lost."""
    program = """
        import os, signal, sys
        from harness_noise.io import stopping
        class Deaf:
            def __del__(self):
                os.kill(os.getpid(), signal.SIGINT)
        stopping.stop_on_interrupt()
        Deaf()
        print("not stopped")
    """
    child = start(tmp_path, program)
    assert (*child.communicate(), child.returncode) == ("", STOPPED, 130)


def test_while_a_file_is_written(tmp_path):
    (tmp_path / "x").write_text("old")
    program = """
        import os, signal, sys
        from harness_noise.io import atomic as files, stopping
        stopping.stop_on_interrupt()
        with files.replacing("x") as file:
            file.write(b"new")
            file.flush()
            assert len(os.listdir()) == 2
            os.kill(os.getpid(), signal.SIGINT)
    """
    child = start(tmp_path, program)
    assert (*child.communicate(), child.returncode) == ("", STOPPED, 130)
    assert (tmp_path / "x").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_while_a_pipe_is_read_nothing_is_left(tmp_path):
    """What a pipe gives is put into a folder of its own among the temporary files."""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    program = "import sys; from harness_noise.cli import main; sys.exit(main())"
    child = start(tmp_path, program, "analyze", "/dev/stdin", stdin=subprocess.PIPE, env=environment)
    child.stdin.write(TABLE + "# more\n" * 20_000)
    child.stdin.flush()
    while not any(tmp_path.rglob("stdin*")):
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    assert child.wait(30) == 130
    assert list(tmp_path.iterdir()) == []
    child.communicate()


def test_on_a_terminal_the_cursor_comes_back(tmp_path):
    import pty

    program = """
        import os, signal, sys, time, click
        from harness_noise.io import stopping
        stopping.stop_on_interrupt()
        bar = click.progressbar(length=9, label="reading", file=sys.stderr)
        bar.update(3)
        os.kill(os.getpid(), signal.SIGINT)
    """
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stderr=theirs, cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 4096):
            said += piece
    except OSError:  # Linux says so when the other end is closed
        pass
    finally:
        os.close(ours)
    assert child.wait(30) == 130
    before, _, after = said.rpartition(b"\x1b[K")
    assert b"reading" in before
    assert after == b"\x1b[?25hharness-noise: stopped\r\n"


def test_a_shells_background_job_stays_deaf(tmp_path):
    program = """
        import os, signal, sys
        from harness_noise.cli import main
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = main()
        os.kill(os.getpid(), signal.SIGINT)
        sys.exit(code)
    """
    child = start(tmp_path, program, "--version")
    child.communicate()
    assert child.returncode == 0


def test_in_somebody_elses_process_it_stays_an_exception(table, monkeypatch, capsys):
    """With arguments `main` is a function: it leaves the handlers alone and returns."""
    from harness_noise.analysis import mean as analysis

    before = signal.getsignal(signal.SIGINT)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(analysis, "analyze_runs", interrupted)
    assert main(["analyze", str(table), "-q"]) == 130
    assert capsys.readouterr().err == STOPPED
    assert signal.getsignal(signal.SIGINT) is before


# every process of a pool loads it: a worker that opens a run says so and waits
SLOW = """
import multiprocessing, os, sys, time

def hook(event, arguments):
    if event == "open" and str(arguments[0]).endswith("slow.csv") and multiprocessing.parent_process() is not None:
        with open(os.environ["MARK"] + str(os.getpid()), "w"):
            pass
        time.sleep(300)

sys.addaudithook(hook)
"""


def is_alive(process: int) -> bool:
    """A zombie that nobody has reaped yet is not."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True)
    return done.stdout.strip()[:1] not in ("", "Z")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ps") is None, reason="looks for processes with ps")
@pytest.mark.parametrize("whole_group", [True, False], ids=["terminal", "kill"])
def test_a_pool_of_processes(whole_group, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SLOW)
    runs = [tmp_path / f"{i}-slow.csv" for i in range(2)]
    for path in runs:
        path.write_text(TABLE)
    marks = tmp_path / "marks"
    marks.mkdir()
    search = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    child = start(
        tmp_path, "import sys; from harness_noise.cli import main; sys.exit(main())",
        "arena", *runs, "--jobs", 2, "--tables", tmp_path / "tables",
        env=os.environ | {"MARK": f"{marks}/", "PYTHONPATH": search}, start_new_session=True,
    )  # fmt: skip
    try:
        while len(list(marks.iterdir())) < 2:
            assert child.poll() is None, child.communicate()
            time.sleep(0.05)
        (os.killpg if whole_group else os.kill)(child.pid, signal.SIGINT)
        assert (*child.communicate(), child.returncode) == ("", STOPPED, 130)
        workers = [int(path.name) for path in marks.iterdir()]
        while any(map(is_alive, workers)):
            time.sleep(0.05)
    finally:
        child.kill()
        child.wait()
    assert not (tmp_path / "tables").exists()


def test_nothing_is_held_after_a_write(tmp_path):
    from harness_noise.io.stopping import temporary_files

    before = set(temporary_files)  # what an earlier test of this process was given by a pipe goes with the process
    files.write_text(tmp_path / "x", "1")
    with pytest.raises(errors.InputError):
        files.write_text(tmp_path, "1")
    with pytest.raises(ZeroDivisionError), files.replacing(tmp_path / "y"):
        print(1 / (len(temporary_files - before) - 1))
    assert temporary_files == before

"""Atomic writes: whole or absent, whatever happens."""

import errno
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness_noise import files
from harness_noise.errors import InputError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_writes_a_new_file_and_makes_its_folder(tmp_path):
    files.write_text(tmp_path / "a" / "b.json", "ünï\n")
    assert (tmp_path / "a" / "b.json").read_bytes() == "ünï\n".encode()
    assert names(tmp_path / "a") == ["b.json"]


def test_an_exception_leaves_the_old_file_and_no_temporary(tmp_path):
    target = tmp_path / "x.json"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError), files.replacing(target) as file:
        print(len(names(tmp_path)) / file.write(b""))
    assert target.read_text() == "old"
    assert names(tmp_path) == ["x.json"]


def test_the_same_bytes_leave_the_file_alone(tmp_path):
    target = tmp_path / "x.json"
    files.write_text(target, "same")
    before = target.stat()
    files.write_text(target, "same")
    after = target.stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)
    assert names(tmp_path) == ["x.json"]
    files.write_text(target, "else")
    assert target.stat().st_ino != before.st_ino


def test_permissions_are_kept_and_new_files_follow_the_umask(tmp_path):
    target = tmp_path / "x"
    target.write_text("old")
    target.chmod(0o640)
    files.write_text(target, "new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    old = os.umask(0o027)
    try:
        files.write_text(tmp_path / "y", "new")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "y").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real" / "x")
    files.write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "x").read_text() == "new"


@pytest.mark.parametrize("kind", ["folder", "loop", "file-as-folder"])
def test_what_cannot_be_written_is_an_input_error(tmp_path, kind):
    target = tmp_path / "x"
    if kind == "folder":
        target.mkdir()
    elif kind == "loop":
        target.symlink_to(target)
    else:
        (tmp_path / "f").write_text("a file")
        target = tmp_path / "f" / "x"
    before = names(tmp_path)
    with pytest.raises(InputError, match=str(target)):
        files.write_text(target, "new")
    assert names(tmp_path) == before


def test_disk_full_is_an_input_error(tmp_path):
    target = tmp_path / "x"
    with pytest.raises(InputError, match="No space left"), files.replacing_path(target) as temporary:
        raise OSError(errno.ENOSPC, "No space left on device", str(temporary))
    assert names(tmp_path) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs Linux's /proc, where nobody may create a file")
def test_a_folder_that_takes_no_files_is_an_input_error():
    with pytest.raises(InputError, match=r"/proc/x\.json: cannot be written"):
        files.write_text("/proc/x.json", "new")


def test_somebody_elses_error_passes_through(tmp_path):
    with pytest.raises(FileNotFoundError), files.replacing(tmp_path / "x"):
        (tmp_path / "no such input").read_bytes()
    assert names(tmp_path) == []


HOLD = """
import sys, time
from harness_noise import files
with files.replacing(sys.argv[1]) as file:
    file.write(b"half"); file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


def test_a_killed_writer_is_swept_up_and_a_live_one_is_not(tmp_path):
    target = tmp_path / "x.json"
    target.write_text("old")
    writer = subprocess.Popen([sys.executable, "-c", HOLD, str(target)], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        held = [name for name in names(tmp_path) if name.startswith(files.PREFIX)]
        assert len(held) == 1
        files.write_text(tmp_path / "other", "y")
        assert held[0] in names(tmp_path)
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait(10)
        assert target.read_text() == "old"
        for _ in range(50):
            files.write_text(tmp_path / "other", "z")
            if held[0] not in names(tmp_path):
                break
            time.sleep(0.05)
        assert names(tmp_path) == ["other", "x.json"]
    finally:
        writer.kill()
        writer.wait(10)
        assert writer.stdout is not None
        writer.stdout.close()


def test_a_writer_that_goes_by_the_suffix(tmp_path):
    with files.replacing_path(tmp_path / "log.eval", suffix=".eval") as temporary:
        assert temporary.suffix == ".eval"
        temporary.unlink()  # some writers rename onto the path themselves
        temporary.write_bytes(b"PK")
    assert (tmp_path / "log.eval").read_bytes() == b"PK"
    assert names(tmp_path) == ["log.eval"]

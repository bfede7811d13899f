"""Atomic writes: whole or absent, whatever happens."""

import errno
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from harness_noise.errors import InputError
from harness_noise.io import atomic as files


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
from harness_noise.io import atomic as files
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


def test_a_writer_that_renames_onto_the_path_itself(tmp_path):
    with files.replacing_path(tmp_path / "log.eval") as temporary:
        temporary.unlink()
        temporary.write_bytes(b"PK")
    assert (tmp_path / "log.eval").read_bytes() == b"PK"
    assert names(tmp_path) == ["log.eval"]


@pytest.mark.skipif(os.name != "posix", reason="needs advisory locks")
def test_where_nobody_can_tell_who_holds_a_file_nothing_is_swept(tmp_path, monkeypatch):
    import fcntl

    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with files.replacing(tmp_path / "x") as file:
        file.write(b"x")
        files.write_text(tmp_path / "y", "y")  # another process would do the same
    assert names(tmp_path) == ["x", "y"]


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX pipes")
def test_a_device_or_a_pipe_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.write_text(pipe, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == ["pipe"]
    if Path("/dev/full").is_char_device():
        link = tmp_path / "full"
        link.symlink_to("/dev/full")
        with pytest.raises(InputError, match=r"full: cannot be written \(No space left"):
            files.write_text(link, "x")
    null = tmp_path / "null"
    with suppress(PermissionError):  # not everybody makes devices
        os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    if null.exists():
        files.write_text(null, "nowhere")
        assert stat.S_ISCHR(null.stat().st_mode)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_is_kept(tmp_path):
    target = tmp_path / "x"
    target.write_text("old")
    try:
        os.chown(target, 12345, 23456)
    except OSError as error:  # root of a user namespace
        pytest.skip(f"files cannot be given away here: {error}")
    target.chmod(0o640)
    files.write_text(target, "new")
    assert (target.stat().st_uid, target.stat().st_gid) == (12345, 23456)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_copy_that_fills_the_disk_blames_the_target(tmp_path):
    target = tmp_path / "x"
    with pytest.raises(InputError, match=f"^{target}: cannot be written"), files.replacing_path(target) as temporary:
        raise OSError(errno.ENOSPC, "No space left on device", "source", None, str(temporary))


def test_a_file_that_is_in_its_place_is_not_said_to_be_missing(tmp_path, monkeypatch):
    """Not every file system flushes folders."""
    flush = files._flush

    def picky(path):
        if path.is_dir():
            raise OSError(errno.EINVAL, "Invalid argument")
        flush(path)

    monkeypatch.setattr(files, "_flush", picky)
    files.write_text(tmp_path / "x", "new")
    assert (tmp_path / "x").read_text() == "new"


def test_a_temporary_file_passes_for_nothing_that_is_read(tmp_path):
    with files.replacing_path(tmp_path / "log.eval") as temporary:
        assert temporary.suffix == ".tmp"
        assert temporary.name.startswith(".")
        temporary.write_bytes(b"PK")


@pytest.mark.skipif(os.name != "posix", reason="needs advisory locks")
def test_writers_of_several_files_wait_for_each_other(tmp_path):
    import fcntl

    with files.alone(tmp_path / "out"):
        other = os.open(tmp_path / "out", os.O_RDONLY)
        try:
            with pytest.raises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(other)
    with files.alone(tmp_path / "out"):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file: cannot be written"), files.alone(tmp_path / "file"):
        pass


def test_a_file_that_changed(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    known = files.Unchanged([path])
    known.check(path)
    files.write_text(path, "new")
    with pytest.raises(InputError, match="x: changed while it was exported"):
        known.check(path)
    path.unlink()
    with pytest.raises(InputError, match="changed"):
        known.check(path)

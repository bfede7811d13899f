"""Disks that are full or read-only, folders without permission, folders and loops where a file should be."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from faults import campaign

CAMPAIGN = Path(campaign.__file__)
PROGRAM = [sys.executable, "-c", "import sys; from harness_noise.cli import main; sys.exit(main())"]
LOST = "dac_override", "dac_read_search", "fowner"


@pytest.fixture(scope="module")
def mounting() -> list[str]:
    """The start of a command that may mount: as root, or as root of a user namespace."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here: file systems cannot be mounted")
    for options in (["-m"], ["-rm"]):
        done = subprocess.run(
            ["unshare", *options, "mount", "-t", "tmpfs", "-o", "size=64k", "none", "/mnt"],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode == 0:
            return ["unshare", *options]
    pytest.skip(f"file systems cannot be mounted here: {done.stderr.strip()}")


@pytest.fixture(scope="module")
def unprivileged() -> list[str]:
    """The start of a command that must obey permissions; root without its capabilities, if need be."""
    if os.geteuid() != 0:
        return []
    command = ["setpriv", "--bounding-set", ",".join(f"-{name}" for name in LOST)]
    if shutil.which("setpriv") is None or subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        pytest.skip("root, and no setpriv that could take its capabilities")
    return command


@pytest.fixture
def run_folder(tmp_path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    campaign.write_lm_eval_run(folder)
    return folder


def refused(done: subprocess.CompletedProcess[str], place: object, reason: str) -> None:
    """Exit 2 with one paragraph that names the place and the reason."""
    assert done.returncode == 2, done.stderr
    assert re.fullmatch(rf"harness-noise: {re.escape(str(place))}\S*: [^\n]*{reason}[^\n]*\n", done.stderr), done.stderr


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True)


def test_a_full_disk(mounting, tmp_path):
    cases = "lm-eval,lm-eval in place,arena"
    done = run(
        *mounting, "sh", "-c", 'mount -t tmpfs -o size=4m none "$0" && exec "$@"', tmp_path,
        sys.executable, CAMPAIGN, "--root", tmp_path, "--cases", cases, "--full", 8,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "24 faults, every state whole" in done.stdout
    assert "full: nothing yet" in done.stdout
    assert "full: a part" in done.stdout


def test_a_read_only_disk(mounting, run_folder, tmp_path):
    before = campaign.tree(run_folder)
    shell = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    read_only = [*mounting, "sh", "-c", shell, run_folder, *PROGRAM]
    refused(run(*read_only, "export", run_folder, "--in-place", "-q"), run_folder, "Read-only file system")
    refused(run(*read_only, "export", run_folder, "-o", run_folder / "x", "-q"), run_folder, "Read-only file system")
    assert campaign.tree(run_folder) == before
    # reading from it is all right
    done = run(*read_only, "export", run_folder, "-o", tmp_path / "out", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(campaign.tree(tmp_path / "out")[0]) == 3


def test_no_permission(unprivileged, run_folder, tmp_path):
    program = [*unprivileged, *PROGRAM]
    model = run_folder / "org__model"
    before = campaign.tree(run_folder)
    try:
        model.chmod(0o500)  # nothing can be created in it
        refused(run(*program, "export", run_folder, "--in-place", "-q"), model, "Permission denied")
        tmp_path.chmod(0o500)
        refused(run(*program, "export", run_folder, "-o", tmp_path / "x", "-q"), tmp_path / "x", "Permission denied")
        refused(run(*program, "analyze", run_folder, "-q", "-o", tmp_path / "x"), tmp_path / "x", "Permission denied")
        tmp_path.chmod(0o700)
        (tmp_path / "shut").mkdir(mode=0o600)  # nobody can look into it
        shut = tmp_path / "shut" / "x"
        refused(run(*program, "analyze", run_folder, "-q", "-o", shut), shut, "Permission denied")
        (tmp_path / "blind").mkdir(mode=0o300)  # nobody can list it
        assert run(*program, "analyze", run_folder, "-q", "-o", tmp_path / "blind" / "x").returncode == 0
    finally:
        tmp_path.chmod(0o700)
        model.chmod(0o700)
        for name in ("shut", "blind"):
            if (tmp_path / name).exists():
                (tmp_path / name).chmod(0o700)
    assert [path.name for path in (tmp_path / "blind").iterdir()] == ["x"]
    assert campaign.tree(run_folder) == before
    for path in model.iterdir():
        path.chmod(0)
    refused(run(*program, "analyze", run_folder, "-q"), run_folder, "")


@pytest.mark.parametrize(("mode", "harness"), [(0o000, "table"), (0o400, "lm-eval")])
def test_a_folder_that_may_not_be_looked_into_is_left_out_with_a_warning(mode, harness, unprivileged, tmp_path):
    for name in "abc":
        (tmp_path / name).mkdir()
        if harness == "table":
            (tmp_path / name / f"{name}.csv").write_text(
                "question,score\n" + "".join(f"{i},{i % 2}\n" for i in range(9))
            )
        else:
            campaign.write_lm_eval_run(tmp_path / name)
            (results,) = (tmp_path / name).rglob("results_*.json")
            results.write_text(results.read_text().replace("org/model", name))
    program, shut = [*unprivileged, *PROGRAM], tmp_path / "c"
    shut.chmod(mode)
    try:
        for command in ("arena", "analyze"):
            done = run(*program, command, tmp_path, "--format", "json")
            assert done.returncode == 0, done.stderr
            rows = json.loads(done.stdout)["models" if command == "arena" else "estimates"]
            assert {row["model"] for row in rows} == {"a", "b"}
            assert done.stderr.count(f"left out: {shut}: cannot be opened (Permission denied)") == 1
        if harness == "lm-eval":
            done = run(*program, "export", tmp_path, "-o", tmp_path / "out")
            assert f"left out: {shut}: cannot be opened" in done.stderr
            assert len(list((tmp_path / "out").rglob("results_*.json"))) == 2
        shut_alone = rf"harness-noise: .*{re.escape(str(shut))}: cannot be opened \(Permission denied\)\n"
        assert re.fullmatch(shut_alone, run(*program, "arena", tmp_path, "--strict").stderr)
        assert re.fullmatch(shut_alone, run(*program, "analyze", shut).stderr)
    finally:
        shut.chmod(0o700)


@pytest.mark.parametrize("what", ["folder", "loop", "file as folder"])
def test_something_else_in_the_place_of_a_file(what, run_folder, tmp_path, capsys):
    from harness_noise.cli import main

    (samples,) = run_folder.rglob("samples_words_*.jsonl")
    place = tmp_path / "out" / samples.relative_to(run_folder)
    if what == "file as folder":
        (tmp_path / "out").mkdir()
        place.parent.write_text("a file")
    else:
        place.parent.mkdir(parents=True)
        place.mkdir() if what == "folder" else place.symlink_to(place)
    code = main(["export", str(run_folder), "-o", str(tmp_path / "out"), "-q"])
    said = capsys.readouterr().err
    assert code == 2
    assert said.startswith(f"harness-noise: {tmp_path / 'out'}")
    assert said.count("\n") == 1
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(campaign.PREFIX)]
    assert not [path for path in tmp_path.rglob("results_*") if run_folder not in path.parents]  # they come last


@pytest.mark.parametrize("command", ["analyze", "compare", "arena", "export"])
def test_a_loop_or_a_lost_link_in_the_place_of_a_run(command, tmp_path, capsys):
    from harness_noise.cli import main

    loop, lost = tmp_path / "loop.csv", tmp_path / "lost.csv"
    loop.symlink_to(loop)
    lost.symlink_to(tmp_path / "gone.csv")
    for path in (loop, lost):
        more = [str(path)] if command == "compare" else ["-o", str(tmp_path / "out")] if command == "export" else []
        assert main([command, str(path), *more, "-q"]) == 2
        said = capsys.readouterr().err
        assert str(path) in said
        assert "Traceback" not in said


def test_a_loop_of_folders_inside_a_run_ends(run_folder, tmp_path, capsys):
    from harness_noise.cli import main

    (run_folder / "org__model" / "again").symlink_to(run_folder)
    assert main(["export", str(run_folder), "-o", str(tmp_path / "out"), "-q"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3

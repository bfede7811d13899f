"""The tests of numbers, commands and both live harnesses, on every Python that this machine has.

    python tests/pythons.py 3.11 3.12 3.13 3.14

A Python is looked for on the PATH, among those of pyenv and uv, and at PYTHON_3_12 and the like in the environment.
Each has a virtual environment of its own (`.venv-python3.12`). One that is not there is said; a failure is an exit
code. This program runs on any of them, before anything is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = [
    "tests/core", "tests/unit", "tests/extra", "tests/property", "tests/reference", "tests/cli",
    "tests/adapters/test_lm_eval_live.py", "tests/adapters/test_inspect_live.py",
    "tests/adapters/test_inspect_means.py",
]  # fmt: skip


def interpreter(release: str) -> str | None:
    """The program of one release, such as `3.12`."""
    named = os.environ.get(f"PYTHON_{release.replace('.', '_')}")
    folders = [Path.home() / ".pyenv" / "versions", Path.home() / ".local" / "share" / "uv" / "python"]
    kept = [
        str(path)
        for folder in folders
        for path in sorted(folder.glob(f"*{release}.*/bin/python{release}"), reverse=True)
    ]
    for candidate in filter(None, [named, shutil.which(f"python{release}"), *kept]):
        asked = subprocess.run(
            [candidate, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True
        )
        if asked.returncode == 0 and asked.stdout.strip() == release:
            return candidate
    return None


def prepared(program: str, release: str) -> Path:
    """Its virtual environment, made where there is none yet."""
    folder = ROOT / f".venv-python{release}"
    ready = folder / ".ready"
    python = folder / "bin" / "python"
    if not ready.exists():
        subprocess.run([program, "-m", "venv", str(folder)], check=True)
        for arguments in (["--upgrade", "pip"], ["--editable", ".[all]"], ["--group", "test"]):
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *arguments], cwd=ROOT, check=True)
        ready.touch()
    return python


def main(releases: list[str]) -> int:
    failed, missing = [], []
    for release in releases:
        program = interpreter(release)
        if program is None:
            missing.append(release)
            continue
        print(f"== Python {release}: {program}", flush=True)
        try:
            python = prepared(program, release)
        except subprocess.CalledProcessError as error:
            failed.append(f"{release} (not installed: exit code {error.returncode})")
            continue
        done = subprocess.run(
            [str(python), "-m", "pytest", "-q", *os.environ.get("PYTEST", "").split(), *TESTS], cwd=ROOT
        )
        if done.returncode:
            failed.append(release)
    print(f"not on this machine: {', '.join(missing) or 'none'}; failed: {', '.join(failed) or 'none'}")
    return 1 if failed or len(missing) == len(releases) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["3.11", "3.12", "3.13", "3.14"]))

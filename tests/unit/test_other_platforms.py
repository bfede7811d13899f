"""The branches for systems that are not here: the same answers without `fork`, `fcntl` and `pthread_sigmask`.

Each program runs twice in a process of its own: as it is, and with the names taken away before ours are imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

AWAY = """
import os, signal, sys
for place, name in ((os, "fork"), (os, "chown"), (signal, "pthread_sigmask")):
    if hasattr(place, name):
        delattr(place, name)
sys.modules["fcntl"] = None
"""


def run(program: str, folder: Path, away: bool) -> str:
    """What a program prints; started from a file, so that worker processes can import it."""
    path = folder / f"program_{away}.py"
    path.write_text((AWAY if away else "") + program)
    done = subprocess.run(
        [sys.executable, path.name], cwd=folder, capture_output=True, text=True, timeout=120, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def both(program: str, tmp_path: Path) -> str:
    out = []
    for away in (False, True):
        folder = tmp_path / str(away)
        folder.mkdir()
        out.append(run(program, folder, away))
    assert out[0] == out[1]
    assert out[0]
    return out[0]


@pytest.mark.process
def test_files_without_locks(tmp_path: Path) -> None:
    """Whole or absent, also without `fcntl`; what nobody can tell to be left over is left where it is."""
    both(
        """
import os
from pathlib import Path
from harness_noise.io import atomic as files

files.write_text("a.txt", "one")
os.chmod("a.txt", 0o640)
files.write_text("a.txt", "two")
print(Path("a.txt").read_text(), oct(os.stat("a.txt").st_mode & 0o777))
with files.alone(Path("folder")):
    files.write_bytes(Path("folder") / "b", b"three")
try:
    with files.replacing_path(Path("a.txt")) as temporary:
        temporary.write_text("half")
        raise RuntimeError
except RuntimeError:
    pass
print(Path("a.txt").read_text(), sorted(p.name for p in Path(".").rglob("*") if p.suffix != ".py"))
""",
        tmp_path,
    )
    left = tmp_path / "True" / ".harness-noise-left"
    left.write_text("x")
    sweep = "from pathlib import Path; from harness_noise.io import atomic; atomic.sweep(Path('.'))"
    run(sweep, tmp_path / "True", True)
    assert left.exists()


@pytest.mark.slow
def test_commands_without_any_of_them(tmp_path: Path) -> None:
    """Reading with worker processes, comparing and writing: the same bytes."""
    both(
        """
import sys
from pathlib import Path
from harness_noise.cli import main

if __name__ == "__main__":
    for model, shift in (("a", 0), ("b", 1)):
        rows = [f"q{i},{(i * 7 + j * 5 + shift) % 3 % 2},{i // 3}" for i in range(30) for j in range(3)]
        Path(f"{model}.csv").write_text("question,score,cluster\\n" + "\\n".join(rows) + "\\n")
    codes = [
        main(["analyze", "a.csv", "--format", "csv"]), main(["compare", "a.csv", "b.csv", "--format", "csv"]),
        main(["arena", "a.csv", "b.csv", "--jobs", "2", "--format", "csv"]),
        main(["analyze", "a.csv", "--format", "json", "-o", "out.json"]),
    ]
    print(codes, Path("out.json").read_text())
""",
        tmp_path,
    )

"""The demo of a core install: two runs from the package, compared, and a page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness_noise.cli import main

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "adapters" / "harness_noise_adapters" / "extra" / "demo" / "runs"


@pytest.mark.process
def test_it_needs_no_harness_and_writes_a_page(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "for name in ('lm_eval', 'inspect_ai', 'pandas', 'pyarrow', 'zstandard'): sys.modules[name] = None\n"
        "from harness_noise.cli import main\n"
        "sys.exit(main(['demo', '-o', 'demo']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "simulated" in done.stdout.splitlines()[0]
    assert "sim-a is better than sim-e" in done.stdout
    assert "mockllm/sim-a is not shown to differ from mockllm/sim-e" in done.stdout
    assert "<html" in (tmp_path / "demo" / "compare.html").read_text()[:200].lower()
    for typed in re.findall(r"^\\$ harness-noise (.*)", done.stdout, re.M):
        assert all((tmp_path / word).exists() for word in typed.split() if word.startswith("demo/")), typed


def test_what_it_copies_can_be_read_again_and_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert main(["demo"]) == 0
    assert main(["list", "harness-noise-demo/inspect/sim-e.eval"]) == 0
    assert "40 questions × 2 answers, 20 clusters" in capsys.readouterr().out


def test_the_packaged_runs_are_small_and_name_no_machine() -> None:
    files = [path for path in RUNS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 800_000
    for path in files:
        assert not re.search(rb"/(tmp|home|root|work|Users)/", path.read_bytes()), path

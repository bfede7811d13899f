"""Commands under limits: whatever a stranger's file says, ten seconds and 1.5 GB are enough to read or refuse it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SECONDS, BYTES = 10, 1_500_000_000
_PROGRAM = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
resource.setrlimit(resource.RLIMIT_AS, ({BYTES}, {BYTES}))
from harness_noise.cli import main
sys.exit(main())
"""


def limited(
    *words: object, cwd: Path | None = None, env: Mapping[str, str] = {}, **options: Any
) -> subprocess.CompletedProcess[str]:
    """A command line under the limits; one that is killed by them has a negative exit code."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"} | dict(env)
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *map(str, words)], cwd=cwd, env=environment, capture_output=True, timeout=120,
        encoding="utf-8", errors="surrogateescape", **options,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    return done


def refused(*words: object, **options: Any) -> str:
    """What a command says that exits with 2, in one paragraph, as it must."""
    done = limited(*words, **options)
    assert done.returncode == 2, (done.returncode, done.stdout[-500:], done.stderr[-2000:])
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def shown(*words: object, **options: Any) -> dict[str, Any]:
    """The JSON of a command that exits with 0."""
    done = limited(*words, "--format", "json", **options)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def table(path: Path, right: int = 20, n: int = 40) -> Path:
    """A score table."""
    rows = "".join(f"q{i},{int(i < right)}\n" for i in range(n))
    path.write_text(f"question,score\n{rows}")
    return path


def log(path: Path, **metadata: object) -> Path:
    """A small log of Inspect with these metadata of its eval."""
    samples = [
        {"id": i, "epoch": 1, "input": f"{i}", "metadata": {"passage": f"p{i // 4}"},
         "scores": {"match": {"value": i % 2}}}
        for i in range(40)
    ]  # fmt: skip
    path.write_text(json.dumps({
        "version": 2, "status": "success",
        "eval": {"task": "t", "task_id": "t", "model": path.stem, "created": "2020-01-01T00:00:00+00:00",
                 "metadata": metadata},
        "results": {"scores": [{"name": "match", "metrics": {"accuracy": {"name": "accuracy", "value": 0.5}}}]},
        "samples": samples,
    }))  # fmt: skip
    return path

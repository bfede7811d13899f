"""A tiny trained model and tasks of every output type, for lm-eval's own models and clients."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of the model: that of HARNESS_NOISE_TINY_MODEL, where it is kept until tiny.py changes."""
    kept = os.environ.get("HARNESS_NOISE_TINY_MODEL")
    folder = Path(kept).resolve() if kept else tmp_path_factory.mktemp("tiny")
    recipe, last = HERE / "tiny.py", folder / "tokenizer.json"  # without the file that is written last it is not whole
    if not last.exists() or last.stat().st_mtime < recipe.stat().st_mtime:
        subprocess.run([sys.executable, str(recipe), str(folder)], check=True, capture_output=True)
    return str(folder)


@pytest.fixture(scope="session")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tasks."""
    from models.tiny import documents
    from models.tiny_tasks import TASKS, N
    from support import lm_eval_models as toys

    folder = tmp_path_factory.mktemp("tasks")
    for name, base in TASKS.items():
        toys.write_task(folder, name, documents(N), base)
    return folder

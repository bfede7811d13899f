"""Reads the runs of one harness: copy this folder, put your harness in the place of `trials`, and run the test.

A run is a file NAME.trials.json, one JSON object:

    {"model": "m", "trials": [{"task": "t", "id": "q1", "trial": 1, "question": "…", "passage": "p", "score": 1.0}, …]}

`score` may be null where an answer was given and could not be scored.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness_noise import InputError
from harness_noise.data.answers import Answers
from harness_noise.data.scores import ReadOptions, Run


class TrialsAdapter:
    name = "trials"

    def sniff(self, path: Path) -> bool:
        """By the name only: it is asked about every file, and must neither be slow nor raise."""
        return path.name.endswith(".trials.json") and path.is_file()

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """`Answers` does what the options say; a folder of several files is none of our business."""
        found = _object(path)
        answers = Answers(path, options, kind="sample id", text="question", auto={"drop": "passage"}.get)
        for line, trial in enumerate(found["trials"], 1):
            try:
                task, question, repeat, score = trial["task"], trial["id"], trial["trial"], trial["score"]
                value = None if score is None else float(score)
            except (KeyError, TypeError, ValueError) as error:
                raise InputError(f"{path}: trial {line} is none ({error!r}): was it written by MY HARNESS?") from None
            answers.add(str(task), "score", "none", str(question), str(repeat), value, trial, line=line)
        return [answers.run(str(found["model"]), self.name, date=str(found.get("date", "")))]

    def write(self, path: Path, *_: object) -> list[Path]:
        """Refused: of this format nobody knows where an error bar could stand."""
        raise InputError(f"{path}: use `harness-noise analyze {path} --format csv -o FILE`")


def _object(path: Path) -> dict[str, Any]:
    """The file, which may be damaged or of somebody else."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error}): is it damaged, or still being written?") from None
    if not isinstance(found, dict) or not found.get("model") or not isinstance(found.get("trials"), list):
        raise InputError(f"{path}: no object with a model and its trials: was it written by MY HARNESS?")
    return found


adapter = TrialsAdapter()

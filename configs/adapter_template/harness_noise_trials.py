"""Reads the runs of one harness: copy this folder, put your harness in the place of `trials`, and run the test.

A run is a file NAME.trials.json, one JSON object:

    {"model": "m", "trials": [{"task": "t", "id": "q1", "trial": 1, "question": "…", "passage": "p", "score": 1.0}, …]}
`score` may be null where an answer was given and could not be scored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness_noise import InputError
from harness_noise.data.answers import Answers
from harness_noise.data.scores import ReadOptions, Run
from harness_noise.io.paths import load


class TrialsAdapter:
    """Runs of MY HARNESS: NAME.trials.json"""  # the line that `harness-noise list` shows

    name = "trials"

    def sniff(self, path: Path) -> bool:
        """By the name only: it is asked about every file and folder, and must neither be slow nor raise.

        Where a run is a folder of files, say yes to that folder. A folder of several runs is walked for you.
        """
        return path.name.endswith(".trials.json") and path.is_file()

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """`Answers` does what the options say; a file with several models needs one `Answers` for each of them."""
        found = _object(path)
        answers = Answers(
            path, options,
            kind="sample id",  # what names a question: runs are paired by it, and by the words of `text`
            text="question",
            auto={"drop": "passage"}.get,  # the clusters that a task is known to have
            repeats_are_runs=False,  # True where all answers of one repeat share a cause: a seed, few-shot examples
        )  # fmt: skip
        # a task is a set of questions, a metric the name of a score, a scorer who gave it; what the harness itself says
        # of a metric goes to `answers.describe(task, metric, scorer, native=0.62, higher_is_better=True)`
        for line, trial in enumerate(found["trials"], 1):
            try:
                task, question, repeat, value = (trial[name] for name in ("task", "id", "trial", "score"))
            except (KeyError, TypeError) as error:
                raise InputError(f"{path}: trial {line} is none ({error!r}): was it written by MY HARNESS?") from None
            # outside the `try`: what is wrong with the answer itself is said by `add`
            answers.add(str(task), "score", "none", str(question), str(repeat), value, trial, line=line)
        # what the user should know of the run: `answers.notes.append(Note("from_adapter", "…"))`, of
        # `harness_noise.data.notes`; a note of one task is `Note("from_adapter", "…").of(task)`
        return [answers.run(str(found["model"]), self.name, date=str(found.get("date", "")))]

    def write(self, path: Path, *_: object) -> list[Path]:
        """Refused: of this format nobody knows where an error bar could stand."""
        raise InputError(f"{path}: use `harness-noise analyze {path} --format csv -o FILE`")


def _object(path: Path) -> dict[str, Any]:
    """The file, which may be damaged or of somebody else."""
    found = load(path, ": is it damaged, or still being written?")
    if not isinstance(found, dict) or not found.get("model") or not isinstance(found.get("trials"), list):
        raise InputError(f"{path}: no object with a model and its trials: was it written by MY HARNESS?")
    return found


adapter = TrialsAdapter()

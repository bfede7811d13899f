"""The short way: where pandas reads the files of a harness, this is its adapter; see `harness_noise_trials.py`."""

import pandas as pd

from harness_noise import InputError
from harness_noise.data.answers import Answers


class FrameAdapter:
    """Runs of MY HARNESS: NAME.answers.jsonl, a line for each answer"""

    name = "frame"

    def sniff(self, path):
        return path.name.endswith(".answers.jsonl") and path.is_file()

    def read(self, path, options):
        try:
            frame = pd.read_json(path, lines=True, dtype=False)
            models = list(frame.rename(columns={"id": "question", "trial": "repeat"}).groupby("model", sort=False))
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
            raise InputError(f"{path}: was it written by MY HARNESS, and is it whole? ({error})") from None
        return [Answers.from_frame(rows, path, options).run(str(model), self.name) for model, rows in models]

    def write(self, path, *_):
        raise InputError(f"{path}: nobody knows where an error bar could stand")


adapter = FrameAdapter()

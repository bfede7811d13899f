"""`rank.py RUN…`: runs of `harness-noise`, one after the other, as one rank on a machine without GPUs.

lm-eval's hf model shares its requests between the processes that it counts GPUs for; Accelerate takes gloo. A RUN is a
JSON array: what ends its further answers (memory, terminate, kill), what changes them (differ), or null, and the
arguments.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import torch

os.environ["ACCELERATE_USE_CPU"] = "true"
torch.set_num_threads(1)
torch.cuda.device_count = lambda: int(os.environ["WORLD_SIZE"])

from lm_eval.models.huggingface import HFLM  # noqa: E402

from harness_noise.cli import main  # noqa: E402

original = HFLM._model_generate
BATCHES = 2
"""Of lm-eval's own answers to a task, on each rank."""


def ended(how, out):
    """What happens to a rank at its second batch of further answers, or to the second rank from the first one on."""
    calls = [0]

    def generate(self, *args, **kwargs):
        calls[0] += 1
        if how == "memory" and calls[0] > BATCHES and os.environ["RANK"] == "1":
            raise RuntimeError("this rank is out of memory")
        if how == "terminate" and calls[0] == BATCHES + 2:
            os.kill(os.getpid(), signal.SIGTERM)
        if how == "kill" and calls[0] == BATCHES + 2:
            while not list(Path(out).rglob("results_*.json")):
                time.sleep(0.1)  # the first rank saves while this one asks
            os.kill(os.getpid(), signal.SIGKILL)
        tokens = original(self, *args, **kwargs)
        if how == "differ" and calls[0] > BATCHES and os.environ["RANK"] == "1":
            tokens[:, kwargs["context"].shape[1]] += 1
        return tokens

    return generate


for run in sys.argv[1:]:
    how, *arguments = json.loads(run)
    HFLM._model_generate = ended(how, arguments[arguments.index("--output_path") + 1])
    if (code := main(arguments)) and (how, code) != ("terminate", 130):
        sys.exit(code)

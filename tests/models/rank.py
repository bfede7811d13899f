"""`rank.py RUN…`: runs of `harness-noise`, one after the other, as one rank on a machine without GPUs.

lm-eval's hf model shares its requests between the processes that it counts GPUs for; Accelerate takes gloo. A RUN is a
JSON array: the rank whose further answers cannot be had, or null, and the arguments.
"""

import json
import os
import sys

import torch

os.environ["ACCELERATE_USE_CPU"] = "true"
torch.set_num_threads(1)
torch.cuda.device_count = lambda: int(os.environ["WORLD_SIZE"])

from lm_eval.models.huggingface import HFLM  # noqa: E402

from harness_noise.cli import main  # noqa: E402

original = HFLM.generate_until


def once(self, requests, *args, **kwargs):
    """lm-eval's own answers, and no further ones."""
    if getattr(self, "answered", False):
        raise RuntimeError("this rank is out of memory")
    self.answered = True
    return original(self, requests, *args, **kwargs)


for run in sys.argv[1:]:
    fails, *arguments = json.loads(run)
    HFLM.generate_until = once if str(fails) == os.environ["RANK"] else original
    if code := main(arguments):
        sys.exit(code)

"""`harness-noise ARGUMENTS` as one rank on a machine without GPUs.

lm-eval's hf model shares its requests between the processes that it counts GPUs for; Accelerate takes gloo. With
FAIL_RANK the further answers of that rank cannot be had.
"""

import os
import sys

import torch

os.environ["ACCELERATE_USE_CPU"] = "true"
torch.set_num_threads(1)
torch.cuda.device_count = lambda: int(os.environ["WORLD_SIZE"])

from lm_eval.models.huggingface import HFLM  # noqa: E402

from harness_noise.cli import main  # noqa: E402

if os.environ.get("FAIL_RANK") == os.environ["RANK"]:
    original, calls = HFLM.generate_until, []

    def generate_until(self, requests, *args, **kwargs):
        calls.append(len(requests))
        if len(calls) > 1:
            raise RuntimeError("this rank is out of memory")
        return original(self, requests, *args, **kwargs)

    HFLM.generate_until = generate_until

sys.exit(main(sys.argv[1:]))

"""The demonstration: two small runs that are compared, and simulated models in the real harnesses."""

from ...extras import Extra

EXTRA = Extra(commands={"demo": "cli"}, models={"simulated": "harness_noise_adapters.extra.demo.in_lm_eval"})

"""Add the noise to every lm-eval run of the process: `lm_eval run --plugins harness_noise.lm_eval …`.

The short name of `harness_noise_adapters.lm_eval_harness.live.plugin`, which says where its options come from.
"""

import harness_noise_adapters.lm_eval_harness.live.plugin  # noqa: F401 - importing it is what a plugin does

"""Extras next to the core, each in a package of its own. The core imports none (see `harness_noise.extras`)."""

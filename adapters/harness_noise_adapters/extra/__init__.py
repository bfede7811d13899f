"""All that the extras of `harness_noise` need of the formats: a folder for each, which goes when the extra goes."""

"""The demonstration: a small clustered benchmark and models that are simulated, through the real harnesses."""

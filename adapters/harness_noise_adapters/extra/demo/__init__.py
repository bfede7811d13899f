"""The demonstration: two small runs that are compared, and simulated models in the real harnesses."""

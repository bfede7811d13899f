"""Formats of other harnesses than lm-eval and Inspect, each with its adapter."""

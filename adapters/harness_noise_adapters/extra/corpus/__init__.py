"""Metrics that lm-eval makes from all questions at once."""

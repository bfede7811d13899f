"""Metrics over all questions at once (bleu, F1, perplexity), which are no means: their noise by resampling clusters."""

from ...extras import Extra

EXTRA = Extra(whole="estimating")

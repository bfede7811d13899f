"""Whole benchmarks from a part of their questions, with runs that have answered them all: the keyword `complete`."""

from ...extras import Extra, Keyword

EXTRA = Extra(keywords={"complete": Keyword("estimating", "analyze compare")})

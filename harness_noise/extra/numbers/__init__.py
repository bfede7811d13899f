"""Comparisons with numbers in place of runs: a published number, or two counts of right answers."""

from ...extras import Extra, Keyword

EXTRA = Extra(keywords=dict.fromkeys(("answers_b", "n"), Keyword("comparing", "published")))

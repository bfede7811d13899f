"""Means and differences slice by slice, of the questions that have one value of a field: the keyword `by`."""

from ...extras import Extra, Keyword

EXTRA = Extra(keywords={"by": Keyword("cutting", "analyze compare arena unpaired", display="report")})

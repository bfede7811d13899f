"""Means and differences slice by slice, of the questions that have one value of a field: the keyword `by`."""

from ...extras import Extra

EXTRA = Extra(keywords={"by": "cutting"})

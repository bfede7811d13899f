"""Scores corrected for guessing: the keyword `chance`."""

from ...extras import Extra

EXTRA = Extra(prepares={"chance": "preparing"})

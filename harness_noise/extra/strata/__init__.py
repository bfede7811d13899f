"""A traffic mix in place of the benchmark's own: weights of the questions by what they have in one field."""

from ...extras import Extra

EXTRA = Extra(prepares={"strata": "preparing"})

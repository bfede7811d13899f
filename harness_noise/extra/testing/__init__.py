"""The tests of an adapter's promises, for whoever writes one: `check_adapter` of `adapters`."""

from ...extras import Extra

EXTRA = Extra()

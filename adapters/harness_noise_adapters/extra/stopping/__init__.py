"""Live runs of either harness that stop early, or ask only some of their questions."""

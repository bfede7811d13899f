"""Stopping early: looks at a run before all its answers are there, with error rates that hold.

Sources: Lan & DeMets (1983), Biometrika 70; Jennison & Turnbull (2000); Waudby-Smith et al. (2024) for "anytime".
"""

from ...extras import Extra

EXTRA = Extra(functions=dict.fromkeys(("boundaries", "compare_in_sequence", "estimate_from_part"), "api"))

"""What the keyword `by` asks for."""

from ...analysis.slices import divided, slices_of_pairs, slices_of_runs

__all__ = ["divided", "slices_of_pairs", "slices_of_runs"]

"""lm-eval: which questions a run asks, and looks at it."""

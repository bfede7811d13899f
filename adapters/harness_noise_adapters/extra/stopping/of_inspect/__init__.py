"""Inspect: which answers a task asks, in which order, and looks at it."""

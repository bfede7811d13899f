"""People's labels from tables."""

"""lm-eval's results and samples files: found, read, written back."""

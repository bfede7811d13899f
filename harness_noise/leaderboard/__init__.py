"""Many runs at once: every pair, the best set, items, and profiles of benchmarks."""

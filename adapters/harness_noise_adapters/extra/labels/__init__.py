"""Human labels from tables."""

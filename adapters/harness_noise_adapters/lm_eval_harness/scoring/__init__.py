"""From rows of answers to Scores: metrics, filters, clusters, aggregates."""

"""From runs to results: means, differences, corpus metrics, repeats."""

"""Estimators on arrays: numpy and scipy, no files, no tables, no settings of a command."""

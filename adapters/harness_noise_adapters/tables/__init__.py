"""Score tables: CSV, TSV, JSON, JSONL and Parquet files with a row per answer, or a column per question."""

from .reader import TableAdapter, adapter

__all__ = ["TableAdapter", "adapter"]

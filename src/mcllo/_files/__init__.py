"""CSV and Parquet in and out.

Imports pyarrow, `_input` and the rooms above it. No statistics.
"""

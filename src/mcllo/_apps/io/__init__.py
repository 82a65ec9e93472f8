"""Tables in and out: CSV, Parquet, Arrow, workbooks, arrays.

Imports pyarrow, openpyxl, `_input` and the rooms above it. No statistics.
"""

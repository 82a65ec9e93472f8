"""Tables in and out: CSV, Parquet, Arrow, workbooks, arrays.

Imports pyarrow, openpyxl and, of the library, `_validation`. No statistics.
"""

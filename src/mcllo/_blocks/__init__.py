"""The same for rows that are never all in memory: files, Dask.

Imports all rooms above it, pyarrow, and Dask in `_blocks/dask`. It adds, and never computes anew.
"""

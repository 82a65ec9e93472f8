"""The same for rows that are never all in memory: files, Dask.

Imports all rooms above it, pyarrow, and Dask in `_apps/streaming/dask`. It adds, and never computes
anew.
"""

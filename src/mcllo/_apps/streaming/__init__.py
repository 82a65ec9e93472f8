"""The same for rows that are never all in memory: files, Dask.

Imports the library, `_apps/io`, and Dask in `_apps/streaming/dask` alone. It adds, and never
computes anew.
"""

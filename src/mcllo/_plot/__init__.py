"""Figures of results, one file for each kind; `mcllo.plot` is where they are called from."""

"""`Monitor`: evidence against calibration that may be looked at after every batch.

The room imports SQLite in `_monitor/store` alone; no row that was monitored is kept, only sums.
"""

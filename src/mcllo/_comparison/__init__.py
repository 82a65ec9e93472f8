"""What a user calls: assess, compare, fit a file, recommend.

Imports all rooms above it.
"""

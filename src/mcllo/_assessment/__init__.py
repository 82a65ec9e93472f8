"""`Assessment`, its lazy `Details`, and its statements: what is said, before it is printed.

Imports all rooms above it.
"""

"""Applications above the library: tables, rows beyond memory, reports, command line, served page.

They import the library; nothing of the library imports them.
"""

"""Verbs: parse, call, print. No logic.

Imports typer, rich and everything else.
"""

"""How fast, and how good on rows that no method saw; run `python -m benchmarks`."""

"""Side-by-side timings; run `python -m benchmarks`. Ratios count, absolute times do not."""

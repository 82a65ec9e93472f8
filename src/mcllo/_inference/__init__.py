"""Everything that ends in a p-value, an interval by simulation or a posterior.

Results of all tests are in `results`, draws of labels in `monte_carlo`, how many of them up to
which size in `budget`.
"""

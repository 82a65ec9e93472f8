"""Everything that ends in a p-value, an interval by simulation or a posterior.

Imports all rooms above it. The room that draws labels; what is simulated up to which size stands in
`_inference/budget`.
"""

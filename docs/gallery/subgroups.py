"""
Are all years alike?
====================

Slope and size of the error in each subgroup, here years of trapping, with intervals that hold for
all of them at once. One recalibration suits all only if they agree. See :doc:`/how-to/subgroups`.
"""

import mcllo

data = mcllo.datasets.load_portal_rodents(groups=None)
years = data.holdout_columns["year"].astype(str)
found = mcllo.subgroups(data.holdout, by=years, n_resamples=199, seed=0)

panels = mcllo.plot.subgroups(found)

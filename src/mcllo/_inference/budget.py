"""What is simulated how, and up to which size: every budget of simulation beside the others.

An *entry* is one probability of a table, rows x classes; *work* is entries x draws (20 to 50 ns an
entry, more for many classes). Draws are data sets whose labels are drawn from the predictions.

==========================  ======================================  ================================
what                        draws at most                           simulated up to
==========================  ======================================  ================================
calibration test            `N_RESAMPLES`                           `TEST_WORK`; beyond: chi-square
  sequential                stops at `N_EXCEEDANCES` (large         `LARGE_TABLE_ENTRIES` is large
                            tables: `N_EXCEEDANCES_LARGE_TABLE`)
over all baselines          `N_RESAMPLES`                           any size
sign flips of groups        `N_RESAMPLES`                           `MAX_FLIPPED_GROUPS`; beyond: F
  of skewed scores          `N_RESAMPLES_REPEATED` for each         `DEPENDENT_WORK`; beyond: flips
                            strength of dependence,                 alone, and the reason says so
                            `MIN_COSTLY_DRAWS` at least
rows of unequal weight      `N_RESAMPLES`; stops at                 `MAX_FLIPPED_GROUPS` effective
                            `N_EXCEEDANCES` beyond                  rows and `TEST_WORK`; beyond: F
                            `WORK_WITHOUT_EARLY_STOP`
nested models, one class    `N_RESAMPLES`                           `NESTED_WORK` for all tests,
                                                                    `BRIEF_NESTED_WORK` in `assess`
  refits, then scores       at least `MIN_COSTLY_DRAWS`             beyond: chi-square, and the
                                                                    reason says so
  full map, asked for       `N_RESAMPLES`                           `FULL_MAP_WORK` a test
zeros, each clip            `N_RESAMPLES_REPEATED`                  `ZEROS_WORK`, whatever the
                                                                    information
ECE, classwise ECE,         `NULLS_WORK` / entries, at least        `MAX_NULLS_ENTRIES`; beyond: no
Hosmer-Lemeshow             `MIN_DRAWS`                             null, chi-square for the last
kernel test                 `MIN_DRAWS`                             `MAX_KERNEL_ENTRIES` and
                                                                    `MAX_KERNEL_ROWS`
omnibus test, asked for     `N_RESAMPLES_SINGLE`                    any size
isotonic curve's band       `CONSISTENCY_WORK` / rows, from         any size
                            `MIN_DRAWS` to
                            `N_RESAMPLES_SINGLE`
details of an assessment    `N_RESAMPLES_REPEATED`                  all baselines:
                                                                    `MAX_BASELINE_ENTRIES`
classes left out            `N_RESAMPLES_ATTRIBUTION`               `ATTRIBUTION_WORK`; beyond:
                                                                    fewer rows
holdout tests of `compare`  `N_RESAMPLES_REPEATED`                  `TEST_WORK`
  labels of both samples    `N_RESAMPLES_REPEATED`                  `TEST_WORK`; beyond: no
                                                                    corrected p-value
parametric bootstrap        `N_RESAMPLES_SINGLE`                    any size
tests in a power study      `N_RESAMPLES_STUDY`                     any size
distribution of a size      `N_RESAMPLES_SIZE`                      any size, of some hundred rows
fit of the map              `FIT_WORK` / rows, at most              any size, of `FIT_WORK` /
                            `N_RESAMPLES_REPEATED`                  `MIN_DRAWS` rows at most
one map for all subgroups   `N_RESAMPLES`                           `SUBGROUPS_WORK`; beyond: chi-
                                                                    square
  tests of each subgroup    so many times their number              as the calibration test
==========================  ======================================  ================================

Memory: `BATCH_ENTRIES` labels are drawn at once, `MAX_ENTRIES_FOR_QUANTILES` probabilities kept for
quantiles.

All are round numbers; seconds are those of one core. Numbers of draws are one less than a round
number, so that 1 / (draws + 1), the smallest p-value, is round.
"""

from __future__ import annotations

N_RESAMPLES = 1999
N_RESAMPLES_SINGLE = 999  # of a call that simulates one thing
# of what a call simulates several times: clips, parts, methods, strengths of dependence
N_RESAMPLES_REPEATED = 499
N_RESAMPLES_ATTRIBUTION = 399
# each repetition needs its own; a p-value is exact at any number
N_RESAMPLES_STUDY = 199
N_RESAMPLES_SIZE = 400  # of an estimate; labels are not drawn
MIN_DRAWS = 199  # where work limits draws: so many all the same
# the same where draws cost much (refits, dependent labels): with fewer it is not worth it
MIN_COSTLY_DRAWS = 99

# simulated statistics at least as large, at which a sequential run stops
N_EXCEEDANCES = 50
N_EXCEEDANCES_LARGE_TABLE = 20  # the same above `LARGE_TABLE_ENTRIES`
LARGE_TABLE_ENTRIES = 200_000  # rows times classes

TEST_WORK = 4e9  # two to three minutes of likelihood ratios
NESTED_WORK = 2e7  # a second or two for all tests
# half a second at most, for tests that come with every assessment
BRIEF_NESTED_WORK = 4e6
FULL_MAP_WORK = 4e8  # when simulation was asked for, whatever it costs
# a test of the full map may take one part in so many of all work
FULL_MAP_WORK_DIVISOR = 3
# draws that are scored at the price of one that is fitted: MCLLO
N_SCORES_PER_REFIT = 25.0
N_SCORES_PER_FULL_MAP_REFIT = 150.0  # the same for the full map
ZEROS_WORK = 2e7  # some seconds in all: every floor is simulated up to here
WORK_WITHOUT_EARLY_STOP = 2e7  # about a second: no need to stop early
DEPENDENT_WORK = 1e8  # some seconds: labels of groups, for every strength of dependence
NULLS_WORK = 2e8
FIT_WORK = 2e7  # rows x draws of labels from the fitted map: half a second
CONSISTENCY_WORK = 2e7  # rows x draws of an isotonic band: a second or two
SUBGROUPS_WORK = 4e8  # ten seconds or so of scores: all subgroups share the draws
SUBGROUPS_PER_N_RESAMPLES = 20
"""Of every 20 subgroups each may take so many draws again: its p-value is multiplied by all."""
ATTRIBUTION_WORK = 1e8  # a second or two for all sets of classes that are left out

MAX_NULLS_ENTRIES = 2e6
MAX_KERNEL_ENTRIES = 200_000
MAX_KERNEL_ROWS = 2000  # the kernel test holds all pairs of rows
# rows x classes x baselines; beyond, not every baseline is fitted
MAX_BASELINE_ENTRIES = 2e7
# groups beyond which F is as good, and shows smaller p-values
MAX_FLIPPED_GROUPS = 1000

BATCH_ENTRIES = 400_000
MAX_ENTRIES_FOR_QUANTILES = 2_000_000

"""What is simulated how, and up to which size: every budget of simulation beside the others.

An *entry* is one probability of a table, rows x classes; *work* is entries x draws (20 to 50 ns an
entry, more for many classes). Draws are data sets whose labels are drawn from the predictions.

==========================  ============================  ========================================
what                        draws at most                 simulated up to
==========================  ============================  ========================================
calibration test            `N_RESAMPLES`                 `TEST_WORK`; beyond: chi-square
  sequential, stops at      `EXCEEDANCES`                 `LARGE_TABLE` entries; beyond:
                                                          `EXCEEDANCES_LARGE`
over all baselines          `N_RESAMPLES`                 any size
sign flips of groups        `N_RESAMPLES`                 `MOST_FLIPPED` groups; beyond: F
  skewed scores, for each   `N_RESAMPLES_DEPENDENT`,      `DEPENDENT_WORK`; beyond: flips alone,
  strength of dependence    `FEWEST_DEPENDENT` at least   and the reason says so
rows of unequal weight      `N_RESAMPLES`                 `MOST_FLIPPED` effective rows and
  sequential, stops at      `EXCEEDANCES`                 `TEST_WORK`; beyond: F
  beyond `UNHURRIED_WORK`
nested models, one class    `N_RESAMPLES`                 `NESTED_WORK` for all tests together,
                                                          `BRIEF_NESTED_WORK` in an assessment
  refits, then scores       at least `FEWEST_REFITS`      beyond: chi-square, and the reason says so
  full map, asked for       `N_RESAMPLES`                 `FULL_MAP_WORK` a test
zeros, each floor           `N_RESAMPLES_ZEROS`           `ZEROS_WORK` whatever the information
ECE, classwise ECE,         `NULLS_WORK` / entries, at    `MOST_NULLS_ENTRIES`; beyond: no null, and
Hosmer-Lemeshow             least `FEWEST_NULL_DRAWS`     chi-square for Hosmer-Lemeshow
kernel test                 `FEWEST_NULL_DRAWS`           `MOST_KERNEL_ENTRIES`, `MOST_KERNEL_ROWS`
omnibus test, asked for     `N_RESAMPLES_OMNIBUS`         any size
isotonic curve's band       `CONSISTENCY_WORK` / rows,    any size; at least `FEWEST_NULL_DRAWS`
                            `N_RESAMPLES_CONSISTENCY`
details of an assessment    `N_RESAMPLES_DETAILS`         all baselines: `MOST_BASELINE_ENTRIES`
classes left out            `N_RESAMPLES_CULPRITS`        `CULPRITS_WORK`; beyond: fewer rows
holdout tests of `compare`  `N_RESAMPLES_COMPARE`         `TEST_WORK`
  labels of both samples    `N_RESAMPLES_COMPARE`         `TEST_WORK`; beyond: no corrected p-value
parametric bootstrap        `N_RESAMPLES_BOOTSTRAP`       any size
tests in a power study      `N_RESAMPLES_STUDY`           any size
law of a size               `N_RESAMPLES_SIZE`            any size, of some hundred rows
one map for all subgroups   `N_RESAMPLES`                 `SUBGROUPS_WORK`; beyond: chi-square
  tests of each subgroup    so many times their number    as the calibration test
==========================  ============================  ========================================

Memory: `BATCH_ENTRIES` labels are drawn at once, `HELD_ENTRIES` probabilities kept for quantiles.
"""

from __future__ import annotations

N_RESAMPLES = 1999
N_RESAMPLES_OMNIBUS = 999
N_RESAMPLES_CONSISTENCY = 999
N_RESAMPLES_BOOTSTRAP = 999
N_RESAMPLES_ZEROS = 499
N_RESAMPLES_DETAILS = 499
N_RESAMPLES_COMPARE = 499
N_RESAMPLES_DEPENDENT = 499
N_RESAMPLES_CULPRITS = 399
N_RESAMPLES_STUDY = 199  # each repetition needs its own; a p-value is exact at any number
N_RESAMPLES_SIZE = 400  # of an estimate; labels are not drawn
FEWEST_NULL_DRAWS = 199
FEWEST_DEPENDENT = 99
FEWEST_REFITS = 99  # below, refits, and then scores, are not worth it

EXCEEDANCES, EXCEEDANCES_LARGE = 50, 20
LARGE_TABLE = 200_000

TEST_WORK = 4e9  # two to three minutes of likelihood ratios
NESTED_WORK = 2e7  # a second or two for all tests
BRIEF_NESTED_WORK = 4e6  # half a second at most, for tests that come with every assessment
FULL_MAP_WORK = 4e8  # when simulation was asked for, whatever it costs
FULL_MAP_SHARE = 3  # a test of the full map may take one part in so many of all work
SCORES_PER_REFIT, FULL_SCORES_PER_REFIT = 25.0, 150.0
"""Draws that are scored at the price of one that is fitted; MCLLO, full map."""
ZEROS_WORK = 2e7  # some seconds in all: every floor is simulated up to here
UNHURRIED_WORK = 2e7  # about a second: no need to stop early
DEPENDENT_WORK = 1e8  # some seconds: labels of groups, for every strength of dependence
NULLS_WORK = 2e8
CONSISTENCY_WORK = 2e7  # rows x draws of an isotonic band: a second or two
SUBGROUPS_WORK = 4e8  # ten seconds or so of scores: all subgroups share the draws
SUBGROUPS_PER_DRAWS = 20
"""Of every 20 subgroups each may take so many draws again: its p-value is multiplied by all."""
CULPRITS_WORK = 1e8  # a second or two for all sets of classes that are left out

MOST_NULLS_ENTRIES = 2e6
MOST_KERNEL_ENTRIES, MOST_KERNEL_ROWS = 200_000, 2000  # the kernel test holds all pairs of rows
MOST_BASELINE_ENTRIES = 2e7  # rows x classes x baselines; beyond, not every baseline is fitted
MOST_FLIPPED = 1000  # groups beyond which F is as good, and shows smaller p-values

BATCH_ENTRIES = 400_000
HELD_ENTRIES = 2_000_000

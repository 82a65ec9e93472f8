"""The method in plain words, and whom to cite: what every report says in its box."""

from __future__ import annotations

from ..._assessment.assessment import Assessment
from ..._comparison.comparison import Comparison
from .views import Fact

REFERENCES = (
    Fact(
        "vennos2026",
        "A. Vennos, X. Xing and C. T. Franck (2026). Multiclass Calibration Assessment and "
        "Recalibration of Probability Predictions via the Linear Log Odds Calibration Function. "
        "arXiv:2602.18573.",
        "https://arxiv.org/abs/2602.18573",
        "the model with a baseline class, its test and its use for recalibration",
    ),
    Fact(
        "vanhoorde2014",
        "K. Van Hoorde, Y. Vergouwe, D. Timmerman, S. Van Huffel, E. W. Steyerberg and B. Van "
        "Calster (2014). Assessing calibration of multinomial risk prediction models. Statistics "
        "in Medicine 33, 2585–2596.",
        "https://doi.org/10.1002/sim.6114",
        "the same model and test, as calibration intercepts and slopes",
    ),
    Fact(
        "besag1991",
        "J. Besag and P. Clifford (1991). Sequential Monte Carlo p-values. Biometrika 78, 301–304.",
        "https://doi.org/10.1093/biomet/78.2.301",
        "exact p-values that stop drawing early",
    ),
    Fact(
        "wasserman2020",
        "L. Wasserman, A. Ramdas and S. Balakrishnan (2020). Universal inference. Proceedings of "
        "the National Academy of Sciences 117, 16880–16890.",
        "https://doi.org/10.1073/pnas.1922664117",
        "the split likelihood ratio and its guaranteed bound",
    ),
    Fact(
        "austin2019",
        "P. C. Austin and E. W. Steyerberg (2019). The Integrated Calibration Index (ICI) and "
        "related metrics for quantifying the calibration of logistic regression models. Statistics "
        "in Medicine 38, 4051–4065.",
        "https://doi.org/10.1002/sim.8281",
        "smooth reliability curves and their distance from the line",
    ),
    Fact(
        "marcus1976",
        "R. Marcus, E. Peritz and K. R. Gabriel (1976). On closed testing procedures with special "
        "reference to ordered analysis of variance. Biometrika 63, 655–660.",
        "https://doi.org/10.1093/biomet/63.3.655",
        "closed testing of nested models",
    ),
    Fact(
        "holm1979",
        "S. Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian "
        "Journal of Statistics 6, 65–70.",
        "https://www.jstor.org/stable/4615733",
        "tests of several classes at once",
    ),
    Fact(
        "guthrie2024",
        "A. P. Guthrie and C. T. Franck (2024). Boldness-recalibration for binary event "
        "predictions. The American Statistician.",
        "https://doi.org/10.1080/00031305.2024.2339266",
        "the posterior probability of calibration",
    ),
    Fact(
        "rao1984",
        "J. N. K. Rao and A. J. Scott (1984). On chi-squared tests for multiway contingency tables "
        "with cell proportions estimated from survey data. The Annals of Statistics 12, 46–60.",
        "https://doi.org/10.1214/aos/1176346391",
        "tests for dependent rows and survey weights",
    ),
)

_MODEL = (
    Fact(
        "question",
        "The question",
        "",
        "A classifier gives every row a probability for every class. If the probabilities are "
        "calibrated, the labels behave like draws from them: of all rows given 0.7 for a class, "
        "about 70 % belong to it.",
    ),
    Fact(
        "model",
        "The model",
        "log(g_j / g_b) = log δ_j + γ_j · log(x_j / x_b)",
        "x_j is the predicted probability of class j, x_b that of the baseline class, and g the "
        "recalibrated ones. δ (shift) multiplies the odds of a class; γ (slope) stretches or "
        "shrinks "
        "its log odds. With δ = γ = 1 for all classes nothing changes.",
    ),
    Fact(
        "test",
        "The test",
        "λ = 2 · (log likelihood at the best δ and γ − log likelihood at δ = γ = 1)",
        "If the predictions are calibrated, λ follows a chi-square distribution with two degrees "
        "of freedom for each class but the baseline, once there are many rows. It sees shifts and "
        "slopes of the log odds and is blind to other departures; the omnibus tests are there for "
        "those.",
    ),
    Fact(
        "exact",
        "Exact p-values",
        "p = (1 + number of simulated λ at least as large) / (1 + number of simulations)",
        "Given the predictions, calibration leaves nothing unknown: labels can be drawn from them, "
        "so p-values are exact at any number of rows. Used where chi-square cannot be trusted.",
    ),
    Fact(
        "bound",
        "Guaranteed bounds",
        "p ≤ 1 / (likelihood ratio of one half of the rows at the estimate of the other half)",
        "Where the evidence is far stronger than any number of simulations could show, the p-value "
        "is given as an upper bound that holds at any number of rows.",
    ),
    Fact(
        "ece",
        "Expected calibration error (ECE)",
        "sum over bins of (share of rows) · |accuracy − mean confidence|",
        "Rows are put into bins by the probability of their most probable class. Its value depends "
        "on the bins and on the number of rows, so it is shown beside the range that calibrated "
        "predictions would give.",
    ),
    Fact(
        "baseline",
        "The baseline",
        "",
        "Estimates compare each class with one baseline class. Another baseline gives other "
        "estimates, and, when slopes differ between classes, a somewhat different p-value.",
    ),
)

_NESTED_MODELS = Fact(
    "nested_models",
    "Kinds of miscalibration",
    "one slope: γ · l_j;  shifts: τ_j + l_j;  shifts and slopes: τ_j + γ_j · l_j;  "
    "full matrix: τ_j + Σ_k W_jk · l_k",
    "l_j is the log odds of class j against the baseline, τ_j = log δ_j. A model is rejected only "
    "when it and every model inside it are rejected (closed testing), so that any false rejection "
    "at all has probability 5 % at most. The smallest model left is named; that is no proof of it.",
)
_HOLM = Fact(
    "holm",
    "Single classes",
    "",
    "The p-value of a class's shift and slope compares the whole fit with one in which this class "
    "is as predicted, against the baseline. That of its share asks how often labels drawn from the "
    "predictions would miss the predicted number of rows by as much. Holm's method multiplies the "
    "smallest p-value by the number of classes, the next by one less, and so on.",
)
_BAYES = Fact(
    "bayes",
    "Bayes",
    "log Bayes factor against calibration ≈ λ / 2 − (d / 2) · log n",
    "With d parameters and n rows. It sees the labels only through λ and asks far more of it than "
    "the test does when d is large, so that the two can disagree.",
)
_ROBUST = Fact(
    "robust",
    "Dependent rows",
    "",
    "Rows of a group may depend on each other, and weights of a survey are no counts. The test "
    "then uses the score at δ = γ = 1 (the slope of the log likelihood), summed inside each group, "
    "and takes its variance from how much these sums differ. Its p-value comes from random signs "
    "of the sums, or from an F distribution where there are many; for weights that are no counts "
    "from labels drawn as the predictions and the weights have them.",
)
_OVER_BASELINES = Fact(
    "max_score",
    "A baseline chosen by the labels",
    "",
    "Trying every class as the baseline and keeping the best fit makes its own p-value too small. "
    "The p-value given is that of the largest score statistic over all baselines, of which "
    "simulated calibrated labels take the largest too.",
)
_PAIRED = Fact(
    "paired",
    "Comparing recalibrations",
    "difference = log loss − log loss of the best recalibration",
    "The difference is taken row by row, so that what the recalibrations share cancels. The "
    "intervals hold every difference that the labels do not contradict, in the family of "
    "distributions that tilts the mean of all predictions towards one recalibration or the other, "
    "so that errors which might have happened count too; rows that vary more than this family "
    "says, or in groups, widen them. The quantile is that of the largest of all differences over "
    "its standard error (max-t): with 95 % confidence all of them hold at once, whichever "
    "recalibration is picked after looking. Recalibrations whose interval reaches 0, or whose "
    "difference four decimals do not show, cannot be told from the best.",
)


CITED = {
    "nested_models": "marcus1976",
    "holm": "holm1979",
    "bayes": "guthrie2024",
    "robust": "rao1984",
}
"""References that belong to one item of the box."""


def method_facts(a: Assessment, comparison: Comparison | None) -> tuple[Fact, ...]:
    """Return the box of the method, without what this report does not use."""
    ways = {a.test.method}
    if a.null_distributions:
        ways.add("exact")
    if comparison is not None:
        ways |= {row.pvalue_method for row in comparison.rows}
    used = [fact for fact in _MODEL if fact.key not in {"exact", "bound"} - ways]
    if comparison is not None:
        return (*used, _PAIRED)
    if a.test.kind == "max_score":
        used.append(_OVER_BASELINES)
    for fact, part in (
        (_NESTED_MODELS, a.details.nested_models),
        (_HOLM, a.details.class_tests),
        (_BAYES, a.details.posterior),
        (_ROBUST, a.details.robust),
    ):
        if part is not None:
            used.append(fact)
    return tuple(used)


def references(method: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Return whom to cite for these items of the box."""
    used = {fact.key for fact in method}
    unused = {cited for key, cited in CITED.items() if key not in used}
    return tuple(fact for fact in REFERENCES if fact.key not in unused)

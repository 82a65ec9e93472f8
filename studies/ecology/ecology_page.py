"""The tables of ``docs/studies/ecology.md``, from the committed results."""

from __future__ import annotations

from pathlib import Path

from _common import column, markdown, p_word, percent, read_table

CUTS = Path(__file__).resolve().parent / "results" / "cuts.csv"
"""Made by ``make_predictions.py``, which needs the data."""
NAMES = {
    "uncalibrated_train": "as predicted, 1986–1994",
    "uncalibrated": "as predicted",
    "mcllo": "MCLLO",
    "temperature": "temperature scaling",
    "vector": "vector scaling",
    "histogram": "histogram binning",
    "xu_davoine": "Xu and others",
}
SETS = {
    "middle": "1986–1994, as predicted",
    "late": "1995–2002, as predicted",
    "late_mcllo": "1995–2002, after MCLLO",
    "late_vector": "1995–2002, after vector scaling",
}
GROUPS = {"none": "every row", "plot_month": "plot and month", "month": "month", "plot": "plot"}
VERDICTS = (
    (
        "MCLLO applies beyond neural networks, without logits",
        "holds",
        "A regression has logits, and MCLLO does not need them. (Nor do temperature scaling and "
        "histogram binning.)",
    ),
    (
        "MCLLO is comparable to or better calibrated than other methods, by test and by ECE",
        "cannot be told",
        "Of the five its ECE is the lowest in {lowest_ece} cuts of the years, its statistic in "
        "{lowest_statistic}, its log loss in {lowest_loss}. Vector scaling has the lowest log loss "
        "in {vector_lowest_loss}.",
    ),
    (
        "MCLLO recalibration also improves ECE",
        "does not hold",
        "Not for other years: it lowers the ECE in {lowers_ece} cuts, and the log loss in "
        "{lowers_loss}.",
    ),
    (
        "if predictions are not calibrated, MCLLO can map them to calibrated ones",
        "does not hold",
        "For later years: the repaired predictions are rejected, whatever is called independent. "
        "A map learned on one community is not right for the next. It still lowers the log loss, "
        "from {loss_before} to {loss_mcllo}.",
    ),
    (
        "the test tells a good repair from a bad one",
        "does not hold",
        "With {n_late} rows every repair is rejected with p below 1e-300 when rows are called "
        "independent. Log loss tells them apart.",
    ),
    (
        "ECE looks at the most probable class only",
        "holds",
        "After MCLLO the reliability diagram of the most probable class is close to the line; the "
        "share of {worst} is predicted as {worst_repaired} and was {worst_observed}.",
    ),
    (
        "the baseline is the last class of the alphabet",
        "cannot be told",
        "The paper's ecology data are not named. Here it is Reithrodontomys.",
    ),
)


def blocks(results: Path) -> dict[str, str]:
    """Return the generated parts of the page."""
    return {
        "comparison": _comparison(results),
        "tests": _tests(results),
        "halves": _halves(results),
        "periods": _periods(results),
        "cuts": _cuts(),
        "verdicts": _verdicts(results),
    }


def _comparison(results: Path) -> str:
    header = ["1995–2002", "n", "statistic", "p", "ECE", "accuracy", "label change", "log loss"]
    rows = [
        [
            NAMES[row["set"]],
            f"{int(row['n']):,}",
            f"{float(row['statistic']):,.0f}",
            p_word(row["p"], row["p_method"]),
            f"{float(row['ece']):.3f}",
            percent(row["accuracy"]),
            percent(row["label_change"]),
            f"{float(row['log_loss']):.3f}",
        ]
        for row in read_table(results / "comparison.csv")
    ]
    return markdown(header, rows)


def _tests(results: Path) -> str:
    header = ["rows", "independent", "units", "score statistic", "p", "design effect"]
    rows = [
        [
            SETS[row["set"]],
            GROUPS[row["groups"]],
            f"{int(row['n_groups']):,}",
            f"{float(row['statistic']):,.0f}",
            p_word(row["p"], row["p_method"]),
            f"{float(row['design_effect']):.1f}",
        ]
        for row in read_table(results / "tests.csv")
    ]
    return markdown(header, rows, left=2)


def _halves(results: Path) -> str:
    rows = read_table(results / "halves.csv")
    plain, robust = column(rows, "p"), column(rows, "robust_p")
    before, after = column(rows, "log_loss"), column(rows, "log_loss_mcllo")
    return (
        f"In {len(rows)} random halves the plain test rejects the repaired predictions "
        f"{int((plain <= 0.05).sum())} times, the test by plots {int((robust <= 0.05).sum())} "
        f"times. The repair lowers the log loss of the other plots "
        f"{int((after < before).sum())} times, from {before.mean():.3f} to {after.mean():.3f} on "
        "average."
    )


def _periods(results: Path) -> str:
    header = ["1995–2002", "observed", "predicted", "after MCLLO"]
    rows = [
        [row["genus"], *(percent(row[name]) for name in ("observed", "predicted", "repaired"))]
        for row in read_table(results / "periods.csv")
        if row["period"] == "late"
    ]
    return markdown(header, rows)


def _cuts() -> str:
    header = ["fitted on", "judged on", "ECE: as predicted", "MCLLO", "temperature", "vector"]
    header += ["log loss: as predicted", "MCLLO", "temperature", "vector"]
    shown = ("uncalibrated", "mcllo", "temperature", "vector")
    rows = []
    for (early, middle), sets in _by_cut().items():
        cells = [f"{int(early) + 1}–{middle}", f"{int(middle) + 1}–2002"]
        for what in ("ece", "log_loss"):
            cells += [f"{float(sets[name][what]):.3f}" for name in shown]
        rows.append(cells)
    return markdown(header, rows, left=2)


def _by_cut() -> dict[tuple[str, str], dict[str, dict[str, str]]]:
    found: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in read_table(CUTS):
        found.setdefault((row["last_early"], row["last_middle"]), {})[row["set"]] = row
    return found


def _counts() -> dict[str, str]:
    """Return in how many cuts of the years something is true."""
    cuts = list(_by_cut().values())

    def lowest(what: str, name: str) -> str:
        true = 0
        for cut in cuts:
            values = {s: float(row[what]) for s, row in cut.items() if s != "uncalibrated"}
            true += min(values, key=values.__getitem__) == name
        return f"{true} of {len(cuts)}"

    def lowers(what: str) -> str:
        true = [float(cut["mcllo"][what]) < float(cut["uncalibrated"][what]) for cut in cuts]
        return f"{sum(true)} of {len(cuts)}"

    return {
        "lowest_ece": lowest("ece", "mcllo"),
        "lowest_statistic": lowest("statistic", "mcllo"),
        "lowest_loss": lowest("log_loss", "mcllo"),
        "vector_lowest_loss": lowest("log_loss", "vector"),
        "lowers_ece": lowers("ece"),
        "lowers_loss": lowers("log_loss"),
    }


def _verdicts(results: Path) -> str:
    methods = {row["set"]: row for row in read_table(results / "comparison.csv")}
    late = [row for row in read_table(results / "periods.csv") if row["period"] == "late"]
    worst = max(late, key=lambda row: abs(float(row["observed"]) - float(row["repaired"])))
    facts = {
        **_counts(),
        "loss_mcllo": f"{float(methods['mcllo']['log_loss']):.3f}",
        "loss_before": f"{float(methods['uncalibrated']['log_loss']):.3f}",
        "n_late": f"{int(methods['mcllo']['n']):,}",
        "worst": worst["genus"],
        "worst_repaired": percent(worst["repaired"], 0),
        "worst_observed": percent(worst["observed"], 0),
    }
    cells = [[claim, f"**{verdict}**", why.format(**facts)] for claim, verdict, why in VERDICTS]
    return markdown(["the paper says", "", "what we found"], cells, left=3)

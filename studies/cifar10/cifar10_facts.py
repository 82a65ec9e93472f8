"""The numbers that the words of the page quote, read from the committed results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from _common import column, p_word, percent, read_table


def fixed(digits: int) -> Callable[[str], str]:
    """Return a function that shows a cell with so many digits."""
    return lambda text: f"{float(text):.{digits}f}" if text else "–"


def p_or_none(text: str) -> str:
    """Return a p-value of a table, or a dash."""
    return p_word(text) or "–"


def facts_of(results: Path) -> dict[str, str]:
    """Return the numbers that the verdicts quote."""
    read = {path.stem: read_table(path) for path in sorted(results.glob("*.csv"))}
    facts = {row["claim"]: f"{row['splits']} of {row['of']}" for row in read["claims"]}
    for row in read["table2"]:
        facts |= {
            f"statistic_{row['set']}": fixed(1)(row["statistic"]),
            f"p_{row['set']}": p_word(row["p"]),
            f"ece_{row['set']}": fixed(3)(row["ece"]),
            f"accuracy_{row['set']}": percent(row["accuracy"], 2),
            f"log_loss_{row['set']}": fixed(4)(row["log_loss"]),
        }
    facts["p_corrected_mcllo"] = p_word(
        next(row["p_corrected"] for row in read["table2"] if row["set"] == "mcllo")
    )
    for row in read["logits_needed"]:
        facts[f"logs_{row['method']}"] = f"{float(row['largest_change']):.2g}"
    for row in read["identity"]:
        facts[f"moved_{row['method']}"] = fixed(4)(row["mean_change_of_top"])
    for row in read["planes"]:
        if row["class"] == row["label"]:
            numbers = {name: fixed(2)(row[name]) for name in ("before", "after", "low", "high")}
            facts |= {f"{name}_{row['image']}": text for name, text in numbers.items()}
    for row in read["ladders"]:
        facts[f"enough_{row['model']}_{row['part']}"] = p_or_none(row["larger_pvalue"])
    for row in read["classes"]:
        if row["part"] == "all":
            facts[f"share_{row['class']}"] = percent(row["predicted"], 2)
            facts[f"share_p_{row['class']}"] = p_word(row["large_adjusted"])
            facts[f"delta_{row['class']}"] = fixed(2)(row["delta"])
    for row in read["parameters"]:
        facts[f"gamma_{row['part']}_{row['class']}"] = fixed(2)(row["gamma"])
    gammas = column([row for row in read["parameters"] if row["part"] == "X_t"], "gamma")
    facts |= {"gamma_low": f"{gammas.min():.2f}", "gamma_high": f"{gammas.max():.2f}"}
    ends = {name: column(read["baselines"], name) for name in ("statistic", "largest_change")}
    facts |= {
        "statistic_low": f"{ends['statistic'].min():.0f}",
        "statistic_high": f"{ends['statistic'].max():.0f}",
        "largest_change": f"{ends['largest_change'].max():.2f}",
        "label_changes": percent(str(column(read["baselines"], "label_changes").max())),
    }
    for row in read["bins"]:
        facts |= {f"bins_{b}_{row['set']}": fixed(3)(row[b]) for b in ("5", "10", "45", "200")}
    return facts

"""*From the paper to the code*: all items are there, and whatever it names exists."""

import re
from pathlib import Path

import mcllo

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "studies" / "paper-to-code.md"
ITEMS = re.findall(
    r"^\| (\d+) \|(.*)\|(.*)\|(.*)\|(.*)\|$", PAGE.read_text(), flags=re.MULTILINE
)
NAMES = sorted(set(re.findall(r"`(mcllo\.[\w.]+)`", PAGE.read_text())))
FIGURES = {f"figure{i}" for i in range(1, 7)}
TABLES = {f"table{i}" for i in range(1, 5)}
SUPPLEMENT = {"power", "boxplots", "tradeoff", "ecology", "baseline"}
STATUSES = {"same", "ours", "reading", "derived", "claim", "in part"}


def test_all_items_are_there_in_order():
    assert [int(number) for number, *_ in ITEMS] == list(range(1, 66))


def test_each_item_has_a_function_a_place_and_a_status():
    for number, what, code, shown, status in ITEMS:
        assert what.strip(), number
        assert re.search(r"`mcllo\.\w", code), number
        assert "](" in shown or "`mcllo reproduce " in shown, number
        assert re.split(r"[:;]|(?<=same) ", status.strip())[0] in STATUSES, number


def test_names_can_be_imported():
    assert len(NAMES) > 30
    for name in NAMES:
        found = mcllo
        for part in name.split(".")[1:]:
            if part in getattr(found, "__dataclass_fields__", {}):
                break
            assert hasattr(found, part), name
            found = getattr(found, part)


def test_every_table_and_figure_has_its_command():
    commands = set(re.findall(r"`mcllo reproduce (\w+)`", PAGE.read_text()))
    assert commands - {"NAME"} == FIGURES | TABLES | SUPPLEMENT

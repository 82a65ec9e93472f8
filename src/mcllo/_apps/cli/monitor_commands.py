"""`mcllo monitor start | add | show | restart`: watch whether predictions stay calibrated.

Exit codes of add and show: 0 no alarm; 1 alarm; 3 too few rows to tell; 2 bad input.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from . import options
from .options import FLAG_NAMES, add_file_options, echo

if TYPE_CHECKING:
    from ..._monitor.monitor import Monitor
    from ..._monitor.status import MonitorStatus

EXIT_CODES = {"alarm": 1, "inconclusive": 3}

app = typer.Typer(
    name="monitor",
    help="Watch batch by batch whether predictions stay calibrated; look as often as you like.",
    epilog="Example: mcllo monitor add weekly.db batch.csv --label y --batch 2026-W46",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

DATABASE = typer.Argument(metavar="MONITOR", help="SQLite file of the monitor.")
WATCHED_MODEL = typer.Option(
    None,
    "--model",
    metavar="MODEL",
    help="Watch the recalibrated predictions of this saved model.",
)
RULE = typer.Option(
    "change",
    help="What raises the alarm: change (a detector, see --run-length) or ever (the evidence since "
    "the start, see --alpha).",
)
RUN_LENGTH = typer.Option(
    1000.0, help="Batches until a false alarm of the detector, on average at least."
)
ALPHA = typer.Option(
    0.05,
    help="Chance that the evidence is ever a false alarm, at most; and of the intervals.",
)
CLIP = typer.Option(
    None, help="What a predicted 0 stands for. Default: nothing in particular."
)
BATCH = typer.Option(..., "--batch", "-b", help="Name of the batch, as in 2026-W46.")
TIME = typer.Option(
    None, help="What time the batch is about, as text that sorts. Default: its name."
)
TEXTFILE = typer.Option(
    None,
    metavar="OUT",
    help="Also write numbers for Prometheus' textfile collector (.prom).",
)
FIGURE = typer.Option(None, metavar="FIG", help="Also draw it: svg, png, pdf or tiff.")
NEW_DATABASE = typer.Argument(metavar="NEW", help="New SQLite file.")
NEW_MODEL = typer.Option(
    None,
    "--model",
    metavar="MODEL",
    help="Watch the recalibrated predictions of this saved model. Default: the monitor's own, if "
    "it has one.",
)
BATCHES = typer.Option(False, "--batches", help="Also list every batch.")


@app.command(epilog="Example: mcllo monitor start weekly.db --classes cat,dog,truck")
def start(
    monitor: str = DATABASE,
    classes: str | None = typer.Option(
        None,
        help="The classes, as in cat,dog,truck. Default: the model's, or those of the first batch.",
    ),
    model: str | None = WATCHED_MODEL,
    rule: str = RULE,
    run_length: float = RUN_LENGTH,
    alpha: float = ALPHA,
    clip: float | None = CLIP,
) -> None:
    """Start a monitor in a new file."""
    from ..._monitor.monitor import Monitor

    options.check_between_0_and_1(alpha, "--alpha")
    settings: dict[str, Any] = {"rule": rule, "run_length": run_length, "alpha": alpha}
    names = options.split_names(classes)
    Monitor.start(monitor, classes=names, model=model, clip=clip, **settings).close()
    echo(f"{monitor}: monitor started")


@app.command(
    epilog="Example: mcllo monitor add weekly.db batch.csv --label y --batch 2026-W46"
)
@add_file_options("groups", "prefix", "normalize", "logits")
def add(
    monitor: str = DATABASE,
    file: str = options.FILE,
    label: str = options.LABEL,
    batch: str = BATCH,
    time: str | None = TIME,
    *,
    reading: Any,
    as_json: bool = options.JSON,
    textfile: str | None = TEXTFILE,
) -> None:
    """Add a batch of predictions whose labels have arrived, and say what the monitor says."""
    from ..._monitor.monitor import Monitor

    with Monitor.open(monitor) as opened:
        status = opened.add_file(file, label=label, batch=batch, time=time, **reading)
        if status.already:
            echo(
                f"mcllo: note: {batch} was there already; nothing was added.", err=True
            )
        _print_status(opened, status, as_json, textfile)
    raise typer.Exit(EXIT_CODES.get(status.kind, 0))


@app.command(epilog="Example: mcllo monitor show weekly.db --html weekly.html")
def show(
    monitor: str = DATABASE,
    batches: bool = BATCHES,
    as_json: bool = options.JSON,
    html: str | None = typer.Option(
        None, metavar="OUT", help="Also write a report: .html or .md."
    ),
    figure: str | None = FIGURE,
    textfile: str | None = TEXTFILE,
    raw: bool = typer.Option(
        False,
        "--raw",
        help="Print as JSON what is readable of a damaged file, and nothing else.",
    ),
) -> None:
    """Say what the monitor says after its last batch."""
    if raw:
        _print_what_is_left(monitor)
        return
    from ..._monitor.monitor import Monitor

    with Monitor.open(monitor) as opened:
        status = opened.status()
        _print_status(opened, status, as_json, textfile, batches=batches)
        if figure is not None:
            from ... import plot

            plot.save(plot.monitor(opened), figure)
        if html is not None:
            from ..report.monitor_report import write_monitor_report

            write_monitor_report(opened, html, names=FLAG_NAMES)
            echo(f"{html}: report written", err=True)
    raise typer.Exit(EXIT_CODES.get(status.kind, 0))


def _print_what_is_left(monitor: str) -> None:
    """Print what is readable; damage is bad input here, too."""
    from ..._monitor.store import read_what_is_left
    from ...exceptions import FileFormatError

    found = read_what_is_left(monitor)
    echo(options.as_json_text(found))
    if found["damage"]:
        n_batches = len(found["batches"])
        raise FileFormatError(
            f"{monitor} is damaged; what is left of it is printed, {n_batches} batches.",
            remedy="Go on with its last copy.",
        )


@app.command(
    epilog="Example: mcllo monitor restart weekly.db weekly-2.db --model model.json"
)
def restart(
    monitor: str = DATABASE,
    new: str = NEW_DATABASE,
    model: str | None = NEW_MODEL,
) -> None:
    """Acknowledge an alarm: start a new monitor with the settings of one that stays as it is."""
    from ..._monitor.monitor import Monitor

    with Monitor.open(monitor) as opened:
        opened.restart(new, model=model).close()
    echo(f"{new}: monitor started, with the settings of {monitor}")


def _print_status(
    monitor: Monitor,
    status: MonitorStatus,
    as_json: bool,
    out: str | None,
    batches: bool = False,
) -> None:
    """Print the status, and write it for Prometheus where asked."""
    from ..._monitor.history import prometheus_textfile
    from ..._utils.atomic_files import write_text

    content = status.to_dict()
    if batches:
        content["batches"] = monitor.history().rows()
    echo(options.as_json_text(content) if as_json else status.text(FLAG_NAMES))
    if batches and not as_json:
        echo(f"\n{monitor.history()}")
    if out is not None:
        write_text(out, prometheus_textfile(status, Path(monitor.path).stem))

"""What the package does without its extras: a program, and what it must say.

It is run in an empty environment (tests/test_wheels.py), and with ``--hide`` in one that has the
extras' packages, none of which can be imported then (tests/public/test_extras.py). It prints what
it found as JSON.
"""

import json
import sys
import tempfile
from importlib.machinery import PathFinder
from pathlib import Path

HIDDEN = (
    *("matplotlib", "pyarrow", "typer", "rich", "jinja2", "markupsafe"),
    *("starlette", "uvicorn", "python_multipart", "openpyxl", "onnx", "sqlglot"),
)


def sentence(package, extra, use="this"):
    """Return what is said when a package is missing."""
    return (
        f"{use} needs the package {package}, which is not installed. "
        f"Install it with: pip install 'mcllo[{extra}]'."
    )


COMMAND = "mcllo: " + sentence("typer", "cli", "the command") + "\n"
REFUSED = {
    "import mcllo.plot": ("matplotlib", "plot"),
    "mcllo.plot.reliability(a)": ("matplotlib", "plot"),
    "mcllo.reproduce.table1": ("matplotlib", "plot"),
    "mcllo.report(a)": ("matplotlib", "cli"),
    "mcllo.read_predictions(csv, label='y')": ("pyarrow", "cli"),
    "cal.fit_.parameters().to_arrow()": ("pyarrow", "cli"),
    "cal.export('onnx')": ("onnx", "onnx"),
    "cal.export('sql')": ("sqlglot", "sql"),
}
"""What needs an extra: the first package that is missing, and the extra that brings it."""


def check_said(found):
    """Check what the program printed."""
    assert found["heading"] == "Calibration of 600 predictions of 3 classes"
    assert found["methods"] >= 3
    assert found["farthest after loading"] == 0.0
    assert found["farthest in plain Python"] < 1e-9
    assert found["card"].startswith(
        "<pre>Calibration of 600 predictions of 3 classes\n"
    )
    assert found["table"].startswith("<pre>")
    assert found["model"].startswith("<pre>")
    assert found["refused"] == {
        call: [sentence(package, extra), True]
        for call, (package, extra) in REFUSED.items()
    }


class HidingFinder(PathFinder):
    """Finds all packages but those; None in ``sys.modules`` would mislead scikit-learn."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """Return nothing for a hidden package."""
        return (
            None
            if name.split(".")[0] in HIDDEN
            else super().find_spec(name, path, target)
        )


def main():
    """Use the package, and print what was found."""
    if "--hide" in sys.argv:
        sys.meta_path[:] = [
            HidingFinder if each is PathFinder else each for each in sys.meta_path
        ]
    import numpy as np

    import mcllo

    rng = np.random.default_rng(0)
    true = rng.dirichlet([2, 2, 2], 600)
    y = np.array(["cat", "dog", "owl"])[(rng.random((600, 1)) > true.cumsum(1)).sum(1)]
    probs = true**2 / (true**2).sum(1, keepdims=True)
    classes = ["cat", "dog", "owl"]
    a = mcllo.assess(probs, y, classes=classes, seed=0)
    compared = mcllo.compare((probs[:300], y[:300]), (probs[300:], y[300:]), seed=0)
    cal = mcllo.MCLLOCalibrator().fit(probs, y)
    with tempfile.TemporaryDirectory() as folder:
        csv, model = Path(folder) / "p.csv", Path(folder) / "model.json"
        csv.write_text("a,b,y\n" + "0.3,0.7,b\n0.6,0.4,a\n" * 60)
        cal.save(model)
        loaded = mcllo.load_calibrator(model)
        program = {}
        exec(cal.export("python"), program)
        predicted = cal.predict_proba(probs)
        found = {
            "heading": str(a).splitlines()[0],
            "methods": len(compared.table),
            "card": a._repr_html_(),
            "table": cal.fit_.parameters()._repr_html_(),
            "model": cal.fit_._repr_html_(),
            "farthest after loading": float(
                np.abs(loaded.predict_proba(probs) - predicted).max()
            ),
            "farthest in plain Python": float(
                np.abs(
                    np.array(program["predict_proba"](probs.tolist())) - predicted
                ).max()
            ),
            "refused": {},
        }
        names = {"mcllo": mcllo, "a": a, "cal": cal, "csv": csv}
        for call in REFUSED:
            try:
                exec(call, dict(names))
            except mcllo.exceptions.InputError as error:
                found["refused"][call] = [str(error), isinstance(error, ImportError)]
    assert not set(HIDDEN) & set(sys.modules)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

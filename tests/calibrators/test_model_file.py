"""A model file is checked whole: whatever a fuzzer or an editor did to it, one clear sentence.

The schema, the page and the files say the same.
"""

import copy
import json
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import data
import jsonschema
import numpy as np
import pytest

import mcllo
from mcllo._utils.statements import suppress_warnings
from mcllo.calibrators._model_file import (
    CHECKS,
    MAP_NUMBERS,
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MAX_NUMBER,
    content_checksum,
    model_document,
    training_summary,
)
from mcllo.exceptions import FileFormatError, InputError

CLASSES = ["a", "b", "c"]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "model-file.md").read_text()
SCHEMA = json.loads(
    resources.files("mcllo.calibrators").joinpath("model.schema.json").read_text()
)
OLD = json.loads((ROOT / "tests" / "reference" / "models.json").read_text())
VALID = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture(scope="module")
def files():
    X, y = data.drawn(80, CLASSES, 3, power=1.5)
    made = {}
    for name, make in mcllo.CALIBRATORS.items():
        calibrator = make() if name != "matrix" else make(penalty=1.0)
        given = np.log(X) if calibrator.input == "logits" else X
        made[name] = model_document(calibrator.fit(given, y), covariance=False)
    return made


@pytest.fixture(scope="module")
def with_prior():
    # a fit that uses every field of class frequencies: a removed class, new rows without labels
    X, _ = data.drawn(80, CLASSES, 3, power=1.5)
    y = [CLASSES[k] for k in X[:, :2].argmax(axis=1)]
    made = {}
    for name in ("mcllo", "auto", "temperature"):
        for prior in ("keep", "unlabelled", (0.2, 0.5, 0.3)):
            options = {"penalty": 1.0} if name == "mcllo" else {}
            with suppress_warnings():
                fitted = mcllo.CALIBRATORS[name](
                    prior=prior, classes=CLASSES, **options
                ).fit(X, y)
            if prior == "unlabelled" and name != "temperature":
                with suppress_warnings():
                    fitted.adapt(X[:40])
            made[name, prior] = model_document(fitted, covariance=False)
    return made


def loaded(content, path):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return mcllo.load_calibrator(path)


def refusal(content, path):
    """Return the sentence with which a file is refused, or nothing."""
    try:
        loaded(content, path)
    except FileFormatError as error:
        return str(error)
    return ""


def changed(content, path, value):
    """Return a copy with another value at a path, and no checksum to give it away."""
    content = copy.deepcopy(content)
    content.pop("checksum")
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return content


# (method, where, what, the sentence): hand-made after findings F6 a-d
BROKEN = [
    (
        "mcllo",
        ("state", "gamma", 0),
        1e308,
        r"state.gamma\[0\] must be at most 1e\+100 in size",
    ),
    (
        "mcllo",
        ("state", "gamma", 0),
        10**400,
        r"state.gamma\[0\] must be a finite number",
    ),
    (
        "mcllo",
        ("state", "n_samples"),
        10**400,
        "state.n_samples must be a finite number",
    ),
    (
        "mcllo",
        ("state", "classes"),
        ["b", "a", "c"],
        "classes and state.classes must be the same",
    ),
    (
        "mcllo",
        ("state", "tau"),
        [0.0],
        "tau and gamma must have a value for each class but one",
    ),
    ("mcllo", ("state", "baseline"), "zebra", "baseline must be a class"),
    ("temperature", ("classes",), [], "classes must name 2 to 100,000 classes"),
    (
        "temperature",
        ("classes",),
        ["a", "a", "b"],
        "classes must differ from each other",
    ),
    (
        "temperature",
        ("classes",),
        ["a", ["b"], "c"],
        "classes must be texts or numbers",
    ),
    ("temperature", ("classes",), "abc", "classes must be a JSON list"),
    ("temperature", ("state", "inverse_temperature"), -1e200, "at most 1e.100 in size"),
    ("histogram", ("state", "edges", 0), [0.1, 0.2], "one number more than edges"),
    ("histogram", ("state", "edges", 0, 0), 0.9, "edges must rise"),
    ("histogram", ("state", "table", 1, 0), 7.0, r"table must lie in \[0, 1\]"),
    ("isotonic", ("state", "knots", 0, 0, 0), 0.99, "knots must rise"),
    ("isotonic", ("state", "knots", 0, 1), [], "a value for each place"),
    ("isotonic", ("state", "knots", 0, 1, 0), -0.5, r"knots must lie in \[0, 1\]"),
    ("isotonic", ("state", "absent"), [7], "absent must name some columns"),
    ("beta", ("state", "coef"), [[1.0, 1.0, 0.0]], "three numbers for each class"),
    ("auto", ("state", "weights", "identity"), 5.0, "weights must sum to 1"),
    ("auto", ("state", "weights", "identity"), -0.5, "weights must not be negative"),
    ("auto", ("state", "members", "soft", "slip"), 0.0, "slip must be positive"),
    (
        "auto",
        ("state", "members", "maps", "mcllo", 0, 0),
        1e150,
        "at most 1e.100 in size",
    ),
    ("vector", ("state", "intercept"), [0.0], "a number for each class"),
    ("xu_davoine", ("state", "low"), [0.1], "as many ends"),
    ("matrix", ("state", "coef"), [[1.0, 0.0], [0.0, 1.0]], "damaged"),
    ("mcllo", ("state", "learned"), "x", "learned must be a JSON object or null"),
    ("mcllo", ("state", "learned", "weight"), None, "weight must be a positive number"),
    (
        "mcllo",
        ("state", "learned", "offset", 0),
        "NaN",
        "offset must be a list of 3 numbers",
    ),
    ("mcllo", ("state", "learned", "kept"), [0, 3], "kept must name some columns"),
    ("mcllo", ("state", "learned", "kept"), [0, 1, 2], "kept must name some columns"),
    (
        "temperature",
        ("state", "learned", "reference"),
        [0.5, 0.5, 0.0],
        "must be positive",
    ),
    (
        "temperature",
        ("state", "learned", "reference"),
        [0.5, 0.5],
        "a list of 3 numbers",
    ),
    (
        "temperature",
        ("state", "learned", "predicted"),
        [1.5, -0.5, 0.0],
        "must not be negative",
    ),
    (
        "temperature",
        ("state", "learned", "variances", 0),
        2.0,
        r"variances must lie in \[0, 1\]",
    ),
    (
        "temperature",
        ("state", "new_shares"),
        [],
        "new_shares must be a JSON object or null",
    ),
    (
        "auto",
        ("state", "members", "similar", "shared"),
        [0.0] * 4,
        "a list of 5 numbers",
    ),
    (
        "auto",
        ("state", "members", "similar", "intercept", 0),
        None,
        "a list of 3 numbers",
    ),
    ("auto", ("state", "members", "similar", "similarity", 0, 1), 7.0, "must sum to 1"),
    (
        "auto",
        ("state", "members", "similar", "similarity", 0),
        [1.0, 0.0, 0.0],
        "and itself",
    ),
    ("auto", ("state", "members", "similar", "similarity"), [], "a row for each class"),
    ("auto", ("state", "members", "similar"), None, "weights of other members"),
]


def test_what_does_not_fit_is_refused_with_its_place(files, tmp_path):
    for method, content in files.items():
        assert refusal(content, tmp_path / "m.json") == "", method
    for method, where, value, sentence in BROKEN:
        said = refusal(changed(files[method], where, value), tmp_path / "m.json")
        assert re.search(sentence, said), (method, where, value, said)
    assert {method for method, *_ in BROKEN} >= set(CHECKS) - {
        "dirichlet",
        "choice_sets",
    }


NEW_SHARES = [
    (("shares", 0), 5.0, "shares must sum to 1"),
    (("shares",), [1.0], "shares must be a list of 3 numbers"),
    (("se", 0), -1.0, "se must not be negative"),
    (("n_samples",), 0.5, "n_samples must be a whole number"),
]


def test_new_shares_are_checked(with_prior, tmp_path):
    content = with_prior["mcllo", "unlabelled"]
    assert content["state"]["learned"]["kept"] == [2]
    for where, value, sentence in NEW_SHARES:
        other = changed(content, ("state", "new_shares", *where), value)
        assert sentence in refusal(other, tmp_path / "m.json"), where


def test_class_frequencies_hide_no_missing_number(with_prior, tmp_path):
    # rows whose sum is 0 stay as they are; those that are no numbers do not pass for them
    places = {"mcllo": ("tau", 0), "temperature": ("inverse_temperature",)}
    for (method, prior), content in with_prior.items():
        if method in places:
            other = changed(content, ("state", *places[method]), "NaN")
            assert "damaged" in refusal(other, tmp_path / "m.json"), (method, prior)
    gone = changed(with_prior["temperature", "keep"], ("state", "learned"), None)
    assert "a fit to rows in memory knows of them" in refusal(gone, tmp_path / "m.json")


def places(value, path):
    """Yield where numbers stand."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from places(item, (*path, k))
    elif isinstance(value, float):
        yield path


def test_no_number_of_a_map_may_be_huge(files, tmp_path):
    for method, content in files.items():
        state = content["state"]
        found = [
            p for name in MAP_NUMBERS for p in places(state.get(name), ("state", name))
        ]
        assert found or method == "identity"
        for path in found[:: max(1, len(found) // 10)]:
            for value in (2.0 * MAX_NUMBER, -1e308):
                other = changed(content, path, value)
                assert refusal(other, tmp_path / "m.json"), (method, path, value)


def stretched(value):
    """Return numbers as large as they may be, of the same signs."""
    if isinstance(value, dict):
        return {key: stretched(item) for key, item in value.items()}
    if isinstance(value, list):
        return [stretched(item) for item in value]
    return float(np.sign(value)) * MAX_NUMBER


@pytest.mark.parametrize("method", ["mcllo", "temperature", "vector", "matrix", "auto"])
def test_the_largest_numbers_still_give_probabilities(method, files, tmp_path):
    # the argument of the module's card, tried at its bounds
    content = copy.deepcopy(files[method])
    content.pop("checksum")
    state = content["state"]
    names = ("tau", "gamma", "coef", "intercept", "inverse_temperature")
    for name in (name for name in names if name in state):
        state[name] = stretched(state[name])
    if method == "auto":
        members = state["members"]
        members["maps"] = stretched(members["maps"])
        for name in ("shared", "intercept"):
            members["similar"][name] = stretched(members["similar"][name])
    calibrator = loaded(content, tmp_path / "m.json")
    rows = np.array([[1e100, -1e100, 0.0], [0.0, 0.0, 0.0], [-1e100, 1e-300, 1e100]])
    if calibrator.input == "probs":
        rows = np.array([[1.0, 0.0, 0.0], [1e-300, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]])
    with np.errstate(all="ignore"):
        found = calibrator.predict_proba(rows)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_what_is_hardly_json(tmp_path):
    digits = '{"format": "mcllo calibrator", "x": ' + "9" * 5000 + "}"
    for text in (digits, "[" * 100_000, "\x00"):
        assert "it is not JSON" in refusal(text, tmp_path / "m.json"), text[:50]


def test_depth_is_limited(files, tmp_path):
    deep = 0.5
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    other = changed(files["temperature"], ("state", "extra"), deep)
    assert "nested deeper" in refusal(other, tmp_path / "m.json")


@pytest.mark.slow
def test_size_is_limited(tmp_path):
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)  # takes no room on a disk
    with pytest.raises(FileFormatError, match="larger"):
        mcllo.load_calibrator(tmp_path / "large.json")


def test_numbers_are_finite(files, tmp_path):
    content = changed(
        files["temperature"], ("state", "inverse_temperature"), 0.123456789
    )
    for number in ("NaN", "Infinity", "-Infinity", "1e999"):
        text = json.dumps(content).replace("0.123456789", number)
        assert "must be a finite number" in refusal(text, tmp_path / "m.json"), number


def test_a_changed_file_is_noticed(files, tmp_path):
    content = copy.deepcopy(files["temperature"])
    assert loaded(content, tmp_path / "m.json").inverse_temperature_ > 0.0
    content["state"]["inverse_temperature"] *= 1.0 + 1e-15
    with pytest.raises(FileFormatError, match="has changed since it was saved"):
        loaded(content, tmp_path / "m.json")
    del content["checksum"]  # whoever means it says so
    loaded(content, tmp_path / "m.json")


def test_formatting_does_not_matter(files, tmp_path):
    content = dict(reversed(files["mcllo"].items()))
    assert content_checksum(content) == files["mcllo"]["checksum"]
    loaded(json.dumps(content, indent=7, ensure_ascii=False), tmp_path / "m.json")


def test_training_rows_are_told_apart():
    X, y = data.drawn(50, CLASSES, 3)
    rows = mcllo.Predictions.from_arrays(X, y)
    first = training_summary(rows)
    assert first["n_samples"] == 50
    assert first == training_summary(mcllo.Predictions.from_arrays(X.copy(), y))
    other = X.copy()
    other[7] = other[7][::-1]
    assert first != training_summary(mcllo.Predictions.from_arrays(other, y))
    assert first != training_summary(mcllo.Predictions.from_arrays(X, y[::-1]))
    weighted = mcllo.Predictions.from_arrays(X, y, sample_weight=np.full(50, 2.0))
    assert first != training_summary(weighted)


def test_a_loaded_model_still_knows_its_rows(tmp_path):
    X, y = data.drawn(50, CLASSES, 3)
    fitted = mcllo.MCLLOCalibrator().fit(X, y)
    fitted.save(tmp_path / "m.json")
    again = mcllo.load_calibrator(tmp_path / "m.json")
    assert (
        again.training_
        == fitted.training_
        == training_summary(mcllo.Predictions.from_arrays(X, y))
    )


def test_the_covariance_is_left_out_unless_asked(tmp_path):
    X, y = data.drawn(200, [f"c{k}" for k in range(20)], 3)
    fitted = mcllo.MCLLOCalibrator(penalty=1.0).fit(X, y)
    small, whole = tmp_path / "small.json", tmp_path / "whole.json"
    fitted.save(small)
    fitted.save(whole, covariance=True)
    assert 5 * small.stat().st_size < whole.stat().st_size
    loaded, full = (mcllo.load_calibrator(path).fit_ for path in (small, whole))
    np.testing.assert_array_equal(loaded.se_tau, fitted.fit_.se_tau)
    np.testing.assert_array_equal(loaded.se_gamma, fitted.fit_.se_gamma)
    assert loaded.parameters().to_dict() == full.parameters().to_dict()
    assert loaded.information == "errors"
    full.recalibrate(X[:3], interval=0.9)
    with pytest.raises(InputError, match="a file that leaves it out"):
        loaded.recalibrate(X[:3], interval=0.9)
    given = loaded.recalibrate(X[:3], interval=0.9, covariance=full.cov_theta)
    np.testing.assert_array_equal(given.low, full.recalibrate(X[:3], interval=0.9).low)


HOSTILE = [
    None,
    True,
    [],
    {},
    "x",
    "",
    -1,
    0,
    1e308,
    -1e308,
    5e-324,
    10**400,
    [1.0],
    "NaN",
]


def mutant(content, rng):
    """Return a document with one thing changed, taken away, doubled or put elsewhere."""
    content = copy.deepcopy(content)
    content.pop("checksum")
    place = content if rng.random() < 0.2 else content["state"]
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return content
        key = keys[rng.integers(len(keys))]
        if isinstance(place[key], (dict, list)) and rng.random() < 0.7:
            place = place[key]
            continue
        kind = rng.integers(4)
        if kind == 0:
            del place[key]
        elif kind == 1 and isinstance(place, list):
            place.insert(key, place[key])
        elif kind == 2 and isinstance(place[key], float):
            place[key] *= float(rng.choice([-1.0, 1e90, 1e-300, 1e300]))
        else:
            place[key] = HOSTILE[rng.integers(len(HOSTILE))]
        return content


@pytest.mark.slow
def test_mutants_are_refused_or_give_probabilities(files, with_prior, tmp_path):
    for method, content in files.items():
        tried(content, np.random.default_rng(len(method)), tmp_path, 150)
    for (method, _), content in with_prior.items():
        tried(content, np.random.default_rng(len(method)), tmp_path, 60)


def tried(content, rng, tmp_path, n_mutants):
    """Hold mutants of a document to it."""
    rows = rng.dirichlet(np.ones(3) * 0.2, size=40)
    rows[:3] = (
        np.eye(3) + 1e-12
    )  # positive: a mutant may ask for clip=0, which refuses zeros
    refused = 0
    for _ in range(n_mutants):
        other = mutant(content, rng)
        try:
            calibrator = loaded(other, tmp_path / "m.json")
        except FileFormatError:
            refused += 1
            continue
        if calibrator.n_features_in_ != 3:
            continue  # a class was taken away from a map that has no number of its own for it
        given = rows if calibrator.input == "probs" else 1e3 * (rows - 0.5)
        with suppress_warnings(), np.errstate(all="ignore"):
            found = calibrator.predict_proba(given)
            calibrator.save(tmp_path / "again.json")
        assert np.isfinite(found).all(), other["state"]
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-6)
    assert refused >= 5


# ---- the schema and the page


def test_the_schema_is_one_and_files_keep_to_it(files, with_prior):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    # that of choice sets is no calibrator of classes: tests/calibrators/test_choice_calibrator.py
    known = {*mcllo.CALIBRATORS, mcllo.ChoiceCalibrator.method}
    assert set(SCHEMA["properties"]["method"]["enum"]) == known
    for method in mcllo.CALIBRATORS:
        VALID.validate(files[method])
        VALID.validate(OLD[method]["file"])
    for content in with_prior.values():
        VALID.validate(content)


@pytest.mark.parametrize(
    "options", [{"baseline": "all", "penalty": 1.0}, {"gate": 0.05}]
)
def test_other_states_keep_to_it_too(options, tmp_path):
    X, y = data.drawn(80, CLASSES, 3)
    mcllo.MCLLOCalibrator(**options).fit(X, y).save(
        tmp_path / "m.json", covariance=True
    )
    VALID.validate(json.loads((tmp_path / "m.json").read_text()))


WRONG_TYPES = [
    ("temperature", ("classes",), []),
    ("temperature", ("classes",), ["a", ["b"], "c"]),
    ("histogram", ("state", "table", 1, 0), 7.0),
    ("beta", ("state", "coef"), [[1.0, 1.0]] * 3),
]


def test_what_breaks_a_type_breaks_the_schema(files):
    for method, where, value in WRONG_TYPES:
        content = changed(files[method], where, value)
        content["checksum"] = content_checksum(content)
        assert not VALID.is_valid(content), (method, where)
    without = dict(files["mcllo"])
    del without["checksum"]  # a new file needs it
    assert not VALID.is_valid(without)


def test_the_page_and_the_schema_name_every_field(files, with_prior):
    rules = [rule for rule in SCHEMA["allOf"] if "method" in rule["if"]["properties"]]
    states = {
        rule["if"]["properties"]["method"]["const"]: rule["then"]["properties"]["state"]
        for rule in rules
    }
    for method, content in files.items():
        state = states[method]
        known = set().union(
            *(s.get("properties", {}) for s in state.get("anyOf", [state]))
        )
        assert set(content["state"]) <= known, method
        assert f"`{method}`" in PAGE
        for name in [*content, *content["state"]]:
            assert f"`{name}`" in PAGE or f"`state.{name}`" in PAGE, name
    for content in with_prior.values():
        for name in content["state"]["learned"]:
            assert f"`learned.{name}`" in PAGE, name
        for name in content["state"]["new_shares"] or ():
            assert f"`{name}`" in PAGE or f"`new_shares.{name}`" in PAGE, name


@pytest.mark.slow
def test_the_ten_lines_of_javascript_are_right(files, tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    text = re.search(r"```javascript\n(.*?)```", PAGE, flags=re.DOTALL)[1]
    (tmp_path / "temperature.mjs").write_text(text)
    content, row = files["temperature"], [0.75, 0.25, 0.0]
    (tmp_path / "run.mjs").write_text(
        'import { temperature } from "./temperature.mjs";\n'
        f"console.log(JSON.stringify(temperature({json.dumps(content)}, {row})));"
    )
    done = subprocess.run(
        [node, str(tmp_path / "run.mjs")], capture_output=True, text=True, check=True
    )
    expected = loaded(content, tmp_path / "m.json").predict_proba([row])[0]
    # the page leaves out that a raised row is divided by its sum: softmax forgets a common factor
    assert json.loads(done.stdout) == pytest.approx(expected.tolist(), abs=1e-15)

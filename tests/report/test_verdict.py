"""`_report.verdict`: the first screen says what was found and no more."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from approval import check_text, sections
from report_data import PETS, calm, compared, grouped, overconfident, predictions, separated

import mcllo
from mcllo._inference.likelihood_tests import NAMES, WAYS
from mcllo._inference.pvalue import Ground, Reason
from mcllo._report.verdict import (
    alerts_and_notes,
    data_facts,
    expected_metrics,
    headline_facts,
    how_tested,
    next_steps,
    reproduce_facts,
    room_left,
    seed_of,
    source_fact,
    sources,
    verdict_of,
)
from mcllo._version import __version__


def wave():
    """Two classes whose truth waves around the prediction: no shift, no slope (docs of omnibus)."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.1, 0.9, size=2000)
    truth = x + 0.08 * np.cos(4 * np.pi * (x - 0.5) / 0.8)
    y = (rng.random(2000) < truth).astype(int)
    return mcllo.assess(np.column_stack([1 - x, x]), y, seed=0, n_resamples=199)


def with_test(a, **changes):
    return replace(a, test=replace(a.test, **changes))


def test_expected_metrics_of_one_row_by_hand():
    # accuracy max(.7, .3) = .7; log loss -(.7 ln .7 + .3 ln .3) = .61086; Brier 1 - .49 - .09 = .42
    p = mcllo.Predictions.from_arrays([[0.7, 0.3], [0.7, 0.3]], [0, 1])
    assert expected_metrics(p) == pytest.approx(
        {"accuracy": 0.7, "log_loss": 0.6108643, "brier": 0.42}
    )


def test_expected_metrics_weigh_rows():
    p = mcllo.Predictions.from_arrays([[0.9, 0.1], [0.5, 0.5]], [0, 1], sample_weight=[3, 1])
    assert expected_metrics(p)["accuracy"] == pytest.approx((3 * 0.9 + 0.5) / 4)


def test_expected_metrics_are_the_mean_over_simulated_labels():
    p = predictions(4000, PETS, seed=3)
    expected = expected_metrics(p)
    # Labels were drawn from these probabilities: 4000 rows leave an error of about 0.01.
    assert mcllo.metrics.log_loss(None, p) == pytest.approx(expected["log_loss"], abs=0.03)
    assert mcllo.metrics.brier_score(None, p) == pytest.approx(expected["brier"], abs=0.03)


def unknown():
    return with_test(calm(), pvalue=math.nan, statistic=math.nan)


def refuted():
    """One label had probability 0."""
    probs = predictions(60, PETS).probs.copy()
    probs[0] = [0.0, 0.5, 0.5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mcllo.assess(probs, ["cat"] + list(PETS) * 19 + ["dog", "dog"], classes=PETS, seed=0)


def clipped():
    """A floor that raised more than zeros."""
    facts = {"clip": 0.01, "n_zeros": 1, "n_clipped": 5, "n_clipped_true": 2}
    return replace(calm(), predictions=replace(calm().predictions, **facts))


def weighted(n, **options):
    rows = predictions(n, PETS, 1.2)
    weight = np.linspace(0.5, 3.0, n)
    return mcllo.assess(
        rows.probs, rows.codes, sample_weight=weight, seed=0, n_resamples=99, **options
    )


def simulated(pvalue):
    changes = {"method": "exact", "n_resamples": 199, "reason": "zeros were raised"}
    return with_test(calm(), pvalue=pvalue, **changes)


CARDS = {
    "rejected": overconfident,
    "not rejected": calm,
    "only an omnibus test rejects": wave,
    "no statistic": unknown,
    "groups": grouped,
    "survey weights": lambda: weighted(200, weight_kind="survey"),
    "fractional weights": lambda: weighted(60),
    "a baseline chosen by the labels": lambda: mcllo.assess(
        predictions(600, PETS, 2.0), baseline="auto", seed=0, n_resamples=99
    ),
    "simulated": lambda: simulated(0.04),
    "simulated, no smaller p-value": lambda: simulated(0.005),
    "a bound": lambda: with_test(calm(), method="bound", pvalue=2e-20, reason="zeros were raised"),
    "as asked": lambda: with_test(calm(), reason="as asked", why=Reason(Ground.ASKED)),
    "no reason": lambda: with_test(calm(), reason=""),
    "separated": separated,
    "separated and rejected": lambda: with_test(separated(), pvalue=0.001),
    "a label of probability 0": refuted,
    "a label below a floor": clipped,
}


def card(a):
    """Everything that the first screen says."""
    said = a.statements()
    v, (alerts, notes) = verdict_of(a, said), alerts_and_notes(a, said)
    lines = [f"{v.status}: {v.headline} {v.sentence}", f"{v.pvalue}. {v.how}. {v.why}"]
    lines += [f"alert: {alert}" for alert in alerts] + [f"note: {note}" for note in notes]
    for step in next_steps(a, v.status):
        lines += [f"step: {step.text}", *(f"    {line}" for line in step.code.splitlines())]
    return "\n".join(lines)


def test_first_screens(approve):
    cards = {name: card(make()) for name, make in CARDS.items()}
    check_text("first_screens.txt", sections(cards), approve)


def test_every_way_and_every_statistic_has_words():
    test = calm().test
    for method in ("chi2", "exact", *WAYS):
        for kind in NAMES:
            text = how_tested(replace(test, method=method, kind=kind, n_resamples=9))
            assert NAMES[kind].lower() in text.lower()
            assert method == "exact" or "simulated" not in text
    assert "by new" in how_tested(replace(test, method="new"))
    assert "times the number of baselines" in how_tested(replace(test, method="bonferroni"))
    assert "from the F distribution" in how_tested(replace(test, method="f"))


def test_room_left_is_the_hull_of_the_slope_intervals():
    a = calm()
    low, high = a.fit.confidence_interval().gamma.min(), a.fit.confidence_interval().gamma.max()
    assert f"between {low:.2f} and {high:.2f}" in room_left(a.fit)
    assert "do not determine the slopes" in room_left(separated().fit)


def test_headline_facts_show_the_null_range():
    a = overconfident()
    facts = {fact.key: fact for fact in headline_facts(a)}
    assert facts["accuracy"].value == "60.0 %"  # 360 of 600 rows
    null = a.nulls["ece"]
    assert facts["ece"].note == f"{null.low:.4f} to {null.high:.4f} if calibrated"
    bare = headline_facts(replace(a, nulls={}))
    assert {fact.key: fact.note for fact in bare}["ece"] == ""


def changed():
    """Rows that do not sum to 1, some with a 0 of the class that came true, in parts of rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mcllo.assess(
            [[0.0, 0.5, 0.49], [0.3, 0.3, 0.39], [0.2, 0.4, 0.39]] * 4,
            ["a", "b", "c"] * 4,
            classes=list("abc"),
            normalize=True,
            sample_weight=[0.5, 1.0, 2.0] * 4,
            seed=0,
        )


FACTS = {
    "an assessment": lambda: (overconfident(), None),
    "groups": lambda: (grouped(), None),
    "survey weights": lambda: (weighted(200, weight_kind="survey"), None),
    "zeros, sums and weights": lambda: (changed(), None),
    "separated": lambda: (separated(), None),
    "a comparison": lambda: (calm(), compared()),
    "a comparison by folds": lambda: (calm(), replace(compared(), cross_validated=True)),
}


def test_facts_of_the_data(approve):
    lines = {
        name: "\n".join(
            f"{fact.name}: {fact.value}{f' ({fact.note})' * bool(fact.note)}"
            for fact in data_facts(*make())
        )
        for name, make in FACTS.items()
    }
    check_text("data_facts.txt", sections(lines), approve)


def by_key(facts):
    return {fact.key: fact for fact in facts}


def test_checksum_of_known_bytes(tmp_path):
    # SHA-256 of "abc": FIPS 180-2, appendix B.1
    path = tmp_path / "rows.csv"
    path.write_bytes(b"abc")
    fact = source_fact(str(path))
    assert fact.value == "rows.csv"
    assert fact.note == ("SHA-256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")


def test_what_is_no_file_has_no_checksum(tmp_path):
    assert source_fact("-").note == "not a file: no checksum"
    assert source_fact(str(tmp_path)).note == "not a file: no checksum"


def test_sources_are_one_or_several(tmp_path):
    assert sources(None) == []
    assert sources("a.csv") == ["a.csv"]
    assert sources([tmp_path, "b.csv"]) == [str(tmp_path), "b.csv"]


def test_rarest_and_commonest_class_by_hand():
    p = mcllo.Predictions.from_arrays([[0.5, 0.3, 0.2]] * 5, list("aabba"), classes=list("abc"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        facts = by_key(data_facts(mcllo.assess(p, seed=0, n_resamples=19), None))
    assert (facts["commonest"].value, facts["commonest"].note) == ("a", "3 rows, 60.0 %")
    assert (facts["rarest"].value, facts["rarest"].note) == ("c", "0 rows, 0.0 %")
    assert facts["absent"].value == "c"


def test_reproduce(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x")
    facts = reproduce_facts(overconfident(), None, ["mcllo", "assess", "my rows.csv"], path)
    found = by_key(facts)
    assert found["version"].value == f"mcllo {__version__}"
    assert found["command"].value == "mcllo assess 'my rows.csv'"
    assert found["seed"].value == "0"
    assert "SHA-256" in found["source"].note


def test_without_a_command_the_call_is_shown():
    call = by_key(reproduce_facts(overconfident(), None, None, None))["command"].value
    assert call == "mcllo.assess(probs, y, baseline='truck', seed=0)"
    call = by_key(reproduce_facts(calm(), compared(), None, None))["command"].value
    assert call == "mcllo.compare(train, holdout, baseline='truck', seed=0)"


def test_the_call_shows_groups_weights_and_a_chosen_baseline():
    call = by_key(reproduce_facts(grouped(), None, None, None))["command"].value
    assert call == "mcllo.assess(probs, y, baseline='truck', groups=groups, seed=0)"
    a, p = calm(), calm().predictions
    survey = replace(p, sample_weight=np.full(p.n_samples, 1.5), weight_kind="survey")
    auto = replace(a, predictions=survey, test=replace(a.test, kind="max_score"))
    call = by_key(reproduce_facts(auto, None, None, None))["command"].value
    assert "baseline='auto', sample_weight=weight, weight_kind='survey', seed=0" in call


def test_details_that_were_simulated_have_a_seed():
    assert seed_of(replace(calm(), nulls={}, companions={})) == 0  # the p over all baselines


def test_no_seed_where_nothing_was_drawn():
    a = mcllo.assess(predictions(600, ("a", "b")), seed=0, n_resamples=19)
    a = replace(a, nulls={}, companions={})
    assert seed_of(a) is None
    seed = by_key(reproduce_facts(a, None, "run", None))["seed"]
    assert (seed.value, seed.note) == ("none", "no random numbers were used")


@pytest.mark.parametrize("seed", [0, 5])
def test_the_seed_is_that_of_the_draws(seed):
    assert seed_of(mcllo.assess(predictions(50, PETS), seed=seed, n_resamples=19)) == seed

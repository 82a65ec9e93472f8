"""`_report.method`: the box says what was used, and credits those whose work it is."""

from dataclasses import replace

from report_data import calm, compared

from mcllo._report.method import REFERENCES, method_facts


def words(facts):
    return " ".join(f"{fact.name} {fact.value} {fact.note}" for fact in facts)


def keys(facts):
    return [fact.key for fact in facts]


def test_the_model_and_its_sources_are_there():
    text = words(method_facts(calm(), None))
    assert "log(g_j / g_b) = log δ_j + γ_j · log(x_j / x_b)" in text
    assert {"vennos2026", "vanhoorde2014", "besag1991"} <= set(keys(REFERENCES))
    assert all(fact.value.startswith("https://") for fact in REFERENCES)


def test_only_what_was_used_is_explained():
    a = replace(calm(), nulls={})
    assert "exact" not in keys(method_facts(a, None))
    assert "exact" in keys(method_facts(calm(), None))
    assert "bound" not in keys(method_facts(calm(), None))
    bound = replace(a, test=replace(a.test, method="bound"))
    assert "bound" in keys(method_facts(bound, None))
    assert "paired" in keys(method_facts(calm(), compared()))


def test_no_claim_that_does_not_hold():
    text = (words(method_facts(calm(), compared())) + words(REFERENCES)).lower()
    assert "the first" not in text
    assert "logits" not in text

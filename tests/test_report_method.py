"""`_report.method`: the box says what was used, and credits those whose work it is."""

from dataclasses import replace

from report_data import calm, compared, grouped

from mcllo._report.method import CITED, REFERENCES, method_facts, references


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


def test_details_are_explained_and_credited_where_they_are():
    facts = method_facts(calm(), None)
    assert {"ladder", "holm", "bayes"} <= set(keys(facts))
    assert {"marcus1976", "holm1979", "guthrie2024"} <= set(keys(references(facts)))
    assert "rao1984" not in keys(references(facts))
    dependent = method_facts(grouped(), None)
    assert "robust" in keys(dependent)
    assert not {"ladder", "holm", "bayes"} & set(keys(dependent))
    assert "rao1984" in keys(references(dependent))
    assert "marcus1976" not in keys(references(method_facts(calm(), compared())))
    chosen = replace(calm(), test=replace(calm().test, kind="max_score"))
    assert "max_score" in keys(method_facts(chosen, None))


def test_every_reference_that_depends_is_there():
    assert set(CITED.values()) <= set(keys(REFERENCES))


def test_no_claim_that_does_not_hold():
    text = (words(method_facts(calm(), compared())) + words(REFERENCES)).lower()
    assert "the first" not in text
    assert "logits" not in text

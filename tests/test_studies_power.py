"""The power study: a small fresh run gives the committed repetitions; the page holds them."""

import re
import shutil

import numpy as np
import pytest
from scipy.stats import beta
from test_studies import PAGES, STUDIES, common, load, words_of

STUDY = STUDIES / "power"
RESULTS = STUDY / "results"


def run():
    return load(STUDY / "run.py")


def designs():
    return run().tables.designs


@pytest.fixture(scope="module")
def studies():
    return run().tables.read_studies(RESULTS / "repetitions.npz")


def cell_of(study, n, delta_1=None):
    return next(cell for cell in study.rows if (cell.n, cell.delta_1) == (n, delta_1))


def same(fresh, committed, reps):
    """Compare repetitions with those on file: single precision p-values, ECE in units of 1e-5.

    Another processor may end a fit at other last digits, hence a margin above the rounding.
    """
    for name in ("pvalues", "pvalues_chi2"):
        expected = getattr(committed, name)[:reps]
        np.testing.assert_allclose(getattr(fresh, name), expected, rtol=1e-4, atol=1e-9)
    for name in ("ece_before", "ece_after"):
        expected = getattr(committed, name)[:reps]
        if not np.isnan(expected).all():  # not kept beside exact p-values
            np.testing.assert_allclose(getattr(fresh, name), expected, atol=2e-5)


# ---------------------------------------------------------------- small fresh runs


@pytest.mark.parametrize(("n", "delta_1"), [(400, 1.0), (1000, 1.4)])
def test_a_fresh_small_run_is_the_beginning_of_the_committed_one(studies, n, delta_1):
    fresh = designs().grid(n_samples=n, delta_1=delta_1, reps=30).rows[0]
    same(fresh, cell_of(studies["grid"], n, delta_1), 30)


def test_a_fresh_exact_run_is_the_beginning_of_the_committed_one(studies):
    fresh = designs().exact(n_samples=400, delta_1=1.4, reps=6).rows[0]
    same(fresh, cell_of(studies["exact"], 400, 1.4), 6)


def test_fresh_rows_of_other_distributions_are_the_committed_ones(studies):
    fresh = designs().other("softmax_normal", n_samples=400, delta_1=1.4, reps=10).rows[0]
    same(fresh, cell_of(studies["softmax_normal"], 400, 1.4), 10)


def test_fresh_sharp_rows_are_the_committed_ones(studies):
    fresh = designs().sharp("null", n_samples=500, reps=6).rows[0]
    same(fresh, cell_of(studies["null"], 500), 6)


@pytest.mark.slow
def test_another_seed_agrees_within_monte_carlo_error(studies):
    # 200 fresh and 1000 committed repetitions of power about 0.87: the standard error of the
    # difference is sqrt(.87 * .13 * (1/200 + 1/1000)) = .026; 4 of them
    committed = cell_of(studies["grid"], 1000, 1.4)
    fresh = designs().grid(n_samples=1000, delta_1=1.4, reps=200, seed=1).rows[0]
    assert abs(fresh.power - committed.power) < 4 * 0.026
    gains = [cell.ece_before - cell.ece_after for cell in (fresh, committed)]
    error = np.hypot(*(gain.std() / np.sqrt(len(gain)) for gain in gains))
    assert abs(gains[0].mean() - gains[1].mean()) < 4 * error


# ---------------------------------------------------------------- what the numbers must obey


def test_parts_of_the_study_share_their_data_sets(studies):
    for cell in studies["exact"].rows:
        grid = cell_of(studies["grid"], cell.n, cell.delta_1)
        np.testing.assert_array_equal(cell.pvalues_chi2, grid.pvalues[: cell.reps])


def test_an_exact_p_value_of_the_level_rejects_as_it_does_in_the_package(studies):
    # 10 of 200 is 0.05 to the last digit, and single precision would lift it above
    found = np.concatenate([cell.pvalues for cell in studies["exact"].rows])
    ties = np.abs(found - 0.05) < 1e-6
    assert ties.sum() > 5
    assert (found[ties] <= 0.05).all()


def test_the_grid_is_the_papers(studies):
    keys = [(cell.n, cell.delta_1) for cell in studies["grid"].rows]
    assert len(set(keys)) == 30
    assert {n for n, _ in keys} == {400, 450, 500, 600, 1000, 5000}
    assert {shift for _, shift in keys} == {1.0, 1.1, 1.2, 1.3, 1.4}
    assert {cell.reps for cell in studies["grid"].rows} == {1000}


def test_rates_agree_with_large_sample_theory(studies):
    tables = run().tables
    for cell in studies["grid"].rows:
        expected = tables.theory(cell.n, tables.divergence_of(cell.delta_1))
        # 3.5 standard errors for 30 cells, and .01 because n is not large
        error = np.sqrt(expected * (1 - expected) / cell.reps)
        assert abs(cell.power - expected) < 3.5 * error + 0.01, cell


def test_the_divergence_is_a_mean_over_rows():
    # independent: the mean of sum_j g_j log(g_j / x_j) over drawn rows of three classes whose
    # first is Beta(3, 2.7), the others sharing the rest
    x1 = beta.rvs(3, 2.7, size=100_000, random_state=0)
    x = np.stack([x1, 0.25 * (1 - x1), 0.75 * (1 - x1)])
    g = x * np.array([[1.4], [1], [1]])
    g /= g.sum(axis=0)
    drawn = np.sum(g * np.log(g / x), axis=0)
    error = drawn.std() / np.sqrt(len(x1))
    tables = run().tables
    assert tables.divergence_of(1.4) == pytest.approx(drawn.mean(), abs=4 * error)
    assert tables.divergence_of(1.0) == 0.0
    assert tables.theory(400, 0.0) == 0.05


def test_exact_p_values_keep_the_level(studies):
    # 4 standard errors of all repetitions under H0 together
    for study, deltas in ((studies["exact"], (1.0,)), (studies["null"], (None,))):
        null = np.concatenate([c.pvalues for c in study.rows if c.delta_1 in deltas])
        assert len(null) >= 600
        assert np.mean(null <= 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / len(null))


def test_sharp_rows_are_as_sharp_as_said():
    rows = designs().network_rows()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    assert rows.min() > 0.99e-6
    assert np.mean(1 - rows.max(axis=1)) == pytest.approx(0.0256, abs=1e-4)


# ---------------------------------------------------------------- tables, figures, page


def test_a_whole_run_rewrites_tables_figures_and_page(tmp_path):
    page = tmp_path / "power.md"
    shutil.copy(PAGES / page.name, page)
    run().main(tmp_path, page)
    fresh = sorted((tmp_path / "results").glob("*.csv"))
    assert [table.stem for table in fresh] == ["cells", "exact", "others", "sharp"]
    for table in fresh:
        assert common().differences(table, RESULTS / table.name) == []
    figures = sorted((tmp_path / "figures").glob("*.svg"))
    assert len(figures) == 4
    for figure in figures:
        assert words_of(figure) == words_of(STUDY / "figures" / figure.name)
    assert page.read_text() == (PAGES / page.name).read_text()


def test_a_second_run_gives_the_same_bytes(studies, tmp_path):
    import mcllo.plot

    rows = run().tables.cells(studies["grid"])
    for name in ("a", "b"):
        mcllo.plot.save(run().difference_figure(rows), tmp_path / f"{name}.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_every_figure_is_on_the_page_and_has_no_date():
    text = (PAGES / "power.md").read_text()
    figures = sorted((STUDY / "figures").glob("*.svg"))
    shown = re.findall(r"\]\(\.\./\.\./studies/(\S+\.svg)\)", text)
    assert sorted(shown) == [str(figure.relative_to(STUDIES)) for figure in figures]
    for figure in figures:
        assert "dc:date" not in figure.read_text()


def test_the_page_says_of_every_claim_whether_it_holds():
    text = (PAGES / "power.md").read_text()
    for claim, verdict, _ in load(STUDY / "power_page.py").VERDICTS:
        assert verdict in ("holds", "does not hold", "cannot be told", "holds on average")
        assert f"| {claim} | **{verdict}** |" in text


def test_committed_results_are_small():
    assert sum(file.stat().st_size for file in RESULTS.iterdir()) < 350_000


# ---------------------------------------------------------------- the long run


def test_the_long_run_goes_on_from_its_cache(tmp_path, monkeypatch):
    simulate = load(STUDY / "simulate.py")
    small = simulate.designs
    monkeypatch.setattr(small, "SIZES", (20,))
    monkeypatch.setattr(small, "DELTAS", (1.0,))
    monkeypatch.setattr(small, "EXACT_SIZES", (20,))
    monkeypatch.setattr(small, "EXACT_DELTAS", (1.0,))
    monkeypatch.setattr(small, "OTHER_SIZES", (20,))
    monkeypatch.setattr(small, "OTHER_DELTAS", (1.0,))
    monkeypatch.setattr(small, "SHARP_SIZES", (20, 30))
    monkeypatch.setattr(small, "REPS", dict.fromkeys(small.REPS, 2))
    first = simulate.everything(tmp_path / "cache", 1)
    monkeypatch.setattr("mcllo.simulate.run_cells", lambda *_: iter(()))
    again = simulate.everything(tmp_path / "cache", 1)
    assert first.keys() == again.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(values, again[name])
    assert first["grid/p_chi2"].shape == first["grid/ece_after"].shape == (1, 2)
    assert first["null/p"].shape == first["null/p_chi2"].shape == (2, 2)

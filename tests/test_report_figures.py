"""`_report.figures`: pictures as SVG that can stand together on one page."""

import re
from xml.etree import ElementTree

import pytest
from report_data import compared, grouped, hostile, many, overconfident, reported, separated


def of(make):
    return reported(make).pictures


def drawings(found):
    return [svg for p in found.values() for svg in (p.svg, p.narrow) if svg]


def test_which_pictures_there_are():
    always = {"reliability", "parameters", "by_class", "map"}
    assert set(of(overconfident)) == {*always, "ladder", "baselines"}
    assert set(of(compared)) == {*always, "dots", "panels"}
    assert set(of(grouped)) == always


def test_panels_have_a_drawing_for_phones():
    found = of(compared)
    assert {key for key, p in found.items() if p.narrow} == {"by_class", "panels"}
    assert of(overconfident)["ladder"].narrow


@pytest.mark.parametrize("make", [compared, hostile, separated, many])
def test_ids_do_not_collide_and_all_references_are_met(make):
    ids, used = [], []
    for svg in drawings(of(make)):
        own = re.findall(r'\sid="([^"]+)"', svg)
        wanted = re.findall(r'(?:url\(#|href="#)([^)"]+)', svg)
        assert set(wanted) <= set(own)
        ids += own
        used += wanted
    assert len(ids) == len(set(ids))
    assert used  # or the two lines above test nothing


@pytest.mark.parametrize("make", [compared, hostile])
def test_every_drawing_is_well_formed_and_described(make):
    for p in of(make).values():
        assert p.caption.endswith(".")
        for svg in filter(None, (p.svg, p.narrow)):
            root = ElementTree.fromstring(svg)
            assert root.get("role") == "img"
            assert root.get("aria-label") == p.alt != ""
            assert root.get("viewBox")


def test_hostile_names_are_text():
    for svg in drawings(of(hostile)):
        names = {node.tag.split("}")[-1] for node in ElementTree.fromstring(svg).iter()}
        assert "script" not in names
        assert "img" not in names
        assert not re.search(r"<[^>]*\son\w+=", svg)


def test_nothing_is_fetched():
    for svg in drawings(of(compared)):
        assert not re.search(r'(?:href|src)="(?!#)', svg)
        assert not re.search(r"url\((?!#)", svg)


def test_colours_follow_the_page():
    assert all("var(--mcllo-ink" in svg for svg in drawings(of(overconfident)))


def test_a_hundred_classes_stay_small():
    assert sum(len(svg) for svg in drawings(of(many))) < 1_000_000

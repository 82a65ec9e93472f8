"""Odd values as strategies: numbers, cells of a file, names, edits of bytes and of JSON.

==================  ========================================================================
`NUMBERS`, `CELLS`  at the ends of what a float can say, and what a cell may hold instead
`names`             class names: markup, escape sequences, directions, quotes, braces, spaces
`edited`            bytes with some cut, doubled, flipped or put in
`changed`           a JSON document with some values replaced, removed or doubled
==================  ========================================================================
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

attempt = settings(database=None, deadline=None)
"""How a target runs: it remembers nothing, and the engine stops it."""
NUMBERS = (
    *(
        0.0,
        -0.0,
        1.0,
        0.5,
        1e-6,
        1e-7,
        1.0 - 1e-16,
        1.0 + 1e-9,
        1.0 + 1e-6,
        -1e-17,
        -1.0,
    ),
    *(
        2.0,
        100.0,
        5e-324,
        1e-320,
        2.2250738585072014e-308,
        1e-300,
        1e100,
        1e300,
        1e308,
        -1e308,
    ),
    *(float("nan"), float("inf"), float("-inf")),
)
CELLS = (
    *(
        "",
        " ",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "-0",
        "0",
        "1",
        "1e-320",
        "1e400",
        "-1e400",
        "0,5",
    ),
    *(
        "50%",
        "50 %",
        " 0.5 ",
        "0x1p-1",
        "１",
        "+.5",
        ".5",
        "5.",
        "1_0",
        "TRUE",
        "1/3",
        "NA",
        "null",
    ),
    *(
        "0.3000000000000000000000000000000001",
        '"0.5"',
        "'0.5",
        "0.5\x00",
        "--",
        "#N/A",
        "=1+1",
    ),
    *(
        "1.000,5",
        "1 000",
        "\u00a00.5",
        "0.5\ufeff",
        "٠.٥",
        "1e",
        "1d-1",
        "9" * 400,
        "x" * 200,
    ),
)
LABELS = (
    "a",
    "b",
    "c",
    "0",
    "1",
    "2",
    "1.0",
    "01",
    " a",
    "A",
    "é",
    "",
    "nan",
    "true",
    "x y",
)
MARKS = (
    "<zzq>",
    "</zzq>",
    "<zzq onzz=1>",
    '" onzz="1',
    "' onzz='1",
    "<!--",
    "-->",
    "]]>",
    "&lt;",
)
PIECES = (
    *(
        "a",
        "B",
        "class",
        "seed=1",
        "row 6",
        "clip=[a b]",
        "p = 0.05",
        "大",
        "é",
        "e\u0301",
        "🎉",
    ),
    *MARKS,
    *(
        "\x1b[31m",
        "\x1b]0;t\x07",
        "\x07",
        "\x08",
        "\r",
        "\n",
        "\t",
        "\x00",
        "\x7f",
        "\x85",
        "\x9b",
    ),
    *(
        "\u202e",
        "\u2066",
        "\u200b",
        "\ufeff",
        "\u2028",
        "\ud800",
        "$x^2$",
        "$",
        "\\",
        "\\frac{",
        "_",
    ),
    *(
        "{",
        "}",
        "{0}",
        "{value}",
        "%s",
        "%",
        "|",
        "`",
        "```",
        "*",
        "[x](y)",
        "#",
        "# zz",
        "~~",
        "-",
    ),
    *(
        "'",
        '"',
        ",",
        ";",
        "=cmd|' /C calc'!A0",
        "${x}",
        "{{ 1 }}",
        "{% raw %}",
        "[red]x[/red]",
        " ",
    ),
)


def names(n: int) -> st.SearchStrategy[list[str]]:
    """Return so many class names that differ."""
    one = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)
    long = st.sampled_from(PIECES).map(lambda piece: (piece * 300)[:300])
    any_text = st.text(max_size=12)
    mixed = st.one_of(one, one, one, long, any_text)
    return st.lists(mixed, min_size=n, max_size=n, unique_by=lambda name: name.strip())


def edited(content: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Return bytes with up to four edits, mostly few."""
    tokens = st.one_of(
        st.sampled_from(
            [b"\x00", b"\xff", b'"', b"\n", b",", b"\r", b"1e999", b"\xef\xbb\xbf"]
        ),
        st.binary(max_size=4),
        st.sampled_from(CELLS).map(lambda cell: cell.encode("utf-8", "replace")),
    )
    edit = st.tuples(
        st.sampled_from(["put", "cut", "flip", "double", "end"]),
        st.integers(0, 2**16 - 1),
        st.integers(1, 40),
        tokens,
    )
    return st.builds(_edit, content, st.lists(edit, max_size=4))


def _edit(content: bytes, edits: list[tuple[str, int, int, bytes]]) -> bytes:
    for kind, at, size, token in edits:
        k = at * (len(content) + 1) >> 16
        here = content[k : k + size]
        if kind == "put":
            content = content[:k] + token + content[k:]
        elif kind == "cut":
            content = content[:k] + content[k + size :]
        elif kind == "double":
            content = content[:k] + here + content[k:]
        elif kind == "end":
            content = content[:k]
        elif here:
            content = (
                content[:k] + bytes([here[0] ^ (1 << size % 8)]) + content[k + 1 :]
            )
    return content


VALUES = (
    *(
        None,
        True,
        False,
        "",
        "a",
        "all",
        [],
        [0.0],
        {},
        {"a": 1},
        0,
        1,
        -1,
        2**63,
        10**400,
    ),
    *(0.5, *NUMBERS, [[]], [None], "x" * 500),
)


def changed(document: Any) -> st.SearchStrategy[Any]:
    """Return a JSON document with up to four changes."""
    change = st.tuples(
        st.sampled_from(
            ["value", "value", "value", "remove", "double", "scale", "swap"]
        ),
        st.lists(st.integers(0, 255), min_size=1, max_size=6),
        st.sampled_from(VALUES),
    )
    return st.lists(change, max_size=4).map(lambda changes: _change(document, changes))


def _change(document: Any, changes: list[tuple[str, list[int], Any]]) -> Any:
    whole = copy.deepcopy(document)
    for kind, way, value in changes:
        place = whole
        for k, turn in enumerate(way):
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = keys[turn % len(keys)]
            inside = place[key]
            if isinstance(inside, (dict, list)) and k + 1 < len(way):
                place = inside
                continue
            _change_at(place, key, kind, value)
            break
    return whole


def _change_at(place: Any, key: Any, kind: str, value: Any) -> None:
    inside = place[key]
    if kind == "remove":
        del place[key]
    elif kind == "double" and isinstance(place, list):
        place.insert(key, copy.deepcopy(inside))
    elif kind == "swap" and isinstance(place, list):
        place[key], place[0] = place[0], inside
    elif kind == "scale" and isinstance(inside, float):
        place[key] = inside * 1e80
    else:
        place[key] = copy.deepcopy(value)

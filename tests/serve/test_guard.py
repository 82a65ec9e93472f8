"""Who may ask: the token, Host, Origin, and what every answer says."""

import re

import pytest
from starlette.testclient import TestClient
from visitor import ORIGIN, PORT

from mcllo._apps.serve.app import build_app
from mcllo._apps.serve.guard import POLICY


@pytest.fixture(scope="module")
def guard(tmp_path_factory):
    return build_app(tmp_path_factory.mktemp("served"), PORT)


@pytest.fixture(scope="module")
def client(guard):
    with TestClient(guard, base_url=ORIGIN, follow_redirects=False) as found:
        yield found


HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def test_every_answer_says_what_a_browser_may_do(client, guard):
    for path in ("/", "/page.css", "/page.js", "/nothing", "/job/none"):
        found = client.get(guard.root_path + path).headers
        assert {name: found[name] for name in HEADERS} == HEADERS, path
    assert client.get("/").headers["content-security-policy"] == POLICY  # a refusal


def test_the_policy_lets_no_script_in_but_the_file_of_the_package():
    rules = dict(rule.strip().split(" ", 1) for rule in POLICY.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["form-action"] == "'self'"
    assert "unsafe" not in POLICY


def test_no_page_holds_a_script_or_a_style_of_its_own_or_asks_another_host(
    client, guard
):
    page = client.get(guard.root_path + "/").text
    assert re.findall(r"<script[^>]*>([^<]*)</script>", page) == [""]
    assert not re.search(r"<style|\son\w+=|\sstyle=|javascript:", page)
    for path in ("/", "/page.css", "/page.js"):
        assert not re.search(
            r"https?://|url\(|@import|//\w+\.", client.get(guard.root_path + path).text
        )


def test_without_the_token_nothing_is_answered(client):
    for path in ("/", "/upload", "/job/x", "/wrong-token/", "//"):
        answer = client.get(path)
        assert answer.status_code == 403, path
        assert "Open the address that mcllo serve printed" in answer.text, path


def test_a_foreign_host_is_refused_even_with_the_token(client, guard):
    foreign = (
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:80",
        "localhost",
        "",
    )
    for host in foreign:
        answer = client.get(guard.root_path + "/", headers={"host": host})
        assert answer.status_code == 421, host
        assert "mcllo serve" in answer.text, host
    for host in (f"127.0.0.1:{PORT}", f"localhost:{PORT}"):
        assert (
            client.get(guard.root_path + "/", headers={"host": host}).status_code == 200
        ), host


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"origin": ORIGIN, "sec-fetch-site": "cross-site"},
        {"origin": "null", "sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
    ],
)
def test_what_changes_something_must_come_from_our_page(client, guard, headers):
    answer = client.post(guard.root_path + "/job/x/cancel", headers=headers)
    assert answer.status_code == 403
    assert "not asked for by the page" in answer.text


def test_our_own_page_may_ask(client, guard):
    for headers in (
        {"origin": "null", "sec-fetch-site": "same-origin"},
        {"origin": ORIGIN},
    ):
        assert (
            client.post(guard.root_path + "/job/x/cancel", headers=headers).status_code
            == 404
        )


def test_the_address_of_the_browser_is_good_for_one_request(guard, client):
    code = guard.one_time_address.removeprefix(ORIGIN)
    assert guard.token not in guard.one_time_address
    first = client.get(code)
    assert (first.status_code, first.headers["location"]) == (
        303,
        guard.root_path + "/",
    )
    again = client.get(code)
    assert again.status_code == 403
    assert client.get("/open/").status_code == 403


def test_tokens_are_long_and_never_the_same(tmp_path):
    tokens = {build_app(tmp_path, PORT).token for _ in range(3)}
    assert len(tokens) == 3
    assert min(map(len, tokens)) >= 43  # 32 bytes

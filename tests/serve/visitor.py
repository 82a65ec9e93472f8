"""A browser made of a few lines, for the tests of the served page: it follows forms and waits."""

import html
import re
from contextlib import contextmanager
from time import monotonic, sleep

from starlette.testclient import TestClient

from mcllo._apps.serve.app import build_app
from mcllo._apps.serve.limits import ServerLimits

PORT = 8123
ORIGIN = f"http://127.0.0.1:{PORT}"
PATIENCE = 240.0


class Visitor:
    """Asks as a browser would: with the token, and from our own page."""

    def __init__(self, client, guard):
        self.client, self.root = client, guard.root_path

    def get(self, path="/", **options):
        return self.client.get(self.root + path, **options)

    def post(self, path, data=None, **options):
        headers = {"sec-fetch-site": "same-origin"}
        return self.client.post(
            self.root + path, data=data or {}, headers=headers, **options
        )

    def drop(self, name, content):
        """Send a file; return the path of its job, or the page that refuses it."""
        content = content.encode() if isinstance(content, str) else content
        answer = self.post(
            "/upload", files={"file": (name, content)}, follow_redirects=False
        )
        if answer.status_code != 303:
            return answer
        return answer.headers["location"].removeprefix(self.root)

    def wait(self, job):
        """Wait until a job is no longer at work; return its page."""
        end = monotonic() + PATIENCE
        while self.get(f"{job}/status").json()["busy"]:
            assert monotonic() < end, "it takes too long"
            sleep(0.05)
        return self.get(job).text

    def fields(self, page):
        """Return the fields of the form of columns, as they are filled in."""
        form = re.search(r'<form[^>]*class="choices">(.*)</form>', page, re.DOTALL)[1]
        found = {}
        for name, options in re.findall(
            r'<select [^>]*name="([^"]+)".*?>(.*?)</select>', form, re.S
        ):
            chosen = re.search(r'value="([^"]*)" selected', options)
            found[name] = chosen[1] if chosen else ""
        for tag in re.findall(r"<input ([^>]*)>", form):
            given = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
            if given.get("type") not in ("radio", "checkbox") or " checked" in tag:
                found[given["name"]] = html.unescape(given["value"])
        return found


@contextmanager
def visiting(folder, **limits):
    """Give a visitor of an application whose files are in `folder`."""
    guard = build_app(folder, PORT, ServerLimits(**limits))
    with TestClient(guard, base_url=ORIGIN, follow_redirects=True) as client:
        yield Visitor(client, guard)


def problem(page):
    """Return the sentence of a page that says what did not work."""
    found = re.search(r"data-test-problem>(.*?)</(?:div|p)>", page, re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "", found[1])).strip() if found else None


def commands(page):
    """Return the commands that a result shows."""
    return [
        html.unescape(text)
        for text in re.findall(r"<pre[^>]*><code>(.*?)</code>", page, re.S)
    ]

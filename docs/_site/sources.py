"""Pages of source code, which `sphinx.ext.viewcode` makes where the repository has no address.

They have no links back to the names: those of a name that has several homes, or of a method that
scikit-learn gave a class, would lead to places that no page has.
"""

import re
from typing import Any

from sphinx.application import Sphinx

LINK_BACK = re.compile(r'<a class="viewcode-back" href="[^"]*">[^<]*</a>')


def leave_out_links_back(
    app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object
) -> None:
    """Take the links back out of a page of source code."""
    if page.startswith("_modules/"):
        context["body"] = LINK_BACK.sub("", context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the function."""
    app.connect("html-page-context", leave_out_links_back)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

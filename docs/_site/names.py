"""Names in the text lead to their pages: `mcllo.compare` and `mcllo.compare(train, holdout)`.

Pages are Markdown, where a name is no more than code. What is written in full, and has a page,
becomes a link; headings, links and blocks of code stay as they are.
"""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

NAME = re.compile(r"(mcllo(?:\.\w+)+)(?:\(.*\))?")
NOT_IN = (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.desc_signature)


class Names(SphinxPostTransform):
    """Turn names into links."""

    default_priority = 5
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        """Look at every piece of code in the text of a page."""
        objects: dict[str, Any] = self.env.get_domain("py").objects  # type: ignore[attr-defined]
        for node in list(self.document.findall(nodes.literal)):
            said = NAME.fullmatch(node.astext())
            found = objects.get(said[1]) if said else None
            if found is None or found.docname == self.env.docname or is_inside(node):
                continue
            page, goal = self.env.docname, (found.docname, found.node_id)
            link = make_refnode(self.app.builder, page, *goal, node.deepcopy(), said[1])
            node.replace_self(link)


def is_inside(node: nodes.Node) -> bool:
    """Whether a node is a part of a link or of a heading."""
    while node.parent is not None:
        node = node.parent
        if isinstance(node, NOT_IN):
            return True
    return False


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_post_transform(Names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

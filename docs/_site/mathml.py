r"""Mathematics as MathML, made when the site is built: browsers show it without any script.

=====================  ===========================================
``$\gamma_j$``          in the line
``$$ ... $$``          a line of its own
=====================  ===========================================
"""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def inline(writer: Any, node: nodes.math) -> None:
    """Write a formula in the line."""
    writer.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own."""
    writer.body.append(
        f'<div class="math">{convert(node.astext(), display="block")}</div>\n'
    )
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the writer of formulas."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

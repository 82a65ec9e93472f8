"""Settings of the site; `docs/make_site.py` copies them beside the pages and runs Sphinx.

==============  ===================================================================================
pages           Markdown (myst-nb). What cells of tutorials print is kept beside the build, for as
                long as no file of the package changes
names           numpydoc; `_site/names` links names in the text to their pages; each leads to its
                source, on the repository's host where pyproject.toml has the address, else here
search          `_site/scorer.js`: names and how-to pages before studies
pictures        sphinx-gallery runs docs/gallery; `_site/figures` puts them into the page as SVG
mathematics     `_site/mathml`: MathML, no script
output          `_site/printed`: sentences that a terminal shows are wrapped, tables slide
other hosts     none: no fonts, scripts or pictures from elsewhere
==============  ===================================================================================
"""

import hashlib
import inspect
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_site"))

import mcllo
from mcllo import __version__

project = "mcllo"
author = "The mcllo developers"
copyright = "the mcllo developers, BSD 3-clause licence"
version = release = __version__
language = "en"

extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_nb", "sphinx_gallery.gen_gallery"]
extensions += ["sphinx_copybutton", "mathml", "names", "printed"]

PACKAGE = Path(mcllo.__file__).parent
CHECKOUT = PACKAGE.parents[1]


def repository() -> str:
    """Return the address of the repository; nothing where pyproject.toml has none."""
    metadata = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
    address: str = metadata["project"]["urls"].get("Repository", "")
    return address.rstrip("/")


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Return where the lines of a name stand on the repository's host."""
    thing: object = sys.modules.get(info["module"])
    for part in info["fullname"].split("."):
        thing = getattr(thing, part, None)
    try:
        thing = inspect.unwrap(thing)  # type: ignore[arg-type]
        lines, first = inspect.getsourcelines(thing)  # type: ignore[arg-type]
        file = Path(inspect.getsourcefile(thing) or "")  # type: ignore[arg-type]
    except (TypeError, OSError):  # a property, an attribute
        return None
    if not file.is_relative_to(PACKAGE):
        return None
    place = file.relative_to(CHECKOUT).as_posix()
    return f"{repository()}/blob/v{version}/{place}#L{first}-L{first + len(lines) - 1}"


if repository():
    extensions.append("sphinx.ext.linkcode")
else:
    extensions += ["sphinx.ext.viewcode", "sources"]
exclude_patterns = [
    "files/**",
    "extra/**",
    "_made/**",
    "_site/**",
    "scripts/**",
    "**.ipynb",
]
exclude_patterns += ["**/.ipynb_checkpoints", "jupyter_execute"]
highlight_language = "none"
smartquotes_action = "qe"  # quotes, ellipses: an option keeps its two dashes
default_role = "py:obj"

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
myst_update_mathjax = False
html_math_renderer = "mathml"

nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 300
nb_merge_streams = True


def digest_of_package() -> str:
    """Return what changes with any file of the package: what a tutorial prints may, too."""
    found = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*")):
        if file.suffix in (".py", ".c", ".npz", ".csv", ".json", ".jinja"):
            found.update(file.relative_to(PACKAGE).as_posix().encode())
            found.update(file.read_bytes())
    return found.hexdigest()[:16]


nb_execution_cache_path = str(CHECKOUT / "build" / "tutorials" / digest_of_package())

autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["scripts"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "figures.Order",
    "image_scrapers": ("figures.scraper",),
    "capture_repr": (),
    "reset_modules": (),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 10**6,
    "write_computation_times": False,
    "remove_config_comments": True,
    "thumbnail_size": (640, 440),
    "doc_module": ("mcllo",),
    "reference_url": {"mcllo": None},
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

html_theme = "pydata_sphinx_theme"
html_title = "mcllo"
html_logo = "_site/mark.svg"
html_favicon = "_site/mark.svg"
html_static_path = ["_site/static"]
html_css_files = ["style.css"]
html_search_scorer = str(Path(__file__).parent / "_site" / "scorer.js")
html_js_files = [("site.js", {"defer": "defer"})]
html_extra_path = ["extra"]
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_sidebars = {"index": [], "changes": [], "contributing": [], "overview": []}
html_theme_options = {
    "logo": {"text": "mcllo", "alt_text": "mcllo, to the first page"},
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_nav_level": 1,
    "navigation_depth": 2,
    "collapse_navigation": True,
    "show_toc_level": 2,
    "back_to_top_button": False,
    "use_edit_page_button": False,
}

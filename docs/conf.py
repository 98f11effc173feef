"""The site, made by `make docs`: no page of it asks the network for anything."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "site"))
# notebooks call `undrift` as a reader would: the one beside this Python
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

from undrift import __version__  # noqa: E402  # after the path, as are those within functions

project = "undrift"
author = "The undrift authors"
release = version = __version__

extensions = ["myst_nb", "equations"]
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"
nb_execution_mode = "force"  # a page with a kernelspec is run, in a folder of its own
nb_execution_in_temp = True
nb_execution_show_tb = True  # a failure is a warning, and so an error
nb_execution_timeout = 120
nb_merge_streams = True
exclude_patterns = ["site/**"]
myst_heading_anchors = 3
nitpicky = True
smartquotes = False  # "--set" must stay as it is
highlight_language = "text"

html_theme = "furo"
html_title = "undrift"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_favicon = "site/static/icon.svg"
html_copy_source = False
html_show_search_summary = False  # it is fetched, which a page opened from the disk may not
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}

# the menu: every page is in it, or the build warns, and a warning is an error
_MENU = """
```{toctree}
:hidden:
:caption: Guide

install
getting-started
choosing-a-method
your-own-graph
first-year
deploy
disease
whole-graphs
links
larger-than-memory
recommendation
data-stewards
experiments
protocols
arrivals
anomalies
adding-a-method
```

```{toctree}
:hidden:
:caption: Examples

examples/index
examples/pyg
examples/tables
examples/compare
examples/own-method
examples/forget
examples/merge
examples/larger
examples/privacy
```

```{toctree}
:hidden:
:caption: Notebooks

notebooks/researcher
notebooks/engineer
```

```{toctree}
:hidden:
:caption: Reference

command-line
api
novelty
results
returning
reliability
files-from-outside
glossary
```

```{toctree}
:hidden:
:caption: Privacy
:glob:

privacy/index
privacy/*
```

```{toctree}
:hidden:
:caption: Methods
:glob:

methods/*
```

```{toctree}
:hidden:
:caption: Decisions
:glob:

decisions/*
```
"""

# what a browser fetches by itself; a plain link is the reader's to follow
_FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc=["']?(?:https?:)?//[^\s"'>]+
      | <link\b[^>]*?\bhref=["']?(?:https?:)?//[^\s"'>]+
      | (?:url\(|@import)\s*["']?(?:https?:)?//[^\s"')]+""",
    re.VERBOSE | re.IGNORECASE,
)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", add_what_the_code_knows)
    app.connect("build-finished", refuse_what_is_fetched)


def add_what_the_code_knows(app: Any, page: str, source: list[str]) -> None:
    """Put what is made from the code and the recorded runs between a page's marks."""
    from api_reference import reference
    from drawings import drawing
    from scores import picture, scores
    from tables import methods_table, metrics_table

    if page == "index":
        source[0] = _put(source[0], "picture", _html(picture()))
        source[0] = _put(source[0], "methods", methods_table()) + _MENU
    if page == "api":
        source[0] = _put(source[0], "reference", reference())
    if page == "protocols":
        source[0] = _put(source[0], "metrics", metrics_table())
    if page.startswith("methods/"):
        method = page.removeprefix("methods/")
        source[0] = _put(source[0], "drawing", _html(drawing(method)))
        source[0] = _put(source[0], "scores", scores(method))
    source[0] = source[0].replace(
        " ± ", "\u00a0±\u00a0"
    )  # a number and its deviation stay together


def refuse_what_is_fetched(app: Any, error: Exception | None) -> None:
    """Warn of everything in the built site that would be fetched from elsewhere."""
    from sphinx.util import logging

    if error is None and app.builder.format == "html":
        for path in sorted(Path(app.outdir).rglob("*")):
            if path.suffix in (".html", ".css"):
                for found in _FETCHED.findall(path.read_text(encoding="utf-8")):
                    logging.getLogger(__name__).warning("%s fetches: %s", path.name, found)


def _html(made: str) -> str:
    return f"```{{raw}} html\n{made}\n```"


def _put(text: str, what: str, made: str) -> str:
    """The page with `made` between its two marks, in place of what readers of the source see."""
    before, _, rest = text.partition(f"<!-- {what}: made by the build -->")
    _, found, after = rest.partition("<!-- end -->")
    if not found:
        raise ValueError(f"a page has lost its marks of the {what}, which the build makes")
    return before + made + after

"""Turn the formulas of a page into MathML, so that they need no script, no font and no network to be read.

Markdown's arithmatex extension finds them (``$...$`` and ``$$...$$``); an error in one fails the build.
"""

import html
import re
from typing import Any

from math_core import LatexError, LatexToMathML
from mkdocs.exceptions import PluginError

FORMULA = re.compile(r'<(?P<tag>span|div) class="arithmatex">\s*\\[(\[](?P<latex>.*?)\\[)\]]\s*</(?P=tag)>', re.DOTALL)
CONVERTER = LatexToMathML(fancy_error=False)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Replace every formula of a rendered page."""

    def render(formula: re.Match[str]) -> str:
        latex = html.unescape(formula["latex"]).strip()
        try:
            return CONVERTER.convert_with_local_state(latex, displaystyle=formula["tag"] == "div")
        except LatexError as error:
            raise PluginError(f"{page.file.src_uri}: cannot read the formula {latex!r}: {error}") from error

    return FORMULA.sub(render, content)

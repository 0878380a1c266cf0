"""Formulas become MathML when the site is built, so that pages need no script and no network."""

from __future__ import annotations

import html
import re

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.S)


def on_page_content(content, page, config, files):
    from latex2mathml.converter import convert

    def formula(found: re.Match) -> str:
        display = "block" if found[2] == "[" else "inline"
        # MathML stretches brackets by itself; the converter does not know sized ones.
        latex = re.sub(r"\\[Bb]igg?[lr]?(?![A-Za-z])", "", html.unescape(found[3]).strip())
        return convert(latex, display=display)

    return _FORMULA.sub(formula, content)

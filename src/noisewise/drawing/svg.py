"""The few words of SVG that the report's pictures are made of; everything that goes in is escaped.

Colours are not written into the pictures: every mark has a class, and the page's style sheet gives it a colour for
light, dark and paper. Numbers are rounded to a tenth of a pixel, so that the same content gives the same bytes.
"""

import unicodedata
from collections.abc import Iterable
from html import escape
from typing import Any

from markupsafe import Markup

WIDTH = 340
"""Natural width of most pictures: what a phone shows without shrinking it."""
LETTER = 7.4
"""About the width of a letter at the pictures' size of type."""


def element(tag: str, *content: str, **attributes: Any) -> Markup:
    """One element: text content is escaped unless it is markup; `_` in names of attributes stands for `-`."""
    written = "".join(f' {name.strip("_").replace("_", "-")}="{_value(value)}"' for name, value in attributes.items())
    inner = "".join(part if isinstance(part, Markup) else escape(part, quote=False) for part in content)
    return Markup(f"<{tag}{written}>{inner}</{tag}>")  # noqa: S704 - every part was escaped above


def picture(width: float, height: float, title: str, parts: Iterable[Markup], kind: str) -> Markup:
    """A whole picture with the sentence that stands for it where it cannot be seen."""
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {_value(width)} {_value(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=title,
        class_=kind,
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start", columns: int = 0) -> Markup:
    """A line of text, cut to a number of letters' widths where one is given; the whole is in its tooltip."""
    shown = shortened(words, columns) if columns else words
    tip = (element("title", words),) if shown != words else ()
    return element("text", *tip, shown, x=x, y=y, class_=kind or "word", text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def rectangle(x: float, y: float, width: float, height: float, kind: str, *inside: Markup, **more: Any) -> Markup:
    """A rectangle; `inside` may hold its tooltip."""
    return element("rect", *inside, x=x, y=y, width=max(0.0, width), height=height, class_=kind, **more)


def circle(x: float, y: float, radius: float, kind: str, *inside: Markup) -> Markup:
    """A circle."""
    return element("circle", *inside, cx=x, cy=y, r=radius, class_=kind)


def columns_of(words: str) -> int:
    """How many letters' widths a text takes; wide characters take two, combining ones none."""
    return sum(_columns(letter) for letter in words)


def shortened(words: str, columns: int) -> str:
    """The text, cut to a width with an ellipsis where it is longer."""
    if columns_of(words) <= columns:
        return words
    kept, used = "", 0
    for letter in words:
        used += _columns(letter)
        if used > columns - 1:
            break
        kept += letter
    return kept.rstrip() + "…"


def _columns(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _value(value: Any) -> str:
    if isinstance(value, float):
        shown = f"{value:.1f}".removesuffix(".0")
        return "0" if shown == "-0" else shown
    return escape(str(value))

"""The report as one self-contained page: no script, no network, everything escaped."""

import math
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from noisewise.drawing.legible import legible_values
from noisewise.reporting.headline import power
from noisewise.reporting.pictures.graph import MOST_COLUMNS, graph_picture
from noisewise.reporting.pictures.intervals import interval_picture
from noisewise.reporting.pictures.noise import noise_picture
from noisewise.reporting.pictures.one_way import MOST_LEVELS, one_way_picture
from noisewise.reporting.pictures.two_way import MOST_CELLS, cells_of, difference_picture, heat_picture

MOST_PICTURES = 60
"""Most columns, and most pairs, that are drawn; the rest are in the JSON file."""
MOST_TABLE_CELLS = 120
"""Largest pair whose figures are in a table of the page."""
MARKUP_LIMIT = 2_600_000
"""Bytes of pictures and their tables after which no more pairs are drawn: the page stays below 3 MB."""

_MOST_DECIMALS, _TOO_LONG = 7, 1e9  # beyond these a power of ten is easier to read


def render(content: Mapping[str, Any]) -> str:
    """Lay the content out as HTML."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_source),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "count": count,
        "pvalue": pvalue,
        "percent": percent,
        "to_error": to_error,
    }
    content = legible_values(content)
    style = Markup(_source("style.css"))  # noqa: S704 - our own file
    return environment.get_template("page.html").render(**content, style=style, pictures=pictures(content))


def pictures(content: Mapping[str, Any]) -> dict[str, Any]:
    """Every picture of the page, by what it shows."""
    measured = content["measurements"]
    marginals = [marginal["columns"] for marginal in measured["marginals"]]
    small = len(measured["columns"]) <= MOST_COLUMNS
    one_way = [
        {"column": column, "picture": one_way_picture(column["name"], column["levels"]), "drawn": MOST_LEVELS}
        for column in measured["one_way"][:MOST_PICTURES]
    ]
    return {
        "graph": graph_picture(measured["columns"], marginals) if small else None,
        "noise": noise_picture(measured["marginals"]),
        "one_way": one_way,
        "two_way": _pairs(measured["two_way"], sum(len(one["picture"]) for one in one_way)),
        "intervals": [interval_picture(result["title"], result["rows"]) for result in content["results"]],
    }


def _pairs(pairs: list[dict[str, Any]], used: int) -> list[dict[str, Any]]:
    """Pictures of pairs until the page is full."""
    drawn: list[dict[str, Any]] = []
    for pair in pairs:
        if cells_of(pair["labels"]) > MOST_CELLS or len(drawn) >= MOST_PICTURES:
            continue
        both = heat_picture(pair), difference_picture(pair)
        used += sum(map(len, both)) + 400 * min(cells_of(pair["labels"]), MOST_TABLE_CELLS)
        if used > MARKUP_LIMIT:
            break
        drawn.append(
            {
                "pair": pair,
                "heat": both[0],
                "difference": both[1],
                "table": cells_of(pair["labels"]) <= MOST_TABLE_CELLS,
            }
        )
    return drawn


def number(value: float | None, digits: int = 4) -> str:
    """A number for people, with a true minus."""
    if value is None:
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return power(f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:,.{digits}g}")


def to_error(value: float | None, error: float, digits: int = 3) -> str:
    """A number with the decimals that tell so many digits of its error: what is beyond them is chance."""
    if value is None or not math.isfinite(value) or not (math.isfinite(error) and error > 0):
        return number(value)
    decimals = digits - 1 - math.floor(math.log10(error))
    if decimals > _MOST_DECIMALS or abs(value) >= _TOO_LONG:
        return number(value)
    return f"{value:,.{max(0, decimals)}f}".replace("-", "−")


def count(value: float | None) -> str:
    """A count for people: whole, with separators."""
    return "–" if value is None else f"{value:,.0f}".replace("-", "−")


def pvalue(value: float) -> str:
    """A p-value for people."""
    return "<\u202f0.001" if value < 0.001 else f"{value:.3f}"


def percent(value: float | None, digits: int = 0) -> str:
    """A share in per cent."""
    return "–" if value is None else f"{100 * value:,.{digits}f} %"


def _source(name: str) -> str:
    return files("noisewise.reporting").joinpath(name).read_text("utf-8")

"""The report as one self-contained page: no script, no network, everything escaped."""

from importlib.resources import files
from typing import Any


def render(content: dict[str, Any]) -> str:
    """Lay the content out as HTML."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined)
    template = files("noisewise.reporting").joinpath("page.html").read_text("utf-8")
    return environment.from_string(template).render(content)

"""The selections by the names that files use. A new one is one line here."""

from dataclasses import fields
from typing import Any

from noisewise.errors import StudyError, did_you_mean
from noisewise.privacy.adaptive import Adaptive
from noisewise.privacy.selection import Selection
from noisewise.privacy.spanning import Mst

SELECTIONS: dict[str, type[Selection]] = {"adaptive": Adaptive, "mst": Mst}


def selection(method: str, **settings: Any) -> Selection:
    """A selection from its name and settings."""
    if method not in SELECTIONS:
        raise StudyError(f"select: there is no method {method!r}. {did_you_mean(method, SELECTIONS)}")
    kind = SELECTIONS[method]
    known = [field.name for field in fields(kind)]
    for setting in settings:
        if setting not in known:
            raise StudyError(f"select: method {method!r} has no setting {setting!r}. {did_you_mean(setting, known)}")
    return kind(**settings)

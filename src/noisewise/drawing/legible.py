"""Labels made harmless for the eye: characters that turn, hide or control the text around them are spelled out."""

import unicodedata
from collections.abc import Mapping
from typing import Any

JOINERS = "\u200c\u200d\u00ad"
"""Invisible characters that words and emoji need."""
LINES = "\n\t"


def legible(text: str) -> str:
    """The text with direction marks and control characters written as ⟨U+202E⟩, so that they cannot act."""
    return "".join(_spelled(letter) if _acts(letter) else letter for letter in text)


def legible_values(content: Any) -> Any:
    """The same for every text in nested lists and mappings, keys included."""
    if isinstance(content, str):
        return legible(content)
    if isinstance(content, Mapping):
        return {legible_values(key): legible_values(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [legible_values(value) for value in content]
    return content


def _acts(letter: str) -> bool:
    return unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp") and letter not in JOINERS + LINES


def _spelled(letter: str) -> str:
    return f"⟨U+{ord(letter):04X}⟩"

"""The printed result: a table with its notes, as text, HTML or LaTeX."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from noisewise.analysis.estimates import spread_summary
from noisewise.analysis.support import UNKNOWN

if TYPE_CHECKING:
    from noisewise.analysis.pooled import Pooled

WARNING = "Warning:"
UNSUPPORTED, FELL_BACK, CAREFUL = "†", "‡", "!"
LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "≤": r"$\leq$",
    "χ": r"$\chi$",
    "²": r"$^2$",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Summary:
    """A pooled result for people; `str()` gives text."""

    result: "Pooled"
    """The result."""
    alpha: float = 0.05
    """Intervals have probability 1 - alpha."""

    @property
    def header(self) -> tuple[str, ...]:
        """Column heads."""
        return (
            "", "estimate", "std.error", "t", "p.value",
            f"[{self.alpha / 2:.3g}", f"{1 - self.alpha / 2:.3g}]", "lost", "",
        )  # fmt: skip

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The table's rows as text."""
        result = self.result
        known = result.rows is not None and result.original_rows is not None
        lost = [f"{100 * share:.0f} %" for share in result.information_lost] if known else ["?"] * len(result.terms)
        columns = (result.params, result.bse, result.tvalues, result.pvalues, *result.conf_int(self.alpha).T.values)
        return [
            (term, *(_number(value) for value in numbers[:2]), f"{numbers[2]:.2f}", _pvalue(numbers[3]),
             *(_number(value) for value in numbers[4:]), share, _marks(result, term))
            for term, share, *numbers in zip(result.terms, lost, *columns, strict=True)
        ]  # fmt: skip

    def as_text(self) -> str:
        """A table in fixed-width characters."""
        rows = [self.header, *self.cells]
        widths = [max(len(row[i]) for row in rows) for i in range(len(self.header))]
        lines = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
        rule = "─" * max(map(len, lines))
        head = [*title_of(self.result), *_bullets(alerts_of(self.result))]
        return "\n".join([*head, rule, lines[0], rule, *lines[1:], rule, *_bullets(notes_of(self.result))])

    def as_html(self) -> str:
        """A table in HTML, without scripts or outside resources."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.header)
        body = "".join(f"<tr><th>{escape(row[0])}</th>{_html_cells(row[1:])}</tr>" for row in self.cells)
        title = "<br>".join(escape(line) for line in title_of(self.result))
        alerts, notes = _html_list(alerts_of(self.result)), _html_list(notes_of(self.result))
        return (
            f'<div class="noisewise-summary"><p>{title}</p>{alerts}<table><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table>{notes}</div>"
        )

    def as_latex(self) -> str:
        """A tabular environment for a paper, with the notes below it."""
        rows = [" & ".join(_latex(cell) for cell in row) + r" \\" for row in self.cells]
        head = " & ".join(_latex(name) for name in self.header) + r" \\"
        said = (*title_of(self.result), *alerts_of(self.result), *notes_of(self.result))
        notes = "\n".join(r"\par\footnotesize " + _latex(note) for note in said)
        spec = "l" + "r" * (len(self.header) - 2) + "l"
        return "\n".join(
            [rf"\begin{{tabular}}{{{spec}}}", r"\hline", head, r"\hline", *rows, r"\hline", r"\end{tabular}", notes]
        )

    def __str__(self) -> str:
        return self.as_text()

    def _repr_html_(self) -> str:
        return self.as_html()


def title_of(result: "Pooled") -> tuple[str, ...]:
    """What was fitted, on what, pooled how, and what the intervals are about."""
    rows = f" of {result.rows:,} rows" if result.rows is not None else ""
    return (
        result.estimates.title or "Pooled estimates",
        f"Pooled over {result.datasets} synthetic datasets{rows}; rule: {result.rule.name}",
        f"Intervals are for {result.estimand}.",
    )


def alerts_of(result: "Pooled") -> tuple[str, ...]:
    """What a reader must know before the numbers: warnings, and whether the release supports the analysis."""
    notes = [f"{WARNING} {warning}" for warning in result.warnings]
    notes += [note for note in result.estimates.notes if note.startswith(WARNING)]
    return (*notes, *_support_notes(result))


def notes_of(result: "Pooled") -> tuple[str, ...]:
    """Everything else besides the numbers, the most serious first."""
    notes: list[str] = []
    notes += _by_message(FELL_BACK, result.fallbacks)
    notes += _by_message(CAREFUL, result.cautions)
    notes += [
        f"Left out in {count} of {result.datasets} datasets: {reason}." for reason, count in result.left_out.items()
    ]
    used = [one.datasets for one in result.pooled]
    if min(used) < result.datasets:
        notes.append(f"Datasets that entered, by term: {spread_summary(used)} of {result.datasets}.")
    if result.rows is not None and result.original_rows is not None:
        notes.append("lost: share of the information lost to synthesis and privacy noise.")
    return (*notes, *(note for note in result.estimates.notes if not note.startswith(WARNING)))


def _support_notes(result: "Pooled") -> list[str]:
    if result.support is None:
        return [UNKNOWN]
    notes = list(result.support.sentences)
    if result.unsupported:
        notes.append(f"{UNSUPPORTED} marks terms that describe an assumption of the release's model, not the data.")
    elif not result.support.supported:
        notes.append("Coefficients adjusted for such columns rest on that assumption in part.")
    return notes


def _by_message(mark: str, messages: Mapping[str, str]) -> list[str]:
    """One note per message, naming the terms it is about."""
    terms: dict[str, list[str]] = {}
    for term, message in messages.items():
        terms.setdefault(message, []).append(term)
    return [f"{mark} {', '.join(names)}: {message}." for message, names in terms.items()]


def _marks(result: "Pooled", term: str) -> str:
    marks = {
        UNSUPPORTED: term in result.unsupported,
        FELL_BACK: term in result.fallbacks,
        CAREFUL: term in result.cautions,
    }
    return "".join(mark for mark, holds in marks.items() if holds)


def _number(value: float) -> str:
    return f"{value:.4f}" if 0.001 <= abs(value) < 1e5 or value == 0 else f"{value:.4g}"


def _pvalue(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _aligned(row: tuple[str, ...], widths: list[int]) -> list[str]:
    return [
        cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]


def _bullets(notes: Sequence[str]) -> list[str]:
    return [f"· {note}" for note in notes]


def _html_list(notes: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>" if notes else ""


def _html_cells(cells: Sequence[str]) -> str:
    return "".join(f"<td>{escape(cell)}</td>" for cell in cells)


def _latex(text: str) -> str:
    return "".join(LATEX.get(c, "\\" + c if c in "&%$#_{}" else c) for c in text)

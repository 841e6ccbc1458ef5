"""Snippets that analyse this very release, to be copied: Python, R and Stata, with its own variables."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from noisewise.analysis.formulas import parse
from noisewise.analysis.remedies import REMEDIES
from noisewise.exports.formats import Stata
from noisewise.schema import Categorical, Schema

FOLDER, EXPORTED = "release", "exported"
"""What the snippets call the release's folder, and the folder that its datasets are exported to."""
FAMILIES = {"binomial": ("binomial", "logit"), "gaussian": ("gaussian", "regress"), "poisson": ("poisson", "poisson")}
"""Models that R and Stata have under a name of their own."""
CHOICE_MODELS = {"multinomial-logit": "multinomial_logit", "ordered-logit": "ordered_logit"}
_PLAIN = re.compile(r"[\w\s+:*~()`.-]+")


def snippets(
    schema: Schema,
    analyses: Sequence[Mapping[str, str]],
    pairs: Sequence[Sequence[str]],
    rows: int,
    original_rows: int,
) -> dict[str, Any]:
    """Snippets for the first intended analysis, or for a table of the first measured pair; none where none is apt.

    `rows` are those of a synthetic dataset, `original_rows` those of the confidential table.
    """
    if not analyses:
        return {"about": "", "python": _table(schema, pairs), "r": None, "stata": None}
    first, sizes = analyses[0], {"rows": rows, "original": original_rows}
    model, formula = first["model"].lower(), first["formula"]
    plain = model in FAMILIES and not first.get("remedy") and _PLAIN.fullmatch(formula) is not None
    elsewhere = plain and _terms(formula, schema) is not None
    remedy = first.get("remedy")  # R and Stata have none of that name
    return {
        "about": formula,
        "python": _python(formula, model, REMEDIES[remedy].__name__ if remedy else ""),
        "r": _r(schema, formula, model, sizes) if elsewhere else None,
        "stata": _stata(schema, formula, model, sizes) if elsewhere else None,
    }


def _python(formula: str, model: str, remedy: str) -> str:
    called = CHOICE_MODELS.get(model, "glm")
    given = f"{formula!r}" if model in CHOICE_MODELS else f"{formula!r}, family={model!r}"
    given += f", remedy={remedy}()" if remedy else ""
    names = ", ".join(sorted(filter(None, ["analyze", called, "read_release", remedy])))
    return (
        f"from noisewise import {names}\n\n"
        f"release = read_release({FOLDER!r})\n"
        f"pooled = analyze(release.datasets(), {called}({given}))\n"
        "print(pooled.summary())\n"
    )


def _table(schema: Schema, pairs: Sequence[Sequence[str]]) -> str:
    column, by = (pairs[0][1], f", by={pairs[0][0]!r}") if pairs else (schema.names[0], "")
    return (
        "from noisewise import analyze, proportions, read_release\n\n"
        f"release = read_release({FOLDER!r})\n"
        f"pooled = analyze(release.datasets(), proportions({column!r}{by}))\n"
        "print(pooled.summary())\n"
    )


_R = """\
# First, in a terminal:  noisewise export {folder} {exported} --format csv
files <- sort(list.files("{exported}", pattern = "^dataset-.*[.]csv$", full.names = TRUE))
{levels}fits <- lapply(files, function(file) {{
  data <- read.csv(file, check.names = FALSE, na.strings = "", fileEncoding = "UTF-8")
{factors}  coef(summary(glm({formula}, family = {family}, data = data)))
}})

# Pooling for FULLY SYNTHETIC data: a minus before `within`. mice::pool() has a plus and is wrong here.
fits <- fits[sapply(fits, nrow) == max(sapply(fits, nrow))]  # those with every term
q <- sapply(fits, function(fit) fit[, "Estimate"])
v <- sapply(fits, function(fit) fit[, "Std. Error"]^2)
m <- length(fits); n_syn <- {rows}; n <- {original}
estimate <- rowMeans(q); within <- rowMeans(v); between <- apply(q, 1, var)
total <- (1 + 1 / m) * between - within
total <- ifelse(total > 0, total, (n_syn / n) * within)
df <- (m - 1) * (1 - within / ((1 + 1 / m) * between))^2
half <- qt(0.975, df) * sqrt(total)
print(data.frame(estimate, std.error = sqrt(total), low = estimate - half, high = estimate + half))
"""


def _r(schema: Schema, formula: str, model: str, sizes: Mapping[str, int]) -> str:
    factors = [name for name in _columns(formula) if isinstance(schema.column(name), Categorical)]
    listed = "".join(
        f"  {_r_name(name)} = c({', '.join(map(_r_text, schema.column(name).declared_labels))}),\n" for name in factors
    )
    levels = f"levels_of <- list(\n{listed.removesuffix(chr(44) + chr(10))}\n)\n" if factors else ""
    made = "  for (name in names(levels_of)) data[[name]] <- factor(data[[name]], levels = levels_of[[name]])\n"
    return _R.format(
        **sizes,
        folder=FOLDER,
        exported=EXPORTED,
        levels=levels,
        factors=made if factors else "",
        formula=formula,
        family=FAMILIES[model][0],
    )


_STATA = """\
* First, in a terminal:  noisewise export {folder} {exported} --format stata
local files : dir "{exported}" files "dataset-*.dta"
tempfile pooled
postfile results str200 term double q double v using "`pooled'"
foreach file of local files {{
    use "{exported}/`file'", clear
    {outcome}quietly {command} {left} {right}{options}
    matrix b = e(b)
    matrix V = e(V)
    local names : colfullnames b
    forvalues j = 1/`=colsof(b)' {{
        if V[`j', `j'] > 0 post results ("`: word `j' of `names''") (b[1, `j']) (V[`j', `j'])
    }}
}}
postclose results

* Pooling for FULLY SYNTHETIC data: a minus before `within'. mi estimate has a plus and is wrong here.
use "`pooled'", clear
collapse (mean) estimate = q within = v (sd) between = q (count) m = q, by(term)
replace between = between^2
generate total = (1 + 1/m) * between - within
replace total = ({rows} / {original}) * within if total <= 0
generate df = (m - 1) * (1 - within / ((1 + 1/m) * between))^2
generate stderr = sqrt(total)
generate low = estimate - invttail(df, 0.025) * stderr
generate high = estimate + invttail(df, 0.025) * stderr
list term estimate stderr low high
"""


def _stata(schema: Schema, formula: str, model: str, sizes: Mapping[str, int]) -> str:
    terms = _terms(formula, schema)
    assert terms is not None  # asked before
    (outcome,), right, intercept = terms
    named = dict(zip(schema.names, Stata().column_names(schema.names), strict=True))
    column, left, prepared = schema.column(outcome), named[outcome], ""
    if model == "binomial" and isinstance(column, Categorical):
        second = column.levels[1] if column.integer_levels else 2
        left = "outcome_is_second"
        prepared = f"generate byte {left} = {named[outcome]} == {second} if !missing({named[outcome]})\n    "
    return _STATA.format(
        **sizes,
        folder=FOLDER,
        exported=EXPORTED,
        outcome=prepared,
        command=FAMILIES[model][1],
        left=left,
        right=" ".join("#".join(_stata_factor(schema, named, name) for name in term) for term in right),
        options="" if intercept else ", noconstant",
    )


def _stata_factor(schema: Schema, named: Mapping[str, str], name: str) -> str:
    column = schema.column(name)
    if isinstance(column, Categorical):
        return f"ib{column.levels[0] if column.integer_levels else 1}.{named[name]}"
    return f"i.{named[name]}" if column.type == "boolean" else f"c.{named[name]}"


def _terms(formula: str, schema: Schema) -> tuple[tuple[str, ...], list[tuple[str, ...]], bool] | None:
    """Outcome, terms and whether there is an intercept; None where a term is more than names of columns."""
    from formulaic import Formula

    parsed = Formula(formula)
    if not hasattr(parsed, "lhs"):
        return None
    left = tuple(factor.expr for term in parsed.lhs for factor in term.factors if factor.expr != "1")
    right = [tuple(factor.expr for factor in term.factors) for term in parsed.rhs]
    intercept = ("1",) in right
    terms = [term for term in right if term != ("1",)]
    known = all(name in schema.names for term in [left, *terms] for name in term)
    return (left, terms, intercept) if known and len(left) == 1 and terms else None


def _columns(formula: str) -> list[str]:
    return list(parse(formula).columns)


def _r_name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z][A-Za-z0-9_.]*", name) else "`" + name.replace("`", "\\`") + "`"


def _r_text(label: str) -> str:
    """A text as R reads it; what does not print is written as its number."""
    body = "".join(_r_letter(letter) for letter in label)
    return f'"{body}"'


def _r_letter(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    return letter if letter.isprintable() else f"\\U{{{ord(letter):x}}}"

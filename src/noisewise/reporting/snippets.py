"""Snippets that analyse this very release, to be copied: Python, R and Stata, with its own variables."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from noisewise.analysis.choice_models import CHOICE_MODELS
from noisewise.analysis.formulas import parse
from noisewise.analysis.glm import glm
from noisewise.analysis.remedies import REMEDIES, DropHugeVariances, Remedy, RidgeBootstrap
from noisewise.exports.formats import Stata
from noisewise.schema import Categorical, Schema

FOLDER, EXPORTED = "release", "exported"
"""What the snippets call the release's folder, and the folder that its datasets are exported to."""
FAMILIES = {"binomial": ("binomial", "logit"), "gaussian": ("gaussian", "regress"), "poisson": ("poisson", "poisson")}
"""Models that R and Stata have under a name of their own."""
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
    kind = REMEDIES.get(first.get("remedy", ""))
    remedy = kind() if kind is not None else None
    plain = model in FAMILIES and _PLAIN.fullmatch(formula) is not None and _terms(formula, schema) is not None
    return {
        "about": formula,
        "python": _python(formula, model, type(remedy).__name__ if remedy else ""),
        "r": _r(schema, formula, model, remedy, sizes) if plain and _in_r(remedy, model) else None,
        "stata": _stata(schema, formula, model, remedy, sizes) if plain else None,
    }


def _python(formula: str, model: str, remedy: str) -> str:
    called = CHOICE_MODELS.get(model, glm).__name__
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
{levels}{before}fits <- lapply(files, function(file) {{
  data <- read.csv(file, check.names = FALSE, na.strings = "", fileEncoding = "UTF-8")
{factors}{fit}}})

# Pooling for FULLY SYNTHETIC data: a minus before `within`. mice::pool() has a plus and is wrong here.
fits <- fits[sapply(fits, nrow) == max(sapply(fits, nrow))]  # those with every term
q <- sapply(fits, function(fit) fit[, "Estimate"])
v <- sapply(fits, function(fit) fit[, "Std. Error"]^2)
{after}m <- rowSums(!is.na(q)); n_syn <- {rows}; n <- {original}
estimate <- rowMeans(q, na.rm = TRUE); within <- rowMeans(v, na.rm = TRUE); between <- apply(q, 1, var, na.rm = TRUE)
total <- (1 + 1 / m) * between - within
total <- ifelse(total > 0, total, (n_syn / n) * within)
df <- (m - 1) * (1 - within / ((1 + 1 / m) * between))^2
half <- qt(0.975, df) * sqrt(total)
print(data.frame(m, estimate, std.error = sqrt(total), low = estimate - half, high = estimate + half))
"""
_R_PLAIN = "  coef(summary(glm({formula}, family = {family}, data = data)))\n"
_R_HUGE = """\
huge <- v >= {threshold:g}  # estimates that a dataset hardly determines are left out
q[huge] <- NA; v[huge] <- NA
"""
_R_RIDGE = """\
# A small ridge, for levels that are empty or one-sided in some datasets; its variances are those of a bootstrap. The
# resamples are R's own, so that the last digits differ from the report's.
ridge <- function(x, y, rows) {{
  b <- setNames(numeric(ncol(x)), colnames(x)); weight <- rows / sum(rows); penalty <- diag({penalty:g}, ncol(x))
  for (step in 1:100) {{
    p <- plogis(drop(x %*% b))
    move <- solve(crossprod(x, weight * p * (1 - p) * x) + penalty, crossprod(x, weight * (y - p)) - penalty %*% b)
    b <- b + drop(move) * min(1, 5 / max(abs(move)))
    if (max(abs(move)) < 1e-8) break
  }}
  b
}}
set.seed({seed})
"""
_R_BOOTSTRAP = """\
  frame <- model.frame({formula}, data)
  x <- model.matrix({formula}, frame)
  y <- model.response(frame); y <- if (is.factor(y)) as.integer(y) - 1 else y
  same <- do.call(paste, as.data.frame(cbind(y, x)))
  first <- !duplicated(same); counts <- tabulate(match(same, same[first]))
  drawn <- rmultinom({resamples}, sum(counts), counts)
  b <- apply(drawn, 2, function(rows) ridge(x[first, , drop = FALSE], y[first], rows))
  cbind("Estimate" = rowMeans(b), "Std. Error" = apply(b, 1, sd))
"""


def _in_r(remedy: Remedy | None, model: str) -> bool:
    """Whether the snippet for R has the remedy: a ridge only for logistic regression."""
    return not isinstance(remedy, RidgeBootstrap) or model == "binomial"


def _r(schema: Schema, formula: str, model: str, remedy: Remedy | None, sizes: Mapping[str, int]) -> str:
    factors = [name for name in _columns(formula) if isinstance(schema.column(name), Categorical)]
    listed = "".join(
        f"  {_r_name(name)} = c({', '.join(map(_r_text, schema.column(name).declared_labels))}),\n" for name in factors
    )
    levels = f"levels_of <- list(\n{listed.removesuffix(chr(44) + chr(10))}\n)\n" if factors else ""
    made = "  for (name in names(levels_of)) data[[name]] <- factor(data[[name]], levels = levels_of[[name]])\n"
    ridge = isinstance(remedy, RidgeBootstrap)
    settings = {"formula": formula, "family": FAMILIES[model][0], **(asdict(remedy) if remedy else {})}
    return _R.format(
        **sizes,
        folder=FOLDER,
        exported=EXPORTED,
        levels=levels,
        factors=made if factors else "",
        before=_R_RIDGE.format(**settings) if ridge else "",
        fit=(_R_BOOTSTRAP if ridge else _R_PLAIN).format(**settings),
        after=_R_HUGE.format(**settings) if isinstance(remedy, DropHugeVariances) else "",
    )


_STATA = """\
* First, in a terminal:  noisewise export {folder} {exported} --format stata
{warning}local files : dir "{exported}" files "dataset-*.dta"
tempfile pooled
postfile results str200 term double q double v using "`pooled'"
foreach file of local files {{
    use "{exported}/`file'", clear
    {outcome}quietly {command} {left} {right}{options}
    matrix b = e(b)
    matrix V = e(V)
    local names : colfullnames b
    forvalues j = 1/`=colsof(b)' {{
        if V[`j', `j'] > 0{huge} post results ("`: word `j' of `names''") (b[1, `j']) (V[`j', `j'])
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
list term m estimate stderr low high
"""


_NO_RIDGE = """\
* Stata has no ridge with bootstrap variances. What a dataset does not determine is left out here, and not by chance:
* where m is smaller than the number of datasets, take the term from the snippet for Python{or_r}.
"""


def _stata(schema: Schema, formula: str, model: str, remedy: Remedy | None, sizes: Mapping[str, int]) -> str:
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
        warning=_NO_RIDGE.format(or_r=" or R" if _in_r(remedy, model) else "")
        if isinstance(remedy, RidgeBootstrap)
        else "",
        huge=f" & V[`j', `j'] < {remedy.threshold:g}" if isinstance(remedy, DropHugeVariances) else "",
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

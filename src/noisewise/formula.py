"""Formulas as text: which columns they use, and that they do nothing besides.

Parts of a formula are Python, and formulaic evaluates them. Formulas also come from releases and study files of other
people, so nothing reaches formulaic before every piece has been looked at: columns, numbers, arithmetic, comparisons,
formulaic's own transformations and NumPy's element-wise functions may pass.
"""

import ast
from collections.abc import Iterable
from typing import Any

from noisewise.errors import NoisewiseError, WorkloadError

SUMMARIES = {"max", "mean", "median", "min", "std", "sum"}
"""Functions of NumPy and methods of columns that formulas may call, and that look at a whole column."""
BY_ROW = {"abs", "between", "clip", "isin", "round", "where"}
"""The same that look at one row at a time; besides them NumPy's element-wise functions."""
LEARNING = {"bs", "cc", "center", "cr", "cs", "lag", "poly", "scale", "standardize"}
"""Transformations of formulaic that look at a whole column."""
PLAIN = (
    ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.boolop, ast.operator, ast.unaryop, ast.cmpop,
    ast.Call, ast.keyword, ast.Attribute, ast.Name, ast.Load, ast.Constant, ast.List, ast.Tuple,
)  # fmt: skip
"""Pieces of Python that formulas may hold; names, attributes and calls are looked at one by one."""


def read_formula(text: str, refuse: type[NoisewiseError] = WorkloadError) -> tuple[Any | None, Any]:
    """The terms of the outcome's side (None where there is none) and of the other; `refuse` is what it raises."""
    from formulaic import Formula, SimpleFormula
    from formulaic.errors import FormulaicError
    from formulaic.parser.algos.tokenize import tokenize
    from formulaic.parser.types import Token

    unreadable = refuse(f"Cannot read the formula {text!r}. Write it as 'y ~ a + b'.")
    try:
        for token in tokenize(text):
            if token.kind is Token.Kind.PYTHON:
                _columns(token.token)
        whole = Formula(text)
        sides = (whole.lhs, whole.rhs) if hasattr(whole, "lhs") else (None, whole)
    except _NotAllowedError as error:
        raise refuse(
            f"The formula {text!r} holds {error}, which formulas may not. Use Custom for such analyses."
        ) from None
    except (FormulaicError, SyntaxError, AttributeError, TypeError, ValueError):
        raise unreadable from None
    if not all(side is None or isinstance(side, SimpleFormula) for side in sides):
        raise unreadable
    return sides


def columns_of(terms: Iterable[Any]) -> tuple[str, ...]:
    """The columns that terms use, sorted."""
    return tuple(sorted({name for term in terms for factor in term.factors for name in _of_factor(factor)}))


def looks_at_whole_columns(terms: Iterable[Any]) -> bool:
    """Whether a value in one row depends on other rows, as that of scale(x) or x - x.mean() does."""
    calls = [call for term in terms for factor in term.factors for call in _calls(factor)]
    return any(call in LEARNING or call.rpartition(".")[2] in SUMMARIES for call in calls)


def _calls(factor: Any) -> list[str]:
    """What a factor calls, such as "np.log" or "x.mean"."""
    from formulaic.parser.types import Factor

    if factor.eval_method is not Factor.EvalMethod.PYTHON:
        return []
    return [ast.unparse(node.func) for node in ast.walk(_tree(factor.expr)[0]) if isinstance(node, ast.Call)]


def _tree(expression: str) -> tuple[ast.Expression, dict[str, str]]:
    """A piece of Python taken apart, and the names it has in place of quoted ones."""
    from formulaic.utils.code import sanitize_variable_names

    quoted: dict[str, str] = {}
    return ast.parse(sanitize_variable_names(expression, {}, quoted), mode="eval"), quoted


def _of_factor(factor: Any) -> set[str]:
    from formulaic.parser.types import Factor

    if factor.eval_method is Factor.EvalMethod.LITERAL:
        return set()
    return {factor.expr} if factor.eval_method is Factor.EvalMethod.LOOKUP else _columns(factor.expr)


class _NotAllowedError(Exception):
    """Says what a formula may not hold."""


def _columns(expression: str) -> set[str]:
    """The columns in a piece of Python, of which every part is looked at.

    formulaic could tell too, but forgets those inside its own transformations, such as the x of scale(x).
    """
    tree, quoted = _tree(expression)
    for node in ast.walk(tree):
        if not isinstance(node, PLAIN):
            raise _NotAllowedError(f"{ast.unparse(node)!r}")
        if isinstance(node, ast.Call):
            _look_at_call(node)
        if isinstance(node, ast.Attribute) and not _is_number_of_numpy(node):
            _look_at_attribute(node, tree)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called}
    return {quoted.get(name, name) for name in names - set(_transformations())} | _named_in_text(tree)


def _look_at_call(node: ast.Call) -> None:
    name = ast.unparse(node.func)
    if isinstance(node.func, ast.Name):
        if name not in _transformations():
            raise _NotAllowedError(f"the function {name!r}")
    elif not isinstance(node.func, ast.Attribute):
        raise _NotAllowedError(f"{ast.unparse(node)!r}")


def _look_at_attribute(node: ast.Attribute, tree: ast.AST) -> None:
    """Only contrasts, and functions of np and methods of columns where they are called."""
    import numpy as np

    called = any(isinstance(call, ast.Call) and call.func is node for call in ast.walk(tree))
    owner = node.value.id if isinstance(node.value, ast.Name) else ""
    allowed = {
        "np": isinstance(getattr(np, node.attr, None), np.ufunc) or node.attr in SUMMARIES | BY_ROW,
        "contr": not node.attr.startswith("_"),
    }.get(owner, node.attr in SUMMARIES | BY_ROW)
    if not ((called or owner == "contr") and allowed):
        raise _NotAllowedError(f"{ast.unparse(node)!r}")


def _is_number_of_numpy(node: ast.Attribute) -> bool:
    return ast.unparse(node) in ("np.pi", "np.e", "np.inf", "np.nan")


def _named_in_text(tree: ast.AST) -> set[str]:
    """Columns named as Q("a column")."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Q"]
    return {str(text.value) for call in calls for text in call.args if isinstance(text, ast.Constant)}


def _transformations() -> Iterable[str]:
    from formulaic.transforms import TRANSFORMS

    return tuple(TRANSFORMS)

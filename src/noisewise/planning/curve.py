"""The curve of a plan: how the length of intervals falls with ε, and which ε an interval of a given length needs."""

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from noisewise.drawing.scales import Scale
from noisewise.drawing.svg import circle, element, line, picture, text
from noisewise.planning.expected import ExpectedAnalysis
from noisewise.planning.plan import Plan
from noisewise.planning.tables import number

WIDTH, HEIGHT, BAR = 440.0, 250.0, 40
MOST_CURVES = 4
"""Most analyses that are drawn."""


def needed_epsilon(
    epsilons: Sequence[float], lengths: Sequence[float | None], wanted: float
) -> tuple[float | None, str]:
    """The least ε at which an interval is as short as wanted, and that in words; None if it is not within the budgets.

    Between budgets the logarithm of the length is interpolated linearly in the logarithm of ε. A longer interval
    at a larger ε is chance: lengths are taken as falling.
    """
    known = [(e, length) for e, length in zip(epsilons, lengths, strict=True) if length is not None and length > 0]
    if not known:
        return None, "could not be pooled under any of the budgets"
    falling = np.minimum.accumulate([length for _, length in known])
    if falling[0] <= wanted:
        return known[0][0], f"{known[0][0]:g} or less"
    if falling[-1] > wanted:
        return None, f"more than {known[-1][0]:g}"
    after = int(np.argmax(falling <= wanted))
    (low, _), (high, _) = known[after - 1], known[after]
    share = math.log(falling[after - 1] / wanted) / math.log(falling[after - 1] / falling[after])
    epsilon = low * (high / low) ** share
    return epsilon, f"about {epsilon:.2g}"


def curve_text(plan: Plan, wanted: float | None = None) -> str:
    """The curve for a terminal, a bar per budget; with a wanted length, the ε that each term needs for it."""
    if plan.expected is None:
        return ""
    parts = []
    for analysis in plan.expected.analyses:
        lines = [f"How many times longer than without privacy a typical interval is: {analysis.formula}"]
        ratios = [analysis.times_longer(i) for i in range(len(plan.expected.epsilons))]
        top = math.log(max([2.0, *(ratio for ratio in ratios if ratio is not None)]))
        for epsilon, ratio in zip(plan.expected.epsilons, ratios, strict=True):
            own = "←" if epsilon == plan.epsilon else ""
            if ratio is None:
                lines.append(f"  ε = {epsilon:<6g} could not be pooled {own}".rstrip())
                continue
            bar = "█" * max(1, round(BAR * math.log(max(1.0, ratio)) / top))
            lines.append(f"  ε = {epsilon:<6g} {bar} {number(ratio)} × {own}".rstrip())
        if wanted is not None:
            lines.append(f"For a 95 % interval of length {wanted:g} it takes an ε of")
            lines += [f"  {name}: {words}" for name, words in needed(analysis, plan.expected.epsilons, wanted)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def needed(analysis: ExpectedAnalysis, epsilons: Sequence[float], wanted: float) -> list[tuple[str, str]]:
    """For every term the ε that it needs, in words; none is enough where even the confidential table's is longer."""
    found = []
    for term in analysis.terms:
        words = needed_epsilon(epsilons, term.lengths, wanted)[1]
        if term.without_privacy > wanted:
            words = f"no ε is enough: without privacy its length is {term.without_privacy:.3g}"
        found.append((term.name, words))
    return found


def curve_picture(plan: Plan) -> Markup | None:
    """The curve as SVG, both scales logarithmic; None where nothing was rehearsed or there is one budget only."""
    if plan.expected is None or len(plan.expected.epsilons) < 2:
        return None
    epsilons = [math.log10(epsilon) for epsilon in plan.expected.epsilons]
    curves = [
        [(x, math.log10(r)) for x, r in zip(epsilons, _ratios(analysis, len(epsilons)), strict=True) if r is not None]
        for analysis in plan.expected.analyses[:MOST_CURVES]
    ]
    highest = max([0.5, *(y for curve in curves for _, y in curve)])
    across = Scale(low=min(epsilons), high=max(epsilons), start=46.0, stop=WIDTH - 16)
    up = Scale(
        low=min([0.0, *(y for curve in curves for _, y in curve)]), high=1.08 * highest, start=HEIGHT - 34, stop=14.0
    )
    parts = [text(4, 12, "times longer", "tick"), text(WIDTH - 4, HEIGHT - 4, "ε", "tick", "end")]
    for epsilon, x in zip(plan.expected.epsilons, epsilons, strict=True):
        parts.append(line(across(x), 14, across(x), HEIGHT - 34, "grid"))
        parts.append(text(across(x), HEIGHT - 18, f"{epsilon:g}", "tick", "middle"))
    for times in (1, 2, 5, 10, 20, 50, 100):
        if up.low <= math.log10(times) <= highest:
            y = up(math.log10(times))
            parts.append(line(46, y, WIDTH - 16, y, "zero" if times == 1 else "grid"))
            parts.append(text(40, y + 4, f"{times} ×", "tick", "end"))
    for place, (analysis, curve) in enumerate(zip(plan.expected.analyses, curves, strict=False)):
        places = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in curve)
        parts.append(element("polyline", element("title", analysis.formula), points=places, class_=f"curve c{place}"))
        parts += [circle(across(x), up(y), 3, f"curve c{place}") for x, y in curve]
    names = "; ".join(analysis.formula for analysis in plan.expected.analyses[:MOST_CURVES])
    return picture(WIDTH, HEIGHT, f"Length of intervals by ε for {names}; the figures are in the table", parts, "curve")


def _ratios(analysis: ExpectedAnalysis, budgets: int) -> list[float | None]:
    ratios = [analysis.times_longer(i) for i in range(budgets)]
    return [ratio if ratio is not None and ratio > 0 else None for ratio in ratios]

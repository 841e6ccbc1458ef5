"""From runs to numbers: coverage with bands over repeats, widths, distances, diagnostics, times.

The terms of one repeat share its noise and its table, so that repeats, not terms, are what is counted: a band is the t
interval of the repeats' shares, and for a single term (or when all repeats agree) the exact binomial one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from experiments.experiment import Experiment
from experiments.readings import LEVELS, Reading
from experiments.records import Run

Row = dict[str, object]
REAL = "real data"
ALL = "all terms"
SHARES = ("trusted", "nuts")
"""Numbers of a method that are yes or no: tables have the share of yes."""
NOT_DIAGNOSTIC = ("fit_seconds",)
"""Numbers of a method that other tables have."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """The same reading of the same method at the same budget, over repeats."""

    method: str
    """The method."""
    m: int
    """Datasets pooled; 1 for the naive reading."""
    epsilon: float
    """The budget."""
    analysis: str
    """The analysis."""
    repeats: tuple[tuple[Reading, ...], ...]
    """Readings of all terms, by repeat."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The estimands."""
        return tuple(reading.term for reading in self.repeats[0])

    def only(self, term: str) -> "Group":
        """The same for one term."""
        kept = tuple(tuple(r for r in repeat if r.term == term) for repeat in self.repeats)
        return Group(method=self.method, m=self.m, epsilon=self.epsilon, analysis=self.analysis, repeats=kept)


def groups(runs: Iterable[Run]) -> list[Group]:
    """Runs sorted into groups, in the order in which methods and budgets first occur."""
    found: dict[tuple[str, int, float, str], dict[int, list[Reading]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        for reading in run.readings:
            found[run.method, reading.m, run.epsilon, reading.analysis][run.repeat].append(reading)
    return [
        Group(method=method, m=m, epsilon=epsilon, analysis=analysis, repeats=tuple(map(tuple, repeats.values())))
        for (method, m, epsilon, analysis), repeats in found.items()
    ]


def label(group: Group, largest: Mapping[str, int]) -> str:
    """How tables call a group: the method, unless fewer datasets were used than it makes."""
    if group.m == largest[group.method]:
        return group.method
    return f"{group.method}, {'one dataset' if group.m == 1 else f'm = {group.m}'}"


def largest_pools(runs: Iterable[Run]) -> dict[str, int]:
    """The most datasets that each method's results are pooled over."""
    found: dict[str, int] = {}
    for run in runs:
        found[run.method] = max(found.get(run.method, 1), *(reading.m for reading in run.readings))
    return found


def coverage(group: Group, truth: Mapping[tuple[str, str], float], level: float) -> tuple[float, float, float]:
    """Share of intervals that hold the truth, with its 95 % band; dropped estimates count neither way."""
    hits = [
        [
            _holds(reading, truth[group.analysis, reading.term], level)
            for reading in repeat
            if reading.estimate is not None
        ]
        for repeat in group.repeats
    ]
    return band([float(np.mean(repeat)) for repeat in hits if repeat])


def band(shares: Sequence[float]) -> tuple[float, float, float]:
    """Mean of the repeats' shares and its 95 % band."""
    if not shares:
        return float("nan"), float("nan"), float("nan")
    values, count = np.array(shares), len(shares)
    mean = float(values.mean())
    spread = float(values.std(ddof=1)) if count > 1 else 0.0
    if spread == 0.0 or set(shares) <= {0.0, 1.0}:
        exact = stats.binomtest(round(mean * count), count).proportion_ci(0.95, method="exact")
        return mean, float(exact.low), float(exact.high)
    half = float(stats.t.ppf(0.975, count - 1)) * spread / count**0.5
    return mean, max(0.0, mean - half), min(1.0, mean + half)


def _holds(reading: Reading, truth: float, level: float) -> bool:
    interval = reading.interval(level)
    return interval is not None and interval[0] <= truth <= interval[1]


def widths(group: Group, level: float) -> dict[str, float]:
    """Median width of the intervals of each term."""
    found: dict[str, list[float]] = defaultdict(list)
    for reading in (reading for repeat in group.repeats for reading in repeat):
        interval = reading.interval(level)
        if interval is not None:
            found[reading.term].append(interval[1] - interval[0])
    return {term: float(np.median(values)) for term, values in found.items()}


def real_widths(all_groups: Sequence[Group], level: float) -> dict[tuple[str, str], float]:
    """Widths of the ordinary normal intervals on the real table, by (analysis, term); plain standard errors."""
    plain = {g.analysis: g for g in all_groups if g.method == REAL}
    found = {}
    for analysis, group in plain.items():
        source = plain.get("plain", group) if analysis == "regularised" else group
        found |= {(analysis, term): width for term, width in widths(source, level).items()}
    return found


def width_ratio(group: Group, real: Mapping[tuple[str, str], float], level: float) -> float:
    """Mean over terms of the median width, as a multiple of the real-data interval's."""
    ratios = [
        width / real[group.analysis, term]
        for term, width in widths(group, level).items()
        if (group.analysis, term) in real
    ]
    return float(np.mean(ratios)) if ratios else float("nan")


def coverage_rows(experiment: Experiment, runs: Sequence[Run], level: float = 0.95) -> list[Row]:
    """Coverage, widths, dropped estimates and fallbacks at one level, for all terms together and for each."""
    everything, truth, largest = groups(runs), experiment.truth(), largest_pools(runs)
    real = real_widths(everything, level)
    rows: list[Row] = []
    for group in everything:
        parts = [(ALL, group), *((term, group.only(term)) for term in group.terms)]
        for term, part in parts if len(group.terms) > 1 else parts[1:]:
            readings = [reading for repeat in part.repeats for reading in repeat]
            mean, low, high = coverage(part, truth, level)
            width = widths(part, level).get(term, float("nan"))
            rows.append(
                {
                    "method": label(part, largest),
                    "epsilon": f"{part.epsilon:g}",
                    "analysis": part.analysis,
                    "term": term,
                    "level": level,
                    "repeats": len(part.repeats),
                    "coverage": rounded(mean),
                    "coverage_low": rounded(low),
                    "coverage_high": rounded(high),
                    "median_width": rounded(width),
                    "width_to_real": rounded(width_ratio(part, real, level)),
                    "dropped": sum(reading.estimate is None for reading in readings),
                    "fallbacks": sum(reading.fallback for reading in readings),
                }
            )
    return rows


def calibration_rows(experiment: Experiment, runs: Sequence[Run]) -> list[Row]:
    """Coverage and width of all terms together at every nominal level."""
    everything, truth, largest = groups(runs), experiment.truth(), largest_pools(runs)
    rows: list[Row] = []
    for level in LEVELS:
        real = real_widths(everything, level)
        for group in everything:
            mean, low, high = coverage(group, truth, level)
            rows.append(
                {
                    "method": label(group, largest),
                    "epsilon": f"{group.epsilon:g}",
                    "analysis": group.analysis,
                    "level": level,
                    "coverage": rounded(mean),
                    "coverage_low": rounded(low),
                    "coverage_high": rounded(high),
                    "width_to_real": rounded(width_ratio(group, real, level)),
                }
            )
    return rows


def by_budget(runs: Sequence[Run], make: Callable[[Sequence[Run]], Row]) -> list[Row]:
    """One row per method and budget."""
    found: dict[tuple[str, float], list[Run]] = defaultdict(list)
    for run in runs:
        found[run.method, run.epsilon].append(run)
    return [
        {"method": method, "epsilon": f"{epsilon:g}", "repeats": len(part)} | make(part)
        for (method, epsilon), part in found.items()
    ]


def distance_row(runs: Sequence[Run]) -> Row:
    """Mean distances of marginals over repeats."""
    return {name: rounded(np.mean([run.distances[name] for run in runs])) for name in runs[0].distances}


def time_row(runs: Sequence[Run]) -> Row:
    """Median time of making the datasets and of analysing them, and the longest; of fitting alone where it is known."""
    made = [run.seconds["datasets"] for run in runs]
    fits = [run.numbers["fit_seconds"] for run in runs if "fit_seconds" in run.numbers]
    row: Row = {
        "datasets_seconds": rounded(np.median(made)),
        "datasets_seconds_longest": rounded(max(made)),
        "processor_seconds": rounded(np.median([run.seconds["processor"] for run in runs])),
        "analysis_seconds": rounded(np.median([run.seconds["analysis"] for run in runs])),
    }
    return row | ({"fit_seconds": rounded(np.median(fits)), "fit_seconds_sum": rounded(sum(fits))} if fits else {})


def diagnostics_row(runs: Sequence[Run]) -> Row:
    """The worst of every number a method says about itself: the largest of those that should be small, and so on."""
    row: Row = {}
    for name in dict.fromkeys(name for run in runs for name in run.numbers if name not in NOT_DIAGNOSTIC):
        values = [run.numbers[name] for run in runs if name in run.numbers]
        worst = np.mean(values) if name in SHARES else min(values) if "ess" in name else max(values)
        row[name] = rounded(worst)
    return row


def rounded(value: float) -> float | str:
    """Four significant digits; empty for what does not exist."""
    return "" if not np.isfinite(value) else float(f"{value:.4g}")

"""What the paper reports, to put beside our own runs: coverage and widths read off its figures (±0.01, widths ±0.1).

Source: Räisä, Jälkö, Kaski & Honkela (2023), Noise-Aware Statistical Inference with Differentially Private Synthetic
Data.
"""

from collections.abc import Sequence

from experiments.measures import ALL, Row

TOY_EPSILONS = (0.1, 0.25, 0.5, 1.0, 10.0, 100.0)
TOY_COVERAGE = {
    ("NAPSU-MQ", "x1"): (0.96, 0.95, 0.95, 0.97, 0.95, 0.98),
    ("NAPSU-MQ, canonical cells", "x1"): (0.96, 0.95, 0.95, 0.97, 0.95, 0.98),
    ("PGM", "x1"): (0.31, 0.60, 0.85, 0.76, 0.84, 0.78),
    ("PGM, rounding", "x1"): (0.31, 0.60, 0.85, 0.76, 0.84, 0.78),
    ("PEP", "x1"): (0.35, 0.55, 0.80, 0.81, 0.81, 0.88),
    ("RAP", "x1"): (0.39, 0.28, 0.24, 0.26, 0.23, 0.29),
    ("PrivBayes", "x1"): (0.19, 0.44, 0.67, 0.70, 0.87, 0.86),
    ("PrivLCM", "x1"): (0.72, 0.93, 1.0, 1.0, 0.98, 1.0),
    ("without noise awareness", "x1"): (0.29, 0.56, 0.82, 0.94, 0.95, 0.98),
    ("NAPSU-MQ, one dataset", "x1"): (0.20, 0.41, 0.55, 0.70, 0.78, 0.77),
    ("without noise awareness, one dataset", "x1"): (0.36, 0.44, 0.61, 0.68, 0.78, 0.77),
    ("NAPSU-MQ", "x2"): (0.98, 0.95, 0.94, 0.97, 0.98, 0.94),
    ("NAPSU-MQ, canonical cells", "x2"): (0.98, 0.95, 0.94, 0.97, 0.98, 0.94),
    ("PGM", "x2"): (0.31, 0.69, 0.76, 0.73, 0.83, 0.77),
    ("PrivLCM", "x2"): (0.93, 0.99, 1.0, 1.0, 1.0, 1.0),
}
TOY_WIDTH = {
    ("NAPSU-MQ", "x1"): (1.77, 0.78, 0.50, 0.39, 0.335, 0.345),
    ("NAPSU-MQ, canonical cells", "x1"): (1.77, 0.78, 0.50, 0.39, 0.335, 0.345),
    ("PGM", "x1"): (None, 0.32, 0.32, 0.32, 0.32, 0.32),
    ("PEP", "x1"): (None, 0.32, 0.32, 0.32, 0.32, 0.32),
    ("PrivBayes", "x1"): (None, 0.32, 0.32, 0.32, 0.32, 0.32),
    ("PrivLCM", "x1"): (None, 0.85, 0.83, 0.77, 0.79, 0.765),
}
BUDGETS = (0.1, 0.3, 0.5, 1.0)
ADULT_COVERAGE = {
    ("NAPSU-MQ", "regularised"): (0.93, 0.90, 0.86, 0.92),
    ("NAPSU-MQ, canonical cells", "regularised"): (0.93, 0.90, 0.86, 0.92),
    ("PGM-repeat-5, rounding", "regularised"): (0.99, 1.0, 1.0, 1.0),
    ("PGM, rounding", "regularised"): (0.17, 0.49, 0.59, 0.77),
    ("PGM", "regularised"): (0.17, 0.49, 0.59, 0.77),
    ("PEP", "regularised"): (0.19, 0.33, 0.43, 0.58),
    ("RAP", "regularised"): (0.02, 0.03, 0.01, 0.01),
    ("NAPSU-MQ", "plain"): (0.97, 0.97, 0.95, 0.93),
    ("NAPSU-MQ, canonical cells", "plain"): (0.97, 0.97, 0.95, 0.93),
    ("PGM", "plain"): (0.20, 0.51, 0.64, 0.83),
    ("PGM, rounding", "plain"): (0.20, 0.51, 0.64, 0.83),
}
ADULT_WIDTH = {
    ("NAPSU-MQ", "regularised"): (17.6, 4.1, 2.7, 1.65),
    ("NAPSU-MQ, canonical cells", "regularised"): (17.6, 4.1, 2.7, 1.65),
    ("PGM-repeat-5, rounding", "regularised"): (17.3, 7.6, 6.0, 5.7),
    ("PGM", "regularised"): (1.0, 1.0, 1.0, 1.0),
    ("PEP", "regularised"): (1.0, 1.0, 1.0, 1.0),
    ("NAPSU-MQ, m = 10", "regularised"): (None, None, None, 2.6),
    ("NAPSU-MQ, m = 25", "regularised"): (None, None, None, 1.9),
    ("NAPSU-MQ, m = 50", "regularised"): (None, None, None, 1.7),
}
ADULT_LEVELS: dict[str, dict[float, dict[float, float]]] = {
    "NAPSU-MQ": {
        0.1: {0.5: 0.44, 0.8: 0.79, 0.9: 0.89, 0.95: 0.93},
        0.3: {0.5: 0.42, 0.8: 0.77, 0.9: 0.87, 0.95: 0.90},
        0.5: {0.5: 0.39, 0.8: 0.68, 0.9: 0.79, 0.95: 0.86},
        1.0: {0.5: 0.42, 0.8: 0.73, 0.9: 0.85, 0.95: 0.92},
    },
    "PGM": {
        0.1: {0.5: 0.10, 0.8: 0.15, 0.9: 0.16, 0.95: 0.17},
        0.3: {0.5: 0.23, 0.8: 0.37, 0.9: 0.46, 0.95: 0.49},
        0.5: {0.5: 0.18, 0.8: 0.36, 0.9: 0.52, 0.95: 0.59},
        1.0: {0.5: 0.32, 0.8: 0.55, 0.9: 0.67, 0.95: 0.77},
    },
}
"""Coverage of the regularised analysis by method, budget and nominal level."""
ADULT_DISTANCES = {
    ("NAPSU-MQ", "1-way"): (0.021, 0.007, 0.005, 0.003),
    ("NAPSU-MQ", "2-way"): (0.054, 0.037, 0.033, 0.031),
    ("PGM", "1-way"): (0.014, 0.007, 0.005, 0.002),
    ("PGM", "2-way"): (0.047, 0.034, 0.033, 0.031),
    ("PEP", "1-way"): (0.023, 0.009, 0.005, 0.005),
    ("PEP", "2-way"): (0.060, 0.037, 0.034, 0.034),
}
"""Mean total-variation distance of the marginals."""
CENSUS_COVERAGE = {
    ("NAPSU-MQ", "logistic"): (0.93, 0.87, 0.97, 0.99),
    ("NAPSU-MQ, canonical cells", "logistic"): (0.93, 0.87, 0.97, 0.99),
    ("PGM, rounding", "logistic"): (0.36, 0.83, 0.89, 0.93),
    ("PGM", "logistic"): (0.36, 0.83, 0.89, 0.93),
    ("PGM-repeat-10", "logistic"): (1.0, 1.0, 1.0, 1.0),
}
CENSUS_WIDTH = {
    ("NAPSU-MQ", "logistic"): (5.6, 2.4, 1.7, 1.3),
    ("NAPSU-MQ, canonical cells", "logistic"): (5.6, 2.4, 1.7, 1.3),
    ("PGM-repeat-10", "logistic"): (14.0, 4.7, 3.2, 3.0),
    ("PGM", "logistic"): (1.0, 1.0, 1.0, 1.0),
}


def published_rows(name: str, ours: Sequence[Row]) -> list[Row]:
    """Every published number beside ours, where there is one; empty for experiments that nobody has published."""
    if name == "toy":
        return _beside(ours, "term", TOY_EPSILONS, TOY_COVERAGE, TOY_WIDTH, "median_width")
    if name == "adult":
        return _beside(ours, "analysis", BUDGETS, ADULT_COVERAGE, ADULT_WIDTH, "width_to_real")
    if name in ("census", "census-standin"):
        return _beside(ours, "analysis", BUDGETS, CENSUS_COVERAGE, CENSUS_WIDTH, "width_to_real")
    return []


def _beside(
    ours: Sequence[Row],
    key: str,
    epsilons: Sequence[float],
    published_coverage: dict[tuple[str, str], tuple[float, ...]],
    published_width: dict[tuple[str, str], tuple[float | None, ...]],
    width: str,
) -> list[Row]:
    rows: list[Row] = []
    for row in ours:
        if key == "analysis" and row["term"] != ALL:
            continue
        at = (str(row["method"]), str(row[key]))
        place = epsilons.index(float(str(row["epsilon"]))) if float(str(row["epsilon"])) in epsilons else None
        if place is None or (at not in published_coverage and at not in published_width):
            continue
        rows.append(
            {
                "method": row["method"],
                "epsilon": row["epsilon"],
                key: row[key],
                "repeats": row["repeats"],
                "coverage_published": _at(published_coverage.get(at), place),
                "coverage": row["coverage"],
                "coverage_low": row["coverage_low"],
                "coverage_high": row["coverage_high"],
                "width_published": _at(published_width.get(at), place),
                "width": row[width],
            }
        )
    return rows


def _at(values: Sequence[float | None] | None, place: int) -> float | str:
    found = None if values is None else values[place]
    return "" if found is None else found

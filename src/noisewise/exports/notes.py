"""The note that goes with exported files: how to analyse them, in the words of the software at hand."""

from noisewise.synthesis import SyntheticDatasets

SHORT = "Synthetic: pool all datasets by rules for FULLY SYNTHETIC data"
"""For formats with room for one line: SPSS holds 64 bytes, Stata 80."""

POOLING = """\
HOW TO ANALYSE
1. Run the same analysis on every dataset. One dataset alone gives intervals that are too short.
2. For each estimate, with q[i] and its squared standard error v[i] from dataset i = 1 … m:
       estimate   q = mean of q[i]
       within     v = mean of v[i]
       between    b = sum of (q[i] - q)^2 / (m - 1)
       variance   T = (1 + 1/m) b - v          (a minus: this is NOT the rule for missing data)
                  if T <= 0, use (n_syn / n) v instead
       df         (m - 1) (1 - v / ((1 + 1/m) b))^2
       interval   q ± t(df) sqrt(T)
   Software for multiple imputation (mi estimate, mice::pool, SPSS pooling) adds v instead of subtracting it, and
   its intervals are too wide here.
3. Or write the estimates into a table with the columns dataset, term, estimate, std_error and run
       noisewise pool TABLE.csv --rows {rows} --original-rows {original}
"""


def how_to_analyse(datasets: SyntheticDatasets, reading: str, stacked_by: str = "") -> str:
    """The whole note as text."""
    files = (
        f"One file holds all {len(datasets)} datasets, told apart by the column {stacked_by}."
        if stacked_by
        else f"Each of the {len(datasets)} data files is one dataset."
    )
    marginals = "\n".join(f"    {' × '.join(marginal)}" for marginal in datasets.marginals)
    warnings = "".join(f"WARNING: {warning}\n" for warning in datasets.warnings)
    return (
        f"SYNTHETIC DATA: no row belongs to a person.\n{warnings}\n"
        f"m = {len(datasets)} datasets of n_syn = {datasets.rows:,} rows, made from noisy counts of a table of "
        f"n = {datasets.original_rows:,} rows.\n{files}\n{reading}\n\n"
        + POOLING.format(rows=datasets.rows, original=datasets.original_rows)
        + "\nWHAT THE DATA CAN SAY\nThese columns were measured together; any other relation is an assumption of the "
        f"model, not the data:\n{marginals}\n"
    )

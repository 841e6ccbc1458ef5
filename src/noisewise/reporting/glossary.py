"""The report's words, in plain ones."""

GLOSSARY: tuple[tuple[str, str], ...] = (
    (
        "Confidence interval for the population",
        "A range for a value of the population that the confidential rows were drawn from. 95 % of such intervals hold "
        "it, if the release's model holds. It carries two uncertainties: that only these rows were drawn, and that "
        "their counts were published with privacy noise. Tables and blue lines show these intervals.",
    ),
    (
        "Privacy noise interval",
        "A range for one count of the confidential table itself: the published noisy count, plus or minus what the "
        "privacy noise may have moved it in 95 of 100 cases. It says nothing about the population. Only noisy counts "
        "have it; orange lines show it.",
    ),
    (
        "Differential privacy, ε and δ",
        "A promise about the procedure, whatever the data: exchanging one protected unit for any other changes the "
        "probability of every possible release by a factor of at most e to the power ε, apart from a probability of "
        "δ. Small ε protects more and needs more noise.",
    ),
    ("ρ", "The same cost in another unit, in which the costs of several measurements simply add up."),
    (
        "Marginal",
        "A table of counts over some columns: how many rows have each combination of their levels. A cell is one of "
        "these combinations.",
    ),
    (
        "Noisy count",
        "A cell's count with random noise added. It may be negative, and neighbouring cells need not add up: nobody "
        "has tidied it, because tidying would hide the noise.",
    ),
    (
        "Measured together",
        "Columns that are in one marginal. The release knows how they go together, up to noise. About other "
        "relations it only has its model's assumption: they have no association beyond what the measured "
        "ones imply.",
    ),
    (
        "Posterior",
        "The distribution of everything the noisy counts leave open about the population. Each synthetic dataset comes "
        "from a draw of its own, and so the datasets differ by as much as we do not know.",
    ),
    (
        "Synthetic dataset",
        "Rows drawn from the model. No row belongs to a person. One dataset alone is not data: analyse all of them and "
        "pool.",
    ),
    (
        "Pooling",
        "Putting the results of the same analysis on every dataset together, with the rules for fully synthetic data. "
        "Software for missing data adds where these rules subtract, and gives intervals that are too wide.",
    ),
    (
        "Naive interval",
        "What the analysis of a single synthetic dataset would print if the dataset were taken for real. It leaves out "
        "the privacy noise and is too short.",
    ),
    (
        "R-hat and effective draws",
        "Checks of the computation: whether independent runs agree (R-hat at most 1.01) and how many independent draws "
        "the dependent ones are worth (at least 400 for each count).",
    ),
    (
        "Pareto k̂",
        "How badly an approximation misses the posterior's far ends. Below 0.7 it can be relied on.",
    ),
    (
        "Fallback",
        "What pooling does when its variance comes out negative, which happens by chance with few datasets or little "
        "noise: it uses the variance within the datasets instead. Marked ‡.",
    ),
    (
        "Spread",
        "The standard deviation that sampling and privacy noise together give a noisy count around the model's "
        "expected count. Most differences are below 2 spreads.",
    ),
    (
        "Coverage",
        "How often an interval holds the truth when everything is repeated. A 95 % interval should hold it in about "
        "95 of 100 repetitions.",
    ),
)
"""Words and their meaning."""

"""The picture of a posterior: expected counts with their intervals beside the noisy counts they come from."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from noisewise.drawing.charts import cells, new_figure
from noisewise.errors import ReleaseError
from noisewise.noisy_counts import observed_counts
from noisewise.posterior.expected import expected_counts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from noisewise.posterior.result import Posterior

MOST_PANELS = 12
"""Most marginals in one picture."""


def posterior_plot(posterior: "Posterior", marginals: Sequence[str | Sequence[str]] = ()) -> "Figure":
    """One panel per marginal; the first dozen of all measured ones unless some are named."""
    noisy_counts = posterior.noisy_counts
    measured = list(dict.fromkeys(noisy_counts.marginals))
    names = tuple(name for name in marginals if isinstance(name, str))  # one marginal, its columns one by one
    chosen = [names] if names else [tuple(marginal) for marginal in marginals] or measured[:MOST_PANELS]
    for marginal in chosen:
        if not any(set(marginal) <= set(other) for other in measured):
            known = ", ".join(" × ".join(other) for other in measured)
            raise ReleaseError(f"{list(marginal)} were not measured together. Measured: {known}.")
    columns = min(3, len(chosen))
    rows = -(-len(chosen) // columns)
    figure = new_figure(4.6 * columns, 1.0 + 2.9 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    expected = expected_counts(posterior, chosen)
    for panel, marginal in zip(panels, chosen, strict=False):
        seen, counts = observed_counts(noisy_counts, marginal), expected[marginal]
        assert seen is not None  # it was measured
        labels = [noisy_counts.schema.column(name).labels for name in marginal]
        written = [
            " × ".join(part[i] for part, i in zip(labels, cell, strict=True)) for cell in np.ndindex(counts.mean.shape)
        ]
        ends = np.stack([counts.low.reshape(-1), counts.high.reshape(-1)])
        cells(panel, " × ".join(marginal), written, counts.mean.reshape(-1), ends, seen.counts.reshape(-1))
    for panel in panels[len(chosen) :]:
        panel.set_axis_off()
    handles, words = panels[0].get_legend_handles_labels()
    figure.legend(handles, words, loc="outside lower center", ncols=2, frameon=False)
    return figure

"""Whether the posterior may be relied on, looked at where it matters: the expected counts of the measured cells."""

from typing import Any

import numpy as np

from noisewise.posterior.diagnostics import ess_bulk, ess_tail, rhat
from noisewise.posterior.result import Posterior
from noisewise.reporting.measurements import figure, named_cells

WORST = 6
"""How many cells are named."""
_MOST_NUMBERS = 20_000_000
MEANINGS = {
    "pareto_k": "Pareto k̂: how far the posterior is from the approximation; below 0.7 is good",
    "effective_share": "Share of the draws that would be left after weighting them to the posterior",
    "proposals": "Draws of the approximation that were weighted",
    "distinct": "How many of them are among the draws",
    "rhat": "Largest R-hat over the expected counts; at most 1.01 is good",
    "max_rhat": "Largest R-hat over the expected counts; at most 1.01 is good",
    "ess": "Smallest effective number of draws over the expected counts",
    "min_ess_bulk": "Smallest effective number of draws for the centre of an expected count",
    "min_ess_tail": "Smallest effective number of draws for the tails of an expected count",
    "divergences": "Steps of the sampler that diverged",
    "draws": "Draws of each chain",
    "gradients": "Gradients that were computed: the work, whatever the machine",
    "step": "Step size of the sampler",
}
"""What the verdict's numbers mean, by name."""


def posterior_content(posterior: Posterior) -> dict[str, Any]:
    """Verdict, settings, convergence, and the worst cells by name, as plain values."""
    verdict, record = posterior.verdict, posterior.record
    chains, draws = posterior.theta.shape[:2]
    return {
        "trusted": verdict.trusted,
        "summary": verdict.summary,
        "reasons": list(verdict.reasons),
        "numbers": [
            {"name": name, "meaning": MEANINGS.get(name, name.replace("_", " ")), "value": figure(value)}
            for name, value in verdict.numbers.items()
        ],
        "method": record.method,
        "settings": dict(record.settings),
        "prior_stddev": record.prior_stddev,
        "cells": record.cells,
        "seed": record.seed,
        "chains": chains,
        "draws": draws,
        "parameters": posterior.model.parameters,
        "convergence": convergence(posterior),
        "done": what_was_done(posterior),
        "time": None,  # not in a release, whose bytes depend on its content alone
    }


def what_was_done(posterior: Posterior) -> list[str]:
    """How the method was chosen, and what was done about doubts on the way."""
    record = posterior.record
    done = [record.choice or f"{record.method} was asked for, and nothing else was tried."]
    if record.choice and not record.choice.startswith(record.method):
        done.append(f"Then {record.method} was run.")
    elif record.choice and posterior.verdict.trusted:
        done.append("It passed, and nothing else was tried.")
    if record.extended:
        times = "once" if record.extended == 1 else f"{record.extended} times"
        done.append(f"Further chains of the same method were added {times}, and all draws judged together.")
    if not posterior.verdict.trusted:
        done.append("The doubts that are left are listed above; the release calls itself not fit for use.")
    return done


def convergence(posterior: Posterior) -> dict[str, Any]:
    """R-hat and effective draws over the expected counts; the worst cells, and those the model fits worst."""
    noisy_counts, model = posterior.noisy_counts, posterior.model
    theta, step = posterior.theta, 1
    while theta.shape[0] * theta[:, ::step].shape[1] * max(model.cells, model.tree.cells) > _MOST_NUMBERS * 10:
        step += 1
    kept = theta[:, ::step]
    flat = kept.reshape(-1, kept.shape[2])
    counts = noisy_counts.rows * np.stack([model.probabilities(one) for one in flat])
    series = counts.reshape(*kept.shape[:2], -1)
    hats, bulk, tail = rhat(series), ess_bulk(series), ess_tail(series)
    worst = np.lexsort((np.minimum(bulk, tail), -np.round(hats, 4)))[:WORST]
    names = named_cells(noisy_counts)
    return {
        "every": step,
        "max_rhat": figure(hats.max(), 4),
        "min_ess_bulk": figure(bulk.min(), 4),
        "min_ess_tail": figure(tail.min(), 4),
        "worst": [
            {
                "cell": names[i],
                "rhat": figure(hats[i], 4),
                "ess_bulk": figure(bulk[i], 4),
                "ess_tail": figure(tail[i], 4),
            }
            for i in worst
        ],
        "farthest": _farthest(posterior, counts.mean(axis=0), list(names)),
    }


def _farthest(posterior: Posterior, means: np.ndarray, names: list[str]) -> list[dict[str, Any]]:
    """The cells whose noisy counts lie farthest from the model, in spreads of sampling and privacy noise."""
    measurements = posterior.noisy_counts.measurements
    noisy = np.concatenate([m.values.reshape(-1) for m in measurements]).astype(float)
    noise = np.concatenate([np.full(m.values.size, m.stddev) for m in measurements])
    share = means / posterior.noisy_counts.rows
    spread = (noisy - means) / np.sqrt(noise**2 + means * (1 - share))
    order = np.argsort(-np.round(np.abs(spread), 3), kind="stable")[:WORST]
    return [
        {"cell": names[i], "noisy": int(noisy[i]), "synthetic": figure(means[i]), "spreads": figure(spread[i], 3)}
        for i in order
    ]

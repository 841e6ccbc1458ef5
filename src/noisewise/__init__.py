"""Differentially private synthetic tables with honest error bars.

The stages are functions of values, in the order the data flow:

    noisy_counts = measure(data, schema, workload, Budget(epsilon=1.0))
    posterior = fit(noisy_counts)
    datasets = synthesize(posterior, datasets=100)
    pooled = analyze(datasets, glm("income ~ age + race", family="binomial"))

Names are imported when they are first used, so that an analyst's script starts fast and needs none of the
data holder's libraries.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noisewise.analysis import (
        Bootstrap,
        Custom,
        DropHugeVariances,
        FewDatasets,
        FullySynthetic,
        FullySyntheticNormal,
        Learner,
        Pooled,
        PosteriorMixture,
        RidgeBootstrap,
        analyze,
        check_support,
        contingency,
        correlations,
        cox,
        glm,
        independence_test,
        likelihood_ratio_test,
        logit,
        marginals_for,
        means,
        multinomial_logit,
        ols,
        ordered_logit,
        poisson,
        pool,
        pool_table,
        proportions,
        quantiles,
    )
    from noisewise.artifacts import Release, read_release
    from noisewise.errors import NoisewiseError
    from noisewise.noisy_counts import NoisyCounts
    from noisewise.planning import plan
    from noisewise.posterior.fit import extend, fit
    from noisewise.posterior.hmc import Hmc
    from noisewise.posterior.laplace import Laplace
    from noisewise.posterior.nuts import Nuts
    from noisewise.posterior.problem import NormalPrior
    from noisewise.posterior.result import Posterior
    from noisewise.privacy.adaptive import Adaptive
    from noisewise.privacy.budget import Budget
    from noisewise.privacy.ledger import Ledger
    from noisewise.privacy.measure import measure
    from noisewise.privacy.spanning import Mst
    from noisewise.reporting.report import report
    from noisewise.schema import Schema
    from noisewise.study import Study
    from noisewise.synthesis import SyntheticDatasets, on_spark, synthesize
    from noisewise.workload import Workload

_HOMES = {
    "noisewise.analysis": (
        "Bootstrap",
        "Custom",
        "DropHugeVariances",
        "FewDatasets",
        "FullySynthetic",
        "FullySyntheticNormal",
        "Learner",
        "Pooled",
        "PosteriorMixture",
        "RidgeBootstrap",
        "analyze",
        "check_support",
        "contingency",
        "correlations",
        "cox",
        "glm",
        "independence_test",
        "likelihood_ratio_test",
        "logit",
        "marginals_for",
        "means",
        "multinomial_logit",
        "ols",
        "ordered_logit",
        "poisson",
        "pool",
        "pool_table",
        "proportions",
        "quantiles",
    ),
    "noisewise.artifacts": ("Release", "read_release"),
    "noisewise.errors": ("NoisewiseError",),
    "noisewise.noisy_counts": ("NoisyCounts",),
    "noisewise.planning": ("plan",),
    "noisewise.posterior.fit": ("extend", "fit"),
    "noisewise.posterior.hmc": ("Hmc",),
    "noisewise.posterior.laplace": ("Laplace",),
    "noisewise.posterior.nuts": ("Nuts",),
    "noisewise.posterior.problem": ("NormalPrior",),
    "noisewise.posterior.result": ("Posterior",),
    "noisewise.privacy.adaptive": ("Adaptive",),
    "noisewise.privacy.budget": ("Budget",),
    "noisewise.privacy.ledger": ("Ledger",),
    "noisewise.privacy.measure": ("measure",),
    "noisewise.privacy.spanning": ("Mst",),
    "noisewise.reporting.report": ("report",),
    "noisewise.schema": ("Schema",),
    "noisewise.study": ("Study",),
    "noisewise.synthesis": ("SyntheticDatasets", "on_spark", "synthesize"),
    "noisewise.workload": ("Workload",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Adaptive",
    "Bootstrap",
    "Budget",
    "Custom",
    "DropHugeVariances",
    "FewDatasets",
    "FullySynthetic",
    "FullySyntheticNormal",
    "Hmc",
    "Laplace",
    "Learner",
    "Ledger",
    "Mst",
    "NoisewiseError",
    "NoisyCounts",
    "NormalPrior",
    "Nuts",
    "Pooled",
    "Posterior",
    "PosteriorMixture",
    "Release",
    "RidgeBootstrap",
    "Schema",
    "Study",
    "SyntheticDatasets",
    "Workload",
    "analyze",
    "check_support",
    "contingency",
    "correlations",
    "cox",
    "extend",
    "fit",
    "glm",
    "independence_test",
    "likelihood_ratio_test",
    "logit",
    "marginals_for",
    "means",
    "measure",
    "multinomial_logit",
    "ols",
    "on_spark",
    "ordered_logit",
    "plan",
    "poisson",
    "pool",
    "pool_table",
    "proportions",
    "quantiles",
    "read_release",
    "report",
    "synthesize",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'noisewise' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""The analyst's side: run any ordinary analysis on each synthetic dataset and pool the results.

Nothing here needs the confidential data, the sampler or the privacy library.
"""

from noisewise.analysis.analyze import analyze, pool
from noisewise.analysis.estimates import Estimates, Estimator
from noisewise.analysis.glm import Glm, glm, logit, ols, poisson
from noisewise.analysis.joint_tests import DirectWald, JointTest, ReiterWald
from noisewise.analysis.mixtures import FewDatasets, PosteriorMixture
from noisewise.analysis.pooled import Pooled
from noisewise.analysis.pooling import (
    FullySynthetic,
    FullySyntheticNormal,
    MissingDataRule,
    PartiallySynthetic,
    PooledEstimate,
    PoolingRule,
)
from noisewise.analysis.remedies import DropHugeVariances, RidgeBootstrap
from noisewise.analysis.support import Support, check_support

__all__ = [
    "DirectWald",
    "DropHugeVariances",
    "Estimates",
    "Estimator",
    "FewDatasets",
    "FullySynthetic",
    "FullySyntheticNormal",
    "Glm",
    "JointTest",
    "MissingDataRule",
    "PartiallySynthetic",
    "Pooled",
    "PooledEstimate",
    "PoolingRule",
    "PosteriorMixture",
    "ReiterWald",
    "RidgeBootstrap",
    "Support",
    "analyze",
    "check_support",
    "glm",
    "logit",
    "ols",
    "poisson",
    "pool",
]

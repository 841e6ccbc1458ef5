"""The analyst's side: run any ordinary analysis on each synthetic dataset and pool the results.

Nothing here needs the confidential data, the sampler or the privacy library.
"""

from noisewise.analysis.analyze import analyze, pool
from noisewise.analysis.choice_models import multinomial_logit, ordered_logit
from noisewise.analysis.cox import cox
from noisewise.analysis.custom import Bootstrap, Custom
from noisewise.analysis.descriptive import contingency, correlations, means, proportions
from noisewise.analysis.estimates import Estimates, Estimator
from noisewise.analysis.glm import Glm, glm, logit, ols, poisson
from noisewise.analysis.joint_tests import DirectWald, JointTest, ReiterWald
from noisewise.analysis.learners import Learner
from noisewise.analysis.likelihood_ratio import independence_test, likelihood_ratio_test
from noisewise.analysis.mixtures import FewDatasets, PosteriorMixture
from noisewise.analysis.other_data import MissingDataRule, PartiallySynthetic
from noisewise.analysis.pooled import Pooled
from noisewise.analysis.pooling import FullySynthetic, FullySyntheticNormal, PooledEstimate, PoolingRule
from noisewise.analysis.quantiles import quantiles
from noisewise.analysis.remedies import DropHugeVariances, RidgeBootstrap
from noisewise.analysis.support import Support, check_support
from noisewise.analysis.tables import pool_results, pool_table
from noisewise.workload import marginals_for

__all__ = [
    "Bootstrap",
    "Custom",
    "DirectWald",
    "DropHugeVariances",
    "Estimates",
    "Estimator",
    "FewDatasets",
    "FullySynthetic",
    "FullySyntheticNormal",
    "Glm",
    "JointTest",
    "Learner",
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
    "pool_results",
    "pool_table",
    "proportions",
    "quantiles",
]

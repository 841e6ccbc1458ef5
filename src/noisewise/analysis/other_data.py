"""Pooling rules for data that are not fully synthetic: for comparison, and never for a noisewise release."""

from dataclasses import dataclass

from noisewise.analysis.pooling import MomentRule


@dataclass(frozen=True, kw_only=True)
class MissingDataRule(MomentRule):
    """Rubin's rule for multiply imputed missing data: *not* for synthetic data.

        total = (1 + 1/m) between + within
        dof = (m - 1) (1 + within / ((1 + 1/m) between))²

    Here for comparison and for pooling tables of imputed real data. On a noisewise release its intervals are
    too wide, because the sampling of the synthetic rows is counted twice and added instead of subtracted.

    Source: Rubin (1987), Multiple Imputation for Nonresponse in Surveys, chapter 3.
    """

    name = "missing data, NOT synthetic data (Rubin 1987)"
    source = "Rubin (1987), Multiple Imputation for Nonresponse in Surveys"

    def between_weight(self, datasets: int) -> float:
        return 1 + 1 / datasets


@dataclass(frozen=True, kw_only=True)
class PartiallySynthetic(MomentRule):
    """The rule for data of which some values were replaced and the units are real: *not* for a release.

        total = between / m + within
        dof = (m - 1) (1 + within / (between / m))²

    On a noisewise release it treats the m datasets as if `within` held the sampling of real rows and its
    intervals miss the privacy noise.

    Source: Reiter (2003), Survey Methodology 29:181-188.
    """

    name = "partially synthetic data, NOT fully synthetic (Reiter 2003)"
    source = "Reiter (2003), Survey Methodology 29:181-188"

    def between_weight(self, datasets: int) -> float:
        return 1 / datasets

"""Families of generalized linear models by name, as study files and formulas give them."""

from typing import Any

from noisewise.errors import AnalysisError, did_you_mean

NAMES = {
    "binomial": "Binomial",
    "gaussian": "Gaussian",
    "poisson": "Poisson",
    "gamma": "Gamma",
    "inverse-gaussian": "InverseGaussian",
    "negative-binomial": "NegativeBinomial",
    "tweedie": "Tweedie",
}


def family_of(family: Any) -> Any:
    """A statsmodels family: the one given, or the one with this name and its default link."""
    import warnings

    from statsmodels.genmod import families

    if isinstance(family, families.Family):
        return family
    if not isinstance(family, str) or family.lower() not in NAMES:
        raise AnalysisError(
            f"The family {family!r} is not known. {did_you_mean(str(family), NAMES)} "
            "Or give a statsmodels family, such as sm.families.Binomial(sm.families.links.Probit())."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the negative binomial's alpha is stated in the result instead
        return getattr(families, NAMES[family.lower()])()


def describe(family: Any) -> str:
    """'Binomial, logit link', with the fixed parameter where there is one."""
    fixed = getattr(family, "alpha", None) if type(family).__name__ == "NegativeBinomial" else None
    extra = f", alpha fixed at {fixed:g}" if fixed is not None else ""
    return f"{type(family).__name__}, {type(family.link).__name__.lower()} link{extra}"

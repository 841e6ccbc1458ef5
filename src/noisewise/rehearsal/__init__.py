"""A whole release rehearsed on an invented table: what `plan` expects and what a certificate counts on."""

from noisewise.rehearsal.counts import rehearsed_counts
from noisewise.rehearsal.population import FromPosterior, FromSample, Population, Uniform
from noisewise.rehearsal.rehearse import Rehearsed, rehearse

__all__ = ["FromPosterior", "FromSample", "Population", "Rehearsed", "Uniform", "rehearse", "rehearsed_counts"]

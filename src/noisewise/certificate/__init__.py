"""The coverage certificate: will the intervals from a release cover? Answered without touching the data again."""

from noisewise.certificate.result import Certificate, CertifiedAnalysis, CertifiedTerm, LevelCoverage

__all__ = ["Certificate", "CertifiedAnalysis", "CertifiedTerm", "LevelCoverage"]

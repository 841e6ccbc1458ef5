"""A study file and the stages it leads through."""

from noisewise.study.file import Study, selecting
from noisewise.study.planned import plan_study
from noisewise.study.sections import FIT_METHODS, PosteriorSection, SynthesisSection, settings
from noisewise.study.stages import (
    Outcome,
    analyze_each,
    analyze_release,
    draw,
    fit_release,
    measure_study,
    measured,
    run_study,
    write_report,
)

__all__ = [
    "FIT_METHODS",
    "Outcome",
    "PosteriorSection",
    "Study",
    "SynthesisSection",
    "analyze_each",
    "analyze_release",
    "draw",
    "fit_release",
    "measure_study",
    "measured",
    "plan_study",
    "run_study",
    "selecting",
    "settings",
    "write_report",
]

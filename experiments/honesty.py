"""The price of honesty: how much wider intervals get when the selection of marginals is paid for.

Adult again, with the five marginals that the analysis needs chosen by hand and the rest by a spanning tree over the
confidential table. Counted, the selection takes its share of the one budget. For free, as published experiments have
it, the very same marginals are measured anew with the whole budget, as if finding them had told nobody anything.
"""

from dataclasses import dataclass, field, replace
from functools import cache

from experiments import adult
from experiments.experiment import Experiment
from experiments.napsu import Napsu
from experiments.peers.real import RealData
from experiments.seeded_noise import SeededNoise
from experiments.task import Task
from noisewise.noisy_counts import NoisyCounts
from noisewise.privacy.budget import Budget
from noisewise.privacy.measure import measure_with_insecure_noise_for_tests
from noisewise.privacy.selection import Selection
from noisewise.privacy.spanning import Mst
from noisewise.workload import Workload

BY_HAND = (
    ("age", "income"),
    ("race", "income"),
    ("gender", "income"),
    ("hours-per-week", "income"),
    ("race", "gender"),
)


@dataclass(frozen=True, kw_only=True)
class Selected(Napsu):
    """Marginals beyond those by hand are chosen from the table itself."""

    select: Selection = field(default_factory=Mst)
    """How they are chosen."""
    counted: bool = True
    """Whether choosing them is paid for from the budget."""

    def measured(self, task: Task) -> NoisyCounts:
        honest = measure_with_insecure_noise_for_tests(
            task.confidential.table,
            task.schema,
            task.workload,
            Budget(task.epsilon),
            select=self.select,
            noise=SeededNoise(task.seed_of("noise")),
        )
        if self.counted:
            return honest
        found = [marginal for marginal in honest.marginals if len(marginal) > 1]
        again = replace(task, workload=Workload.of(task.schema, found), seed=task.seed_of("noise", 1))
        return again.noisy_counts()[0]


@cache
def honesty() -> Experiment:
    """The experiment."""
    return Experiment(
        name="honesty",
        title="The price of honesty (Adult)",
        schema=adult.schema(),
        workload=Workload.of(adult.schema(), BY_HAND),
        analyses=adult.ANALYSES,
        truth=adult.truth,
        sample=lambda repeat: adult.confidential(),
        epsilons=(0.1, 0.3, 0.5, 1.0),
        repeats=20,
        methods=(
            Selected(name="selection counted"),
            Selected(name="selection for free", counted=False),
            RealData(),
        ),
    )

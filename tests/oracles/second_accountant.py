"""Run by tests in an environment of its own: bounds of ε by dp-accounting's privacy loss distributions.

    python second_accountant.py '[[25.13, 25.13, 12.0], 4.7e-10, 1e-6]'

prints the lower and the upper bound of ε at that δ for marginals with these noises, two cells of each moving by one.
"""

import json
import sys

from dp_accounting.pld import privacy_loss_distribution


def main() -> None:
    """Read stddevs, δ and the grid; print two numbers."""
    stddevs, delta, grid = json.loads(sys.argv[1])
    bounds = []
    for pessimistic in (False, True):
        whole = None
        for stddev in sorted(set(stddevs)):
            one = privacy_loss_distribution.from_discrete_gaussian_mechanism(
                stddev, sensitivity=1, value_discretization_interval=grid, pessimistic_estimate=pessimistic
            )
            part = one.self_compose(2 * stddevs.count(stddev))
            whole = part if whole is None else whole.compose(part)
        bounds.append(whole.get_epsilon_for_delta(delta))
    print(json.dumps(bounds))


if __name__ == "__main__":
    main()

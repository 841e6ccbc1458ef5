"""The experiments by name."""

from importlib import import_module

from experiments.experiment import Experiment

HOMES = {
    "toy": ("experiments.toy", "toy"),
    "adult": ("experiments.adult", "adult"),
    "census": ("experiments.census", "census"),
    "census-standin": ("experiments.census", "standin"),
    "honesty": ("experiments.honesty", "honesty"),
    "sdnist": ("experiments.sdnist", "sdnist"),
}


def experiment_named(name: str) -> Experiment:
    """An experiment by name; its data are read when it first needs them."""
    if name not in HOMES:
        raise ValueError(f"There is no experiment {name!r}. There are: {', '.join(HOMES)}.")
    module, function = HOMES[name]
    return getattr(import_module(module), function)()

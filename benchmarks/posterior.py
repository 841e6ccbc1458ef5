"""The posterior of Adult's ten marginals against a point estimate of the same model, each as a whole process.

Run: python -m benchmarks.posterior [epsilon ...]. Each side is a fresh Python process: import, read the noisy counts,
fit, save. The point estimate is `mbi`'s, 1,000 steps of mirror descent. What is compiled goes to a cache folder that is
empty at first; the last row finds what the row above it has compiled.
"""

import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.adult_datasets import DATA, DROPPED, _codes, _schema
from experiments.adult import MARGINALS


def measure(folder: Path, epsilon: float) -> None:
    """A release of noisy counts, with seeded noise, and the same as plain arrays."""
    import pandas as pd

    from noisewise.artifacts import Release
    from noisewise.noisy_counts import Measurement, NoisyCounts, PrivacyStatement, PrivacyStep
    from noisewise.privacy.accounting import PrivacyLoss, calibrate

    frame = pd.read_csv(DATA / "adult" / "adult.csv").drop(columns=DROPPED)
    frame = frame[~frame.eq("?").any(axis=1)].reset_index(drop=True)
    schema = _schema(frame)
    codes, random = _codes(frame, schema), np.random.default_rng(1)
    delta = len(codes) ** -2.0
    stddev = calibrate(epsilon, delta, [1.0] * len(MARGINALS))[0]
    measurements = []
    for marginal in MARGINALS:
        ordered = tuple(sorted(marginal, key=schema.index))
        table = np.zeros(schema.shape(ordered), np.int64)
        np.add.at(table, tuple(codes[:, schema.index(name)] for name in ordered), 1)
        noise = np.rint(random.normal(0, stddev, table.shape)).astype(np.int64)
        measurements.append(Measurement(marginal=ordered, values=table + noise, stddev=stddev))
    rho = PrivacyLoss(stddevs=(stddev,) * len(MARGINALS)).rho
    step = PrivacyStep(name="measure", mechanism="seeded noise", rho=rho, stddevs=(stddev,) * len(MARGINALS))
    promise = PrivacyStatement(epsilon=epsilon, delta=delta, rho=rho, accountant="benchmark", steps=(step,))
    counts = NoisyCounts(schema=schema, rows=len(codes), measurements=tuple(measurements), privacy=promise)
    Release(folder).write_noisy_counts(counts)
    plain = (
        dict(zip(schema.names, schema.sizes, strict=True)),
        len(codes),
        [(m.marginal, m.values, stddev) for m in measurements],
    )
    (folder / "plain.pickle").write_bytes(pickle.dumps(plain))


OURS = """
import resource, sys
from noisewise.artifacts import Release
from noisewise.posterior.fit import fit
from noisewise import Hmc, Laplace, Nuts
release = Release(sys.argv[1])
posterior = fit(release.noisy_counts(), {method})
release.write_posterior(posterior)
n = posterior.verdict.numbers
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
said = f"{{posterior.record.method}}, trusted {{posterior.verdict.trusted}}, ESS {{n['ess']:.0f}}"
if "rhat" in n:
    said += (f", R-hat {{n['rhat']:.3f}}, {{1000 * n['ess'] / n['gradients']:.1f}} per 1,000 gradients, "
             f"{{n['divergences']:.0f}} divergences")
else:
    said += f", k {{n['pareto_k']:.2f}}"
print(f"{{said}}, {{peak:.0f}} MB")
"""
POINT = """
import pickle, sys, warnings
warnings.simplefilter("ignore")
import mbi, numpy as np
sizes, rows, measured = pickle.load(open(sys.argv[1] + "/plain.pickle", "rb"))
domain = mbi.Domain(tuple(sizes), tuple(sizes.values()))
seen = [mbi.LinearMeasurement(v.reshape(-1).astype(float), m, stddev=s) for m, v, s in measured]
model = mbi.estimation.MirrorDescent().estimate(domain, seen, known_total=float(rows), iters=1000)
np.savez(sys.argv[1] + "/point.npz", *[np.asarray(model.project(m).datavector()) for m, _, _ in measured])
print("1,000 steps of mirror descent")
"""


METHODS = {
    "noisewise, as chosen": "None",
    "noisewise, Laplace": "Laplace()",
    "noisewise, Hmc": "Hmc()",
    "noisewise, Nuts": "Nuts()",
    "noisewise, Nuts again": "Nuts()",
}


def timed(code: str, folder: Path) -> tuple[float, str]:
    cache = {"XDG_CACHE_HOME": str(folder.parent / "cache")}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False, env=os.environ | cache
    )
    seconds = time.perf_counter() - start
    return seconds, done.stdout.strip() if done.returncode == 0 else "failed: " + done.stderr.strip()[-300:]


def main(epsilons: list[float]) -> None:
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    for epsilon in epsilons:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "release"
            measure(folder, epsilon)
            print(f"\nAdult, ten marginals, ε = {epsilon}")
            base, said = timed(POINT, folder)
            print(f"{'mbi, point estimate':<22}{base:8.2f} s          {said}")
            for label, method in METHODS.items():
                seconds, said = timed(OURS.format(method=method), folder)
                print(f"{label:<22}{seconds:8.2f} s  ×{seconds / base:5.2f}   {said}")


if __name__ == "__main__":
    main([float(e) for e in sys.argv[1:]] or [1.0, 0.1])

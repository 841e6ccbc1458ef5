"""How often intervals cover in a known population, public Adult: what a certificate's verdicts are held against.

Run: python -m benchmarks.certificate_truth [--repeats 100]. Each repeat draws 48,842 rows of the table with
replacement, counts the ten pairs of examples/adult with the noise of ε = 1, fits with the quick method, draws 100
datasets, analyses and pools; the truth is what the table itself gives. Unlike a certificate's populations this one need
not obey the model. What is done is kept in benchmarks/results-local, and a run that was stopped goes on there.
"""

import json
import time
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.adult_datasets import DATA
from noisewise.analysis.glm import glm
from noisewise.analysis.remedies import RidgeBootstrap
from noisewise.certificate.judge import judge
from noisewise.certificate.repeat import recorded
from noisewise.certificate.truth import Truth
from noisewise.rehearsal import FromSample, rehearse
from noisewise.schema import Schema
from noisewise.study import Study, plan_study
from noisewise.study.sample import public_sample

REPOSITORY = Path(__file__).parent.parent
RECORDS = REPOSITORY / "benchmarks" / "results-local" / "certificate-truth.jsonl"
REPEATS, COPIES, DATASETS, SEED = 10, 20, 100, 1
RACE = "income ~ age + race + gender"
ANALYSES = {
    **{f: glm(f, family="binomial") for f in ("income ~ age", "income ~ gender", "income ~ age + gender")},
    RACE: glm(RACE, family="binomial", remedy=RidgeBootstrap()),
}


def truths(codes: np.ndarray, schema: Schema) -> dict[str, Truth]:
    """The analyses on the table itself, twenty times over: drawing ages within their bins then adds next to nothing."""
    table = schema.decode(np.tile(codes, (COPIES, 1)), np.random.default_rng(0))
    found = {}
    for title, estimator in ANALYSES.items():
        estimates = replace(estimator, remedy=None).fit([table])
        values = dict(zip(estimates.terms, map(float, estimates.values[0]), strict=True))
        found[title] = Truth(values=values, how="the table itself")
    return found


def one(number: int, codes: np.ndarray, schema: Schema, stddevs: dict[tuple[str, ...], float], truth) -> dict:
    """One repeat as a certificate would record it, with its seconds of the processor."""
    start = time.process_time()
    seed = int(np.random.SeedSequence(SEED, spawn_key=(number,)).generate_state(1)[0])
    done = rehearse(
        FromSample(codes=codes),
        schema,
        tuple(stddevs),
        tuple(stddevs.values()),
        len(codes),
        ANALYSES,
        datasets=DATASETS,
        seed=seed,
    )
    analyses = {
        title: {"failed": done.failed[title]}
        if title in done.failed
        else recorded(done.pooled[title], done.reference[title], truth[title])
        for title in ANALYSES
    }
    seconds = time.process_time() - start
    return {
        "number": number,
        "stressed": False,
        "trusted": done.verdict.trusted,
        "analyses": analyses,
        "seconds": seconds,
    }


def show(records: list[dict]) -> None:
    """Coverage by term and level, with its band; after the stroke that of the same tables without privacy."""
    seconds = sum(record["seconds"] for record in records) / len(records)
    print(f"{len(records)} repeats, {seconds:.1f} seconds of the processor each")
    print(f"{sum(not record['trusted'] for record in records)} posteriors failed their checks")
    for title in ANALYSES:
        print(f"\n{title}")
        for term in judge(title, records).terms:
            cells = [f"{x.coverage:.2f} [{x.low:.2f}, {x.high:.2f}] / {x.reference:.2f}" for x in term.levels]
            print(f"{term.term:<28}{'   '.join(cells)}   width {term.levels[-1].width_ratio:.2f}")
            print(f"{'':<28}truth {term.truth:.4g}, bias {term.bias:.2g} ± {term.bias_stderr:.2g} of {term.stderr:.2g}")


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    repeats = parser.parse_args().repeats
    study = Study.load(REPOSITORY / "examples" / "adult" / "adult.toml")
    codes, schema = public_sample(DATA / "adult" / "adult.csv", study.load_schema())
    stddevs = {marginal.columns: marginal.stddev for marginal in plan_study(study, rows=len(codes)).marginals}
    truth = truths(codes, schema)
    RECORDS.parent.mkdir(exist_ok=True)
    records = [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []
    with RECORDS.open("a") as file:
        for number in range(len(records), repeats):
            records.append(one(number, codes, schema, stddevs, truth))
            file.write(json.dumps(records[-1]) + "\n")
            file.flush()
    show(records[:repeats])


if __name__ == "__main__":
    main()

"""Synthetic datasets: seeded, independent of each other's number, decoded, and free of heavy libraries."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import chi2

from noisewise.artifacts import Release
from noisewise.errors import FitError, ReleaseError
from noisewise.schema import Categorical, Schema
from noisewise.synthesis import synthesize, write_datasets, write_partitions
from oracles.enumeration import Enumeration
from small_release import SCHEMA, posterior_by_hand, small_counts


@pytest.fixture
def posterior():
    return posterior_by_hand()


def test_each_dataset_has_a_posterior_draw_of_its_own(posterior):
    datasets = synthesize(posterior, 80, seed=3)
    assert sorted(datasets.chosen) == list(range(80))
    assert len(set(synthesize(posterior, 20, seed=3).chosen)) == 20


def test_a_dataset_does_not_depend_on_how_many_there_are_or_on_the_order(posterior):
    few, many = synthesize(posterior, 3, seed=3), synthesize(posterior, 70, seed=3)
    backwards = [many[i] for i in reversed(range(70))][::-1]
    assert all(few[i].equals(many[i]) and many[i].equals(backwards[i]) for i in range(3))
    assert all(a.equals(b) for a, b in zip(many, backwards, strict=True))


def test_another_seed_gives_other_rows_and_other_draws(posterior):
    one, two = synthesize(posterior, 20, seed=3), synthesize(posterior, 20, seed=4)
    assert not one[0].equals(two[0])
    assert one.chosen != two.chosen


def test_datasets_are_a_sequence(posterior):
    datasets = synthesize(posterior, 4, rows=7, seed=3)
    assert len(datasets) == 4
    assert datasets[-1].equals(datasets[3])
    assert [table.num_rows for table in datasets[1:3]] == [7, 7]
    assert len(list(datasets)) == 4
    with pytest.raises(IndexError, match="numbered 0 to 3"):
        datasets[4]
    assert (datasets.rows, datasets.original_rows, datasets.schema) == (7, 500, SCHEMA)
    assert datasets.marginals == posterior.noisy_counts.marginals


def test_rows_default_to_those_of_the_confidential_table(posterior):
    assert synthesize(posterior, 1)[0].num_rows == 500


def test_rows_are_decoded_to_labels_and_representative_values(posterior):
    table = synthesize(posterior, 1, rows=2000, seed=0)[0]

    assert table.column_names == list(SCHEMA.names)
    assert table["ward"].combine_chunks().dictionary.to_pylist() == ["north", "south", "west"]
    assert table["grade"].type.ordered
    assert table["grade"].combine_chunks().dictionary.to_pylist() == [1, 2]
    assert set(table["smoker"].to_pylist()) == {True, False, None}
    assert set(table["age"].to_pylist()) == {19, 49, 80}


def test_decoded_rows_follow_the_enumerated_distribution(posterior):
    """χ² over all rows of the domain, through decoding and Parquet's way back."""
    datasets = synthesize(posterior, 1, rows=50_000, seed=2)
    model = posterior.model
    truth = Enumeration(model.tree.sizes, model.marginals)
    probabilities = truth.probabilities(posterior.draws[datasets.chosen[0]])
    codes = [
        [values.index(value) for value in datasets[0][name].to_pylist()]
        for name, values in {
            "ward": ["north", "south", "west"],
            "smoker": [False, True, None],
            "age": [19, 49, 80],
            "grade": [1, 2],
        }.items()
    ]
    observed = np.bincount(np.ravel_multi_index(codes, model.tree.sizes), minlength=len(probabilities))

    def p_value(p):
        expected = 50_000 * p
        return chi2.sf(((observed - expected) ** 2 / expected).sum(), len(p) - 1)

    assert (50_000 * probabilities).min() > 5
    assert p_value(probabilities) > 1e-3
    other = truth.probabilities(posterior.draws[datasets.chosen[0] - 1])  # the broken twin: another draw
    assert p_value(other) < 1e-6


def test_datasets_of_one_posterior_draw_differ_from_each_other(posterior):
    datasets = synthesize(posterior, 2, seed=0)
    same = synthesize(posterior_by_hand(spread=0.0), 2, seed=0)
    assert not datasets[0].equals(datasets[1])
    assert not same[0].equals(same[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"datasets": 0}, "at least 1"),
        ({"datasets": 5, "rows": 0}, "at least 1"),
        ({"datasets": 81}, "there are 80"),
        ({"datasets": 5, "seed": -1}, "seed=-1"),
        ({"datasets": 5, "seed": 2**128}, "whole number"),
    ],
)
def test_requests_that_cannot_be_met_are_refused(posterior, arguments, message):
    with pytest.raises(FitError, match=message):
        synthesize(posterior, **arguments)


def test_a_posterior_that_failed_needs_an_explicit_flag():
    posterior = posterior_by_hand(trusted=False)
    with pytest.raises(FitError, match=r"far from normal.*allow_untrusted"):
        synthesize(posterior, 5)
    assert synthesize(posterior, 5, allow_untrusted=True).warnings == ("The posterior is far from normal.",)


def test_a_level_that_was_not_drawn_stays_in_the_dictionary_through_parquet(tmp_path):
    schema = Schema(
        name="rare",
        column=(
            Categorical(name="city", levels=("a", "b", "c", "d")),
            Categorical(name="code", levels=(30, 20, 10)),
        ),
    )
    counts = small_counts(schema=schema, marginals=(("city", "code"),))
    posterior = posterior_by_hand(counts, spread=3.0)
    release = Release(tmp_path / "release")
    release.write_noisy_counts(counts)
    release.write_posterior(posterior)
    datasets = synthesize(posterior, 2, rows=2, seed=1)
    release.write_datasets(datasets)

    stored = release.datasets()[0]
    assert stored.equals(datasets[0])
    assert stored["city"].combine_chunks().dictionary.to_pylist() == ["a", "b", "c", "d"]
    assert stored["code"].combine_chunks().dictionary.to_pylist() == [30, 20, 10]


def digest(folder) -> str:
    return hashlib.sha256(b"".join(p.read_bytes() for p in sorted(folder.iterdir()))).hexdigest()


def test_the_same_bytes_in_another_process(posterior, tmp_path):
    write_datasets(synthesize(posterior, 5, seed=8), tmp_path / "here")
    code = (
        "import sys, pathlib; from small_release import posterior_by_hand;"
        "from noisewise.synthesis import synthesize, write_datasets;"
        "write_datasets(synthesize(posterior_by_hand(), 5, seed=8), pathlib.Path(sys.argv[1]))"
    )
    for seed in ("7", "8"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", code, tmp_path / seed], env=environment, check=True)
        assert digest(tmp_path / seed) == digest(tmp_path / "here")


def test_reading_a_release_and_drawing_needs_numpy_and_pyarrow_only(posterior, tmp_path):
    release = Release(tmp_path / "release")
    release.write_noisy_counts(posterior.noisy_counts)
    release.write_posterior(posterior)
    release.write_datasets(synthesize(posterior, 2, seed=8))
    code = (
        "import sys, pathlib, importlib.abc\n"
        "class Absent(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name.split('.')[0] in sys.argv[3].split(): raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import noisewise;"
        "release = noisewise.read_release(sys.argv[1]);"
        "datasets = noisewise.synthesize(release.posterior(), 3, seed=8);"
        "assert datasets[0].equals(release.datasets()[0]);"
        "from noisewise.synthesis import write_datasets;"
        "write_datasets(datasets, pathlib.Path(sys.argv[2]))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    absent = "jax jaxlib opendp duckdb ibis blackjax pandas polars scipy statsmodels formulaic"
    arguments = [release.folder, tmp_path / "more", absent]
    subprocess.run([sys.executable, "-c", code, *arguments], env=environment, check=True)


def test_files_are_numbered_so_that_their_names_sort(posterior, tmp_path):
    steps = []
    paths = write_datasets(
        synthesize(posterior, 12, rows=3, seed=8), tmp_path, lambda what, done, total: steps.append((done, total))
    )
    assert [path.name for path in paths] == [f"dataset-{i:03d}.parquet" for i in range(12)]
    assert steps == [(i + 1, 12) for i in range(12)]
    assert pq.read_table(paths[0]).num_rows == 3


def test_memory_does_not_grow_with_the_number_of_datasets(posterior, tmp_path):
    """Arrow's own count of what is alive at the same time: a few datasets at the most, however many are written."""
    pool = pa.default_memory_pool()

    def peak(count):
        most = [0]
        datasets = synthesize(posterior, count, rows=20_000, seed=8)
        before = pool.bytes_allocated()
        write_datasets(
            datasets, tmp_path / str(count), lambda *_: most.append(max(most[-1], pool.bytes_allocated() - before))
        )
        return most[-1]

    one_dataset = synthesize(posterior, 1, rows=20_000, seed=8)[0].nbytes
    assert peak(60) <= peak(6) + 8 * one_dataset


def test_partitions_are_drawn_from_places_of_their_own(posterior):
    whole = replace(synthesize(posterior, 2, rows=1000, seed=8), partition_rows=300)
    assert whole.partition_count == 4
    parts = list(whole.partitions(1, range(4)))
    assert [len(part) for part in parts] == [300, 300, 300, 100]
    assert whole[1].equals(pa.concat_tables(parts))
    alone = [next(whole.partitions(1, range(i, i + 1))) for i in (3, 1)]
    assert [alone[0].equals(parts[3]), alone[1].equals(parts[1])] == [True, True]
    assert not any(parts[i].equals(parts[j]) for i in range(3) for j in range(i))
    assert parts[0].equals(synthesize(posterior, 2, rows=300, seed=8)[1])


def test_rows_of_different_partitions_are_independent(posterior):
    """Were two partitions drawn from one place of the stream, their rows would agree; χ² tells within seconds."""
    whole = replace(synthesize(posterior, 1, rows=20_000, seed=8), partition_rows=10_000)
    first, second = (part["ward"].combine_chunks().indices.to_numpy() for part in whole.partitions(0, range(2)))

    def p_value(one, other):
        observed = np.bincount(one * 3 + other, minlength=9).reshape(3, 3)
        expected = np.outer(observed.sum(1), observed.sum(0)) / observed.sum()
        return chi2.sf(((observed - expected) ** 2 / expected).sum(), 4)

    assert p_value(first, second) > 1e-3
    assert p_value(first, first) < 1e-9  # the broken twin: the same place


def test_a_file_and_a_folder_of_partitions_hold_the_same_rows(posterior, tmp_path):
    whole = replace(synthesize(posterior, 3, rows=1000, seed=8), partition_rows=300)
    paths = write_datasets(whole, tmp_path / "files")
    steps = []
    stored = write_partitions(whole, tmp_path / "folders", lambda _, done, total: steps.append((done, total)))
    assert steps[-1] == (12, 12)
    assert [p.name for p in sorted((tmp_path / "folders" / "dataset=001").iterdir())] == [
        f"part-{i:05d}.parquet" for i in range(4)
    ]
    for number in range(3):
        assert pq.ParquetFile(paths[number]).num_row_groups == 4
        assert stored[number].equals(whole[number])
        assert pq.read_table(paths[number]).equals(pq.ParquetFile(paths[number]).read())
    one_table = pq.read_table(tmp_path / "folders")
    assert (one_table.num_rows, one_table.column_names[-1]) == (3000, "dataset")
    (tmp_path / "folders" / "dataset=001" / "part-00003.parquet").unlink()
    with pytest.raises(ReleaseError, match="does not hold"):
        stored[1]


def test_memory_does_not_grow_with_the_rows_of_a_dataset(posterior, tmp_path):
    pool = pa.default_memory_pool()

    def peak(rows):
        most, whole = [0], replace(synthesize(posterior, 1, rows=rows, seed=8), partition_rows=20_000)
        before = pool.bytes_allocated()
        tables = whole.partitions(0, range(whole.partition_count))
        for _ in tables:
            most.append(pool.bytes_allocated() - before)
        write_datasets(whole, tmp_path / str(rows))
        return max(most)

    assert peak(400_000) <= 2 * peak(40_000)

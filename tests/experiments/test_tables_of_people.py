"""The real tables: loaded as the experiments say, counted as the package counts them, fetched only if right."""

import json
from pathlib import Path

import numpy as np
import pytest

from experiments import adult, census, fetch, sdnist
from noisewise.analysis import glm
from noisewise.confidential.counts import count

PUBLISHED_ADULT = {
    "const": (-3.4330, 0.045),
    "age": (0.0365, 0.001),
    "Amer-Indian-Eskimo": (-0.8011, 0.151),
    "Asian-Pac-Islander": (0.1861, 0.063),
    "Black": (-0.7196, 0.049),
    "Other": (-0.7437, 0.161),
    "Male": (1.2135, 0.029),
}


@pytest.fixture
def data(data_folder, monkeypatch) -> Path:
    """The real tables where the experiments look for them."""
    monkeypatch.setenv("NOISEWISE_DATA", str(data_folder))
    return data_folder


@pytest.fixture(scope="session")
def census_head(data_folder) -> Path:
    """The first 1,000 rows of the census file."""
    return data_folder / "census1990" / "uscensus1990_first1000.csv"


def test_adult_is_the_published_table_and_fit(data):
    confidential = adult.confidential()
    estimates = glm(adult.FORMULA, "binomial").fit([confidential.table])
    errors = np.sqrt(estimates.variances[0])

    assert confidential.rows == 46_043
    assert np.prod(confidential.schema.sizes) == 1_792_000
    assert adult.adult().workload.cells(confidential.schema) == 159
    for term, value, error in zip(estimates.terms, estimates.values[0], errors, strict=True):
        published, published_error = PUBLISHED_ADULT[adult.TERMS[term]]
        assert value == pytest.approx(published, abs=5e-5)  # published with four digits after the point
        assert error == pytest.approx(published_error, abs=5e-4)


def test_adult_codes_are_what_the_package_counts(data):
    workload = adult.adult().workload
    exact = count(adult.load(data / "adult" / "adult.csv"), adult.schema(), workload.marginals)

    assert all((exact.tables[m] == adult.confidential().counts(m)).all() for m in workload.marginals)


def test_sdnist_codes_are_what_the_package_counts(data):
    workload = sdnist.sdnist().workload
    exact = count(str(data / "sdnist" / "sdnist_ma2019.csv"), sdnist.schema(), workload.marginals)

    assert exact.rows == sdnist.ROWS
    assert all((exact.tables[m] == sdnist.population().counts(m)).all() for m in workload.marginals)


def test_sdnist_samples_differ_by_repeat_and_are_the_same_again(data):
    assert (sdnist.sample(0).codes != sdnist.sample(1).codes).any()
    sdnist.sample.cache_clear()
    assert (sdnist.sample(0).codes == sdnist.sample.__wrapped__(0).codes).all()


def test_the_census_loader_reads_the_real_rows(census_head):
    codes = census.load(census_head, all_rows=1000, rows=135)

    assert codes.shape == (135, 9)
    military = codes[:, list(census.VALUES).index("iMilitary")]
    assert np.bincount(military).tolist() == [102, 10, 23]
    assert np.bincount(codes[:, list(census.VALUES).index("dPoverty")]).tolist() == [121, 7, 7]
    assert np.prod(census.schema("census").sizes) == 10_800


def test_the_census_loader_refuses_what_is_not_the_file(census_head, tmp_path):
    changed = tmp_path / "changed.txt"
    changed.write_text(census_head.read_text().replace("10000,5", "10000,6", 1))

    with pytest.raises(ValueError, match="not those of the census file"):
        census.load(changed)
    with pytest.raises(ValueError, match="1,000 rows"):
        census.load(census_head)  # the head is right and the rest is missing


def test_the_standin_follows_the_tree(data):
    path = data / "census1990" / "uscensus1990_chowliu_cpts_fulldata.json"
    tree = json.loads(path.read_text())["nodes"]

    codes = census.draw_standin(tree, 20_000, seed=1)

    assert codes.shape == (20_000, 9)
    assert (census.draw_standin(tree, 20_000, seed=1) == codes).all()
    # Given iRvetserv the tree makes iVietnam and iKorean independent of iMilitary; among those who served about 26 %
    # served in Vietnam times, by the tree's own tables. 20,000 rows: standard error 0.3 %.
    assert codes[:, list(census.VALUES).index("iVietnam")].mean() == pytest.approx(0.26, abs=0.016)


def test_adult_is_joined_from_the_publishers_two_files(data, tmp_path):
    lines = (data / "adult" / "adult.csv").read_text().splitlines()[1:]
    train = "\n".join(line.replace(",", ", ") for line in lines[:32_561]) + "\n\n"
    test = "|1x3 Cross validator\n" + "\n".join(line.replace(",", ", ") + "." for line in lines[32_561:]) + "\n\n"
    files = {"adult.data": train, "adult.test": test}

    def download(address: str, path: Path) -> None:
        path.write_text(files[address.rsplit("/", 1)[1]])

    assert fetch.fetch("adult", tmp_path, download) == tmp_path / "adult" / "adult.csv"
    files["adult.test"] = test.replace("Private", "Privat", 1)
    with pytest.raises(ValueError, match="SHA-256"):
        fetch.fetch("adult", tmp_path / "again", download)
    assert not list((tmp_path / "again").rglob("*.*"))


def test_a_truncated_census_file_is_removed(census_head, tmp_path):
    def download(address: str, path: Path) -> None:
        path.write_bytes(census_head.read_bytes())

    with pytest.raises(ValueError, match="1,000 rows"):
        fetch.fetch("census", tmp_path, download)
    assert not list(tmp_path.rglob("*.txt*"))
    with pytest.raises(ValueError, match="not a table"):
        fetch.fetch("titanic", tmp_path, download)

"""Exports come back with the same values, with labels, and with a note that says how to pool."""

import io
import zipfile

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pyreadstat
import pytest
from typer.testing import CliRunner

from noisewise.cli.app import app
from noisewise.errors import ReleaseError
from noisewise.exports import Csv, Parquet, Spss, Stata, export, export_stacked
from noisewise.exports.formats import FORMATS
from released import SCHEMA, make_release


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    return make_release(tmp_path_factory.mktemp("release") / "r", datasets=3).datasets()


@pytest.mark.parametrize("format", FORMATS.values(), ids=list(FORMATS))
def test_every_format_writes_each_dataset_its_note_and_the_schema(datasets, format, tmp_path):
    paths = export(datasets, tmp_path / "out", format)

    names = [path.name for path in paths]
    assert names == sorted(
        ["HOW-TO-ANALYSE.txt", "levels.csv", "schema.toml", *(f"dataset-00{i}{format.suffix}" for i in (1, 2, 3))]
    )
    note = (tmp_path / "out" / "HOW-TO-ANALYSE.txt").read_text("utf-8")
    assert "(1 + 1/m) b - v" in note
    assert "--rows 300 --original-rows 300" in note
    assert "race × owner" in note
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_csv_holds_labels_and_empty_cells(datasets, tmp_path):
    export(datasets, tmp_path / "out", Csv())

    frame = pd.read_csv(tmp_path / "out" / "dataset-002.csv")
    expected = datasets[1].to_pandas()
    assert frame["race"].tolist() == expected["race"].tolist()
    assert frame["region"].isna().tolist() == expected["region"].isna().tolist()
    assert frame["region"].dropna().tolist() == expected["region"].dropna().tolist()
    assert frame["hours-per-week"].tolist() == expected["hours-per-week"].tolist()


def test_parquet_keeps_levels_and_carries_the_note(datasets, tmp_path):
    export(datasets, tmp_path / "out", Parquet())

    table = pq.read_table(tmp_path / "out" / "dataset-001.parquet")
    assert b"HOW TO ANALYSE" in table.schema.metadata[b"noisewise"]
    assert list(table["race"].combine_chunks().dictionary.to_pylist()) == ["White", "Black", "Other"]


@pytest.mark.parametrize(("format", "read"), [(Stata(), pyreadstat.read_dta), (Spss(), pyreadstat.read_sav)])
def test_value_labels_names_and_missing_values_come_back(datasets, tmp_path, format, read):
    export(datasets, tmp_path / "out", format)

    frame, meta = read(tmp_path / "out" / f"dataset-001{format.suffix}")
    expected = datasets[0].to_pandas()
    assert list(frame.columns) == ["race", "region", "owner", "hours_per_week", "income", "age"]
    assert meta.column_names_to_labels["race"] == "race: as answered"
    assert meta.column_names_to_labels["hours_per_week"] == "hours-per-week"
    labels = meta.variable_value_labels
    assert labels["race"] == {1: "White", 2: "Black", 3: "Other"}
    assert labels["region"] == {10: "10", 20: "20", 30: "30"}
    assert labels["owner"] == {0: "false", 1: "true"}
    assert "age" not in labels
    assert frame["race"].map(labels["race"]).tolist() == expected["race"].tolist()
    np.testing.assert_array_equal(frame["region"].to_numpy(float), expected["region"].astype(float).to_numpy())
    np.testing.assert_array_equal(frame["age"].to_numpy(float), expected["age"].to_numpy(float))
    assert frame["owner"].astype(bool).tolist() == expected["owner"].tolist()
    assert "FULLY SYNTHETIC" in meta.file_label or "Synthetic" in meta.file_label


def test_spss_carries_the_whole_note(datasets, tmp_path):
    export(datasets, tmp_path / "out", Spss())

    _, meta = pyreadstat.read_sav(tmp_path / "out" / "dataset-001.sav")
    assert "HOW TO ANALYSE" in "\n".join(meta.notes)


def test_the_stacked_archive_is_in_the_long_form_of_mice(datasets, tmp_path):
    path = export_stacked(datasets, tmp_path / "all.zip", Csv())

    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == ["HOW-TO-ANALYSE.txt", "datasets.csv", "levels.csv", "schema.toml"]
        frame = pd.read_csv(io.BytesIO(archive.read("datasets.csv")))
        assert "the column .imp" in archive.read("HOW-TO-ANALYSE.txt").decode()
    assert list(frame.columns) == [".imp", ".id", *SCHEMA.names]
    assert frame[".imp"].value_counts(sort=False).to_dict() == {1: 300, 2: 300, 3: 300}
    assert frame.query("`.imp` == 2")[".id"].tolist() == list(range(1, 301))
    assert frame.query("`.imp` == 3")["race"].tolist() == datasets[2]["race"].to_pylist()


@pytest.mark.parametrize(
    ("format", "read", "index"),
    [(Stata(), pyreadstat.read_dta, ["_mj", "_mi"]), (Spss(), pyreadstat.read_sav, ["Imputation_", "Id_"])],
)
def test_stacked_files_use_the_softwares_own_index(datasets, tmp_path, format, read, index):
    path = export_stacked(datasets, tmp_path / "all.zip", format)

    with zipfile.ZipFile(path) as archive:
        archive.extract(f"datasets{format.suffix}", tmp_path)
    frame, _ = read(tmp_path / f"datasets{format.suffix}")
    assert list(frame.columns[:2]) == index
    assert len(frame) == 900


def test_what_is_there_is_not_overwritten_and_a_failure_leaves_nothing(datasets, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(ReleaseError, match="already there"):
        export(datasets, tmp_path / "out", Csv())

    def stop(what, done, total):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(datasets, tmp_path / "half", Csv(), progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_stacked_needs_a_zip_name(datasets, tmp_path):
    with pytest.raises(ReleaseError, match=r"does not end in \.zip"):
        export_stacked(datasets, tmp_path / "all.csv", Csv())


def test_column_names_stay_apart_when_they_are_shortened():
    names = Stata().column_names(["a-b", "a_b", "A b", "1st", "x" * 40, "x" * 41, "_mj"])

    assert names[:4] == ["a_b", "a_b_2", "A_b_3", "v1st"]
    assert len(set(names)) == 7
    assert max(map(len, names)) <= 32


def test_the_command_writes_and_names_what_it_wrote(tmp_path):
    make_release(tmp_path / "r", datasets=2)

    done = CliRunner().invoke(app, ["export", str(tmp_path / "r"), str(tmp_path / "out"), "--format", "spss"])
    wrong = CliRunner().invoke(app, ["export", str(tmp_path / "r"), str(tmp_path / "x"), "--format", "spps"])

    assert done.exit_code == 0
    assert (tmp_path / "out" / "dataset-002.sav").is_file()
    assert wrong.exit_code == 8

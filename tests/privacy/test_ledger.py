"""The ledger: a debit before every draw, no second draw, a cap that holds, and entries nobody edits unnoticed."""

import os
import re
import sqlite3
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noise_twins import NoNoise, Twin
from noisewise import Budget, Ledger, Schema, Workload, measure
from noisewise.errors import BudgetError, DataError
from noisewise.privacy import chain as chain_module
from noisewise.privacy.accounting import PrivacyLoss
from noisewise.privacy.measure import measure_with_insecure_noise_for_tests
from noisewise.schema import Categorical

SCHEMA = Schema(
    column=(Categorical(name="a", levels=("p", "q")), Categorical(name="b", levels=("r", "s", "t"))),
)
WORKLOAD = Workload.of(SCHEMA, [["a", "b"]])
OTHER = Workload.of(SCHEMA, [["a"], ["b"]])
ROWS = 200


def table(rows=ROWS, seed=0):
    random = np.random.default_rng(seed)
    return pa.table({c.name: random.choice(c.declared_labels, rows) for c in SCHEMA.columns})


class Counting(Twin):
    """Noise that says how often it was drawn, and may fail."""

    def __init__(self, seed=0, failing=None):
        super().__init__(seed=seed)
        self.times, self.failing = 0, failing

    def gaussian(self, counts, stddev, squared_distance, rho):
        self.times += 1
        if self.failing is not None:
            raise self.failing
        return super().gaussian(counts, stddev, squared_distance, rho)


def measured(ledger, epsilon=1.0, workload=WORKLOAD, noise=None, data=None, delta=1e-6, **options):
    return measure_with_insecure_noise_for_tests(
        data if data is not None else table(),
        SCHEMA,
        workload,
        Budget(epsilon, delta),
        ledger,
        noise=noise or Counting(),
        **options,
    )


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger(tmp_path / "people.ledger", "people")


def kinds(ledger):
    return [entry.kind for entry in ledger.entries()]


def edited(ledger, statement, *values):
    """Change the file behind the ledger's back, as somebody would who knows SQLite."""
    connection = sqlite3.connect(ledger.path, isolation_level=None)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(statement, values)
    connection.close()


# One debit, one draw


def test_the_debit_is_on_the_disk_before_anything_is_drawn(ledger):
    seen = []

    class Looking(Counting):
        def gaussian(self, *arguments):
            seen.append(kinds(ledger))
            return super().gaussian(*arguments)

    measured(ledger, noise=Looking())

    assert seen == [["opened", "debited"]]
    assert kinds(ledger) == ["opened", "debited", "measured"]


def test_the_same_question_is_answered_once(ledger):
    noise = Counting()
    first = measured(ledger, noise=noise)
    again = measured(ledger, noise=Counting(seed=1, failing=AssertionError("drawn again")))

    assert noise.times == 1
    assert again.hash == first.hash
    assert again.privacy == first.privacy
    assert kinds(ledger) == ["opened", "debited", "measured"]
    assert ledger.measured(SCHEMA, 2).hash == first.hash


def test_without_a_ledger_every_call_draws():
    noise = Counting()
    measured(None, noise=noise)
    measured(None, noise=noise)

    assert noise.times == 2


@pytest.mark.parametrize(
    "change",
    [
        {"workload": OTHER},
        {"epsilon": 0.9},
        {"delta": 9e-7},
        {"data": table(ROWS + 1)},
    ],
)
def test_another_question_is_another_debit_and_the_first_measurements_cost_is_the_cap(ledger, change):
    measured(ledger)
    noise = Counting()

    with pytest.raises(
        BudgetError, match=r"refuses: 'people' has spent .*noisewise ledger register.*Nothing was drawn"
    ):
        measured(ledger, noise=noise, **change)
    assert noise.times == 0
    assert kinds(ledger) == ["opened", "debited", "measured"]


def test_another_occasion_is_new_noise_and_is_paid_for(ledger, tmp_path):
    ledger.register(Budget(2.0, 1e-6))
    next_year = Ledger(ledger.path, "people", occasion="2027")

    first, second = measured(ledger), measured(next_year, noise=Counting(seed=1))

    assert first.hash != second.hash
    assert ledger.account().debits == 2
    assert 1.0 < ledger.account().epsilon < 2.0


def test_a_failed_draw_leaves_the_debit_and_the_next_try_goes_on_with_it(ledger):
    with pytest.raises(BudgetError, match="could not"):
        measured(ledger, noise=Counting(failing=BudgetError("could not")))
    assert kinds(ledger) == ["opened", "debited"]

    measured(ledger)

    assert kinds(ledger) == ["opened", "debited", "measured"]
    assert ledger.account().debits == 1


def test_a_table_that_does_not_fit_costs_nothing(ledger):
    misfit = pa.table({"a": ["p", "CANARY"], "b": ["r", "s"]})
    with pytest.raises(DataError):
        measured(ledger, data=misfit)
    assert not Path(ledger.path).exists()


# The cap


def test_a_registered_cap_is_never_passed(ledger):
    ledger.register(Budget(2.0, 1e-6))
    taken = 0
    for number in range(10):
        try:
            measured(Ledger(ledger.path, "people", occasion=str(number)), epsilon=0.7)
            taken += 1
        except BudgetError:
            assert taken > 2
    account = ledger.account()

    assert 2 < taken < 10
    assert account.debits == taken
    assert account.spent == PrivacyLoss(stddevs=(account.spent.stddevs[0],) * taken)
    assert (
        account.spent.delta(2.0) <= 1e-6 < (account.spent + PrivacyLoss(stddevs=account.spent.stddevs[:1])).delta(2.0)
    )


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.floats(0.05, 2.0), st.booleans()), min_size=1, max_size=6), st.floats(0.2, 3.0))
def test_whatever_is_asked_the_debits_stay_below_the_cap(tmp_path_factory, asked, cap):
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "l", "people")
    ledger.register(Budget(cap, 1e-6))
    for number, (epsilon, wide) in enumerate(asked):
        before = ledger.entries()
        try:
            occasion = Ledger(ledger.path, "people", occasion=str(number))
            measured(occasion, epsilon=epsilon, workload=OTHER if wide else WORKLOAD)
        except BudgetError:
            assert ledger.entries() == before
        assert ledger.entries()[: len(before)] == before  # it only grows
        assert ledger.account().spent.delta(cap) <= 1e-6


def test_accounts_are_apart(ledger):
    neighbours = Ledger(ledger.path, "neighbours")
    measured(ledger)
    measured(neighbours, noise=Counting(seed=1))

    assert ledger.account().debits == neighbours.account().debits == 1
    assert Ledger(ledger.path, "strangers").account() is None


def test_a_cap_is_registered_once_and_covers_what_was_spent(ledger):
    measured(ledger)
    with pytest.raises(BudgetError, match="already spent more"):
        ledger.register(Budget(0.5, 1e-6))
    with pytest.raises(BudgetError, match="another unit"):
        ledger.register(Budget(3.0, 1e-6), unit="person", max_rows_per_unit=2)

    account = ledger.register(Budget(3.0, 1e-6))

    assert (account.cap, account.registered, account.debits) == (Budget(3.0, 1e-6), True, 1)
    with pytest.raises(BudgetError, match="A cap is set once"):
        ledger.register(Budget(9.0, 1e-6))
    with pytest.raises(BudgetError, match="needs its delta"):
        Ledger(ledger.path, "others").register(Budget(1.0))
    measured(ledger, workload=OTHER)


def test_losses_of_other_units_are_not_added(ledger):
    ledger.register(Budget(5.0, 1e-6), unit="person", max_rows_per_unit=2)
    people = table().append_column("person", pa.array(np.arange(ROWS) // 2))

    with pytest.raises(BudgetError, match="protects another unit"):
        measured(ledger)
    measured(ledger, data=people, unit="person", max_rows_per_unit=2)
    assert ledger.account().unit == "person"


def test_a_cap_whose_delta_promises_nothing_is_refused(ledger):
    ledger.register(Budget(5.0, 0.01))
    with pytest.raises(BudgetError, match="not below 1/rows"):
        measured(ledger)


# The file


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET content = replace(content, '\"stddevs\": [', '\"stddevs\": [9') WHERE kind = 'debited'",
        "UPDATE entry SET dataset = 'nobody' WHERE kind = 'debited'",
        "UPDATE entry SET date = '2001-01-01' WHERE number = 1",
        "DELETE FROM entry WHERE kind = 'debited'",
        "UPDATE entry SET number = number + 10",
        "INSERT INTO entry SELECT 4, date, dataset, kind, content, seal FROM entry WHERE number = 3",
    ],
)
def test_an_edited_ledger_is_noticed_and_stops_everything(ledger, statement):
    measured(ledger)
    edited(ledger, statement)
    noise = Counting()

    for act in (ledger.entries, ledger.account, lambda: measured(ledger, noise=noise, epsilon=0.1)):
        with pytest.raises(BudgetError, match="was edited"):
            act()
    assert noise.times == 0


def test_removing_the_last_entries_is_noticed_by_a_head_noted_before(ledger):
    """The seals cannot tell it; what a person wrote down can."""
    measured(ledger)
    head = ledger.entries()[-1].seal
    edited(ledger, "DELETE FROM entry WHERE kind = 'measured'")

    assert head not in [entry.seal for entry in ledger.entries()]


def test_sqlite_itself_refuses_to_change_an_entry(ledger):
    measured(ledger)
    connection = sqlite3.connect(ledger.path)
    for table_name in ("entry", "counts"):
        for statement in (f"DELETE FROM {table_name}", f"UPDATE {table_name} SET number = 7"):
            with pytest.raises(sqlite3.IntegrityError, match="never changed"):
                connection.execute(statement)
    connection.close()


def test_edited_noisy_counts_are_not_given_out(ledger):
    measured(ledger)
    edited(ledger, "UPDATE counts SET cells = ?", np.arange(6, dtype="<i8").tobytes())
    with pytest.raises(BudgetError, match="not those that were measured"):
        measured(ledger)
    edited(ledger, "DELETE FROM counts")
    with pytest.raises(BudgetError, match="not those that were measured"):
        measured(ledger)


def test_the_file_is_for_its_owner_whatever_the_umask(ledger):
    before = os.umask(0)
    try:
        measured(ledger)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in Path(ledger.path).parent.iterdir()} == {0o600}


def test_commits_wait_for_the_disk(ledger, monkeypatch):
    levels = []
    keep = chain_module.Chain.append

    def looking(self, *arguments):
        levels.append(self._connection.execute("PRAGMA synchronous").fetchone()[0])
        return keep(self, *arguments)

    monkeypatch.setattr(chain_module.Chain, "append", looking)
    measured(ledger)
    assert levels
    assert min(levels) >= 2  # 2 is FULL, 3 EXTRA


def test_files_that_are_no_ledger_are_refused_and_left_alone(tmp_path):
    noise = Counting()
    text, other = tmp_path / "text.ledger", tmp_path / "other.ledger"
    text.write_text("not a database, but quite long " * 100)
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    for path in (text, other, tmp_path, tmp_path / "none" / "l"):
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(BudgetError, match="ledger") as caught:
            measured(Ledger(path, "people"), noise=noise)
        assert "Traceback" not in str(caught.value)
        assert before is None or path.read_bytes() == before
    assert noise.times == 0


def test_reading_makes_no_file(tmp_path):
    for act in (Ledger(tmp_path / "l", "people").entries, Ledger(tmp_path / "l", "people").account):
        with pytest.raises(BudgetError, match="no ledger at"):
            act()
    assert list(tmp_path.iterdir()) == []


def test_many_threads_asking_the_same_draw_once(ledger):
    noises = [Counting(seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda noise: measured(ledger, noise=noise).hash, noises))

    assert len(set(answers)) == 1
    assert sum(noise.times for noise in noises) == 1
    assert kinds(ledger) == ["opened", "debited", "measured"]


PROCESS = textwrap.dedent("""
    import sys
    from test_ledger import Counting, Ledger, measured
    print(measured(Ledger(sys.argv[1], "people"), noise=Counting(int(sys.argv[2]))).hash)
""")


def test_two_processes_at_once_give_the_same_noisy_counts(ledger):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, ledger.path, str(seed)], stdout=subprocess.PIPE, env=environment
        )
        for seed in range(2)
    ]
    answers = {process.communicate(timeout=120)[0] for process in processes}

    assert [process.returncode for process in processes] == [0, 0]
    assert len(answers) == 1
    assert kinds(ledger) == ["opened", "debited", "measured"]


def test_what_is_stored_has_the_same_size_whatever_was_drawn(ledger, tmp_path):
    """Whether a disk is full must not depend on the noise: else what survives would."""
    sizes = set()
    for seed, noise in enumerate((NoNoise(), Counting(1), Counting(2), Twin(lambda g, s, size: np.full(size, 10**9)))):
        one = Ledger(tmp_path / f"{seed}.ledger", "people")
        measured(one, noise=noise)
        text = sqlite3.connect(one.path).execute("SELECT length(content) FROM entry WHERE kind = 'measured'").fetchone()
        sizes.add((Path(one.path).stat().st_size, text))
    assert len(sizes) == 1


def test_the_public_function_takes_a_ledger(ledger):
    first = measure(table(), SCHEMA, WORKLOAD, Budget(1.0), ledger)

    assert measure(table(), SCHEMA, WORKLOAD, Budget(1.0), ledger=ledger).hash == first.hash
    assert re.fullmatch("[0-9a-f]{64}", ledger.entries()[-1].seal)

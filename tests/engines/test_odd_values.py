"""The embedded engine and PostgreSQL give every odd value the level that plain Python gives it. (Spark: test_spark.)"""

from engines.agreement import codes_in, differences
from engines.odd_values import odd_table


def test_the_embedded_engine():
    assert differences(codes_in(odd_table())) == []


def test_postgres(postgres):
    assert differences(codes_in(postgres.load("odd_values", odd_table()))) == []

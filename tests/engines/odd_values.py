"""Values that engines like to disagree about, for every kind of column and every type that may store it."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from noisewise.schema import Boolean, Categorical, Date, Datetime, Numeric

WORDS = ["Süd", "S\u0075\u0308d", "süd", "SÜD", "日本", "😀", "a'b", 'a"b', "back\\slash", "per%cent_", " Süd", "Süd ",
         "", " ", "?", "n/a", "1", "01", "1.0", "Süd\n", "\tSüd", "NULL", "ß", "ss", "İ", "i̇", "\u00a0", "{}", "$1"]  # fmt: skip
NUMBERS = ["0", "-0", "+0", "1", " 1 ", "1.", ".5", "1.50", "1e2", "1E-2", "1e+02", "1e99", "-1", "10", "10.0", "99999", "N",
           "n", "-9", "-9.0", "", " ", "nan", "NaN", " NAN ", "inf", "-Infinity", "1,5", "1 000", "0x10", "1_000", "٣", "1e",
           "--1", "1\n", "\t2", "3\u2028", "4\u0085", "5\r", "6\v", "\u00a07", "123456789012345678", "1234567890123456789",
           "9007199254740993", "?", "true", "1d", "1f", "7L"]  # fmt: skip
DAYS = ["2020-02-29", "2021-02-29", "1900-02-29", "2000-02-29", "2020-01-01", "2019-12-31", "2020-12-31", "2021-01-01",
        "2020-13-01", "2020-00-10", "2020-1-1", "20200101", " 2020-05-05 ", "2020-05-05\n", "2020-05-05T00:00", "?", "",
        "2020-04-31", "2020-05-05Z", "0001-01-01", "9999-12-31", "２020-01-01", "2020-05-05\u2028"]  # fmt: skip
CLOCKS = ["2020-03-29T02:59:59", "2020-03-29T03:00:00", "2020-03-29 03:00", "2020-03-29T01:00:00Z", "2020-03-29T00:59:59Z",
          "2020-10-25T03:30:00", "2020-10-25T00:30:00Z", "2020-10-25T01:30:00Z", "2020-10-25T03:30:00+0300",
          "2020-10-25T03:30:00+02:00", "2020-06-01", "2020-06-01T24:00", "2020-06-01T23:59:60", "2020-06-01T12:00:00.123456789",
          "2020-06-01T12:00-11:30", "2020-01-01T00:30+0100", "2020-12-31T23:30:00-0100", "2020-06-01T12", "2020-06-01t12:00",
          "2020-06-01T12:00:00.Z", "2020-06-01T12:00+15:00", " 2020-06-01T12:00Z ", "?"]  # fmt: skip
FLOATS = [0.0, -0.0, 1.0, 1.5, 2.5, 0.1, 0.30000000000000004, 0.3, 10.0, 9.999999999999998, -1e-300, 1e308, -1e308, 5e-324,
          float("inf"), float("-inf"), float("nan"), -9.0, 1e16, 99.0, 3.0]  # fmt: skip
WHOLES = [0, 1, -1, 2, 9, 10, -9, 2**53, 2**53 + 1, 2**54 - 1, 2**54, 2**54 + 1, 2**63 - 1, -(2**63), 99, 20200229, 20210229,
          20200101]  # fmt: skip
DECIMALS = [
    Decimal(text) for text in ("0", "1", "1.5", "-9", "0.1", "0.3", "10", "9.9999", "123456789012345.6789", "-0.0001")
]
DATES = [
    date(2019, 12, 31),
    date(2020, 1, 1),
    date(2020, 2, 29),
    date(2020, 12, 31),
    date(2021, 1, 1),
    date(1850, 1, 1),
]
LOCALS = [datetime(2020, 1, 1), datetime(2019, 12, 31, 23, 59, 59, 999999), datetime(2020, 3, 29, 2, 59, 59),
          datetime(2020, 3, 29, 3), datetime(2020, 12, 31, 23, 59, 59, 999999), datetime(2021, 1, 1),
          datetime(2020, 6, 1, 12)]  # fmt: skip
INSTANTS = [datetime(2019, 12, 31, 21, 59, 59, tzinfo=UTC), datetime(2019, 12, 31, 22, tzinfo=UTC),
            datetime(2020, 3, 29, 0, 59, 59, tzinfo=UTC), datetime(2020, 3, 29, 1, tzinfo=UTC),
            datetime(2020, 10, 25, 0, 30, tzinfo=UTC), datetime(2020, 10, 25, 1, 30, tzinfo=UTC),
            datetime(2020, 12, 31, 21, 59, 59, 999999, tzinfo=UTC), datetime(2020, 12, 31, 22, tzinfo=UTC)]  # fmt: skip

TEXT, DECIMAL = pa.string(), pa.decimal128(20, 4)
MONTHS = {"first": date(2020, 1, 1), "last": date(2020, 12, 31), "period": "month", "missing": "category"}
HOURS = {"first": date(2020, 10, 24), "last": date(2020, 10, 25), "period": "hour", "missing": "category"}

words = Categorical(name="words", levels=("Süd", "日本", "a'b", "1", "back\\slash"), fold={"日本": ("😀", "ß")},
                    other="others", missing="category", missing_values=("?", "n/a"))  # fmt: skip
strict = Categorical(name="strict", levels=("Süd", "😀", "", "2.5", "10", "-9"))
grades = Categorical(
    name="grades", levels=(1, 2, 10, -9), fold={"2": (3, 99)}, missing="category", missing_values=("0",)
)
large = Categorical(name="large", levels=(2**53, 2**53 + 1, 2**63 - 1, -(2**63), 123456789012345678))
yes = Boolean(
    name="yes", true_values=("Süd", "N"), false_values=("?",), missing="category", missing_values=("n/a", "-9")
)
bins = Numeric(name="bins", edges=(0, 0.3, 1.5, 10), codes=("N", "-9"), missing="category", missing_values=("?", "99"))
right = Numeric(name="right", edges=(0, 0.3, 1, 2**53, 2**54), closed="right", beyond="end-bins")
endless = Numeric(
    name="endless", edges=(float("-inf"), 0, 2**54, float("inf")), representatives=(-1, 1, 1e17), missing="category"
)
days = Date(name="days", **MONTHS)
clamped = Date(name="clamped", first=date(2020, 1, 15), last=date(2020, 12, 20), period="quarter", beyond="end-bins")
numbers_as_days = Date(name="digits", format="YYYYMMDD", **MONTHS)
times = Datetime(name="times", time_zone="Europe/Helsinki", **MONTHS)
hours = Datetime(name="hours", time_zone="Europe/Helsinki", beyond="end-bins", **HOURS)
zoneless = Datetime(name="zoneless", **MONTHS)

CASES = [
    *((column, WORDS + NUMBERS, TEXT) for column in (words, strict, yes)),
    *((column, NUMBERS, TEXT) for column in (grades, large, bins, right, endless)),
    *((column, FLOATS, pa.float64()) for column in (words, strict, grades, yes, bins, right, endless)),
    *((column, WHOLES, pa.int64()) for column in (words, strict, grades, large, yes, bins, right, endless)),
    *((column, [n for n in WHOLES if abs(n) < 2**31], pa.int32()) for column in (grades, bins)),
    *((column, DECIMALS, DECIMAL) for column in (words, strict, grades, bins, right)),
    *((column, [True, False], pa.bool_()) for column in (yes, grades, bins)),
    *((column, DAYS, TEXT) for column in (days, clamped, times, zoneless)),
    (numbers_as_days, WHOLES, pa.int64()),
    *((column, CLOCKS, TEXT) for column in (times, hours, zoneless, days)),
    *((column, DATES, pa.date32()) for column in (days, clamped, zoneless, times)),
    *((column, LOCALS, pa.timestamp("us")) for column in (days, times, hours, zoneless)),
    *((column, INSTANTS, pa.timestamp("us", tz="UTC")) for column in (times, hours)),
]
"""Column, values, the type that stores them."""


def odd_table() -> pa.Table:
    """All of them beside each other, filled up with missing values; and each row's number."""
    rows = max(len(values) for _, values, _ in CASES) + 1
    columns = {
        f"c{i}": pa.array([*values, *[None] * (rows - len(values))], kind) for i, (_, values, kind) in enumerate(CASES)
    }
    return pa.table({"id": pa.array(range(rows)), **columns})

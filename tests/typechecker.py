"""The run-time type checker of the tests: shapes and types in every signature are enforced while they run."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int is a float, as everywhere in Python

"""`noisewise schema`: help with writing the public schema."""

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from noisewise.cli.app import Debug, group, say

if TYPE_CHECKING:
    import pyarrow as pa

command = group("schema", "Help with writing the public schema of a table.")


@command("draft")
def draft_command(
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write; must not exist yet.")],
    public_sample: Annotated[
        Path | None,
        typer.Option(help="A public table of the same kind (CSV or Parquet): invented, or released before."),
    ] = None,
    codebook: Annotated[
        Path | None, typer.Option(help="A CSV with the headings column, value, label; or column, from, to, bins.")
    ] = None,
    confidential: Annotated[
        Path | None,
        typer.Option(
            "--from-confidential-data",
            help="The confidential table itself (CSV or Parquet). The draft shows what is in it: keep it as the table.",
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="A name for the table.")] = "table",
    debug: Debug = False,
) -> None:
    """Draft a schema, for a person to correct, from a public sample or a codebook.

    A draft from confidential data is marked origin = "data-derived", and measure refuses it until a person has checked
    every level and edge against public knowledge and changed the mark.
    """
    from noisewise.drafting import draft_from_codebook, draft_from_table, draft_text
    from noisewise.errors import SchemaError

    given = [path for path in (public_sample, codebook, confidential) if path is not None]
    if len(given) != 1:
        raise SchemaError("Give one of --public-sample, --codebook and --from-confidential-data: what may be read?")
    if output.exists():
        raise SchemaError(f"{output} is there already. Give another --output; a schema is not written over.")
    left_out: tuple[str, ...] = ()
    if codebook is not None:
        schema = draft_from_codebook(_codebook(codebook), name)
    elif public_sample is not None:
        schema, left_out = draft_from_table(_table(public_sample), name, "public-sample")
    else:
        assert confidential is not None
        os.umask(0o077)
        schema, left_out = draft_from_table(_confidential(confidential), name, "data-derived")
    try:
        output.write_text(draft_text(schema, left_out), "utf-8")
    except OSError as error:
        raise SchemaError(f"Cannot write {output}: {error.strerror}. Give another --output.") from None
    say(f"Drafted {len(schema.columns)} columns into {output}: a draft, to be corrected by a person.")
    if left_out:
        say(f"Left out, because they look like free text or are empty: {', '.join(left_out)}.")
    if confidential is not None:
        say(
            'It shows what the table holds. measure refuses it until you have checked it and wrote origin = "reviewed".'
        )


def _codebook(path: Path) -> list[dict[str, str]]:
    from noisewise.errors import SchemaError

    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return [
                {k: v for k, v in row.items() if isinstance(k, str) and isinstance(v, str)}
                for row in csv.DictReader(file)
            ]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise SchemaError(f"Cannot read the codebook {path}. Give a CSV file in UTF-8.") from None


def _table(path: Path) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    from noisewise.errors import SchemaError

    try:
        return pq.read_table(path) if path.suffix.lower() == ".parquet" else pyarrow.csv.read_csv(path)
    except (OSError, pa.ArrowException) as error:
        raise SchemaError(f"Cannot read {path}: {str(error).splitlines()[0]}") from None


def _confidential(path: Path) -> "pa.Table":
    from noisewise.confidential.withheld import withheld

    return withheld(lambda: _table(path), "source-not-readable")

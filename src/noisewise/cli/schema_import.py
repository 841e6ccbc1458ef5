"""`noisewise schema import`: other people's metadata as the beginning of a schema."""

from pathlib import Path
from typing import Annotated

import typer

from noisewise.cli.app import Debug, say
from noisewise.cli.schemas import command


@command("import")
def import_command(
    metadata: Annotated[Path, typer.Argument(metavar="METADATA", help="The JSON file with the metadata.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The schema file to write; must not exist yet.")],
    format: Annotated[
        str | None, typer.Option(help="sdv, domain or frictionless; by default told from the file.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Which table, if there are several; else a name for it.")] = None,
    debug: Debug = False,
) -> None:
    """Begin a schema from SDV metadata, a domain.json as in private-pgm, or a frictionless table schema.

    None of them says all that a schema says: what has to be added by hand is listed, and stands beside each column in
    the file. The file is marked origin = "data-derived": measure refuses it until a person has completed and checked
    it.
    """
    from noisewise.errors import SchemaError
    from noisewise.importing import import_metadata

    if output.exists():
        raise SchemaError(f"{output} is there already. Give another --output; a schema is not written over.")
    imported = import_metadata(metadata, format=format, table=table)
    try:
        output.write_text(imported.text, "utf-8")
    except OSError as error:
        raise SchemaError(f"Cannot write {output}: {error.strerror}. Give another --output.") from None
    say(f"Began a schema of {len(imported.columns)} columns in {output}, from {imported.source}. To do by hand:")
    for note in imported.to_do:
        say(f"  {note}")

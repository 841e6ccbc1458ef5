"""Other people's metadata as the beginning of a schema: SDV metadata, a domain.json, a frictionless table schema.

None of them says all that a schema has to say, and none says where its levels came from. So what is imported is marked
origin = "data-derived", which `measure` refuses; what has to be added by hand stands beside each column.
"""

from noisewise.importing.columns import Imported, ImportedColumn
from noisewise.importing.formats import FORMATS, import_metadata

__all__ = ["FORMATS", "Imported", "ImportedColumn", "import_metadata"]

"""What the fit will need: the model's size in words, memory, time, and a refusal before anything is spent."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisewise.errors import ModelError
from noisewise.model.masks import possible_cells
from noisewise.model.maxent import MaxEnt
from noisewise.model.parameters import possible_table
from noisewise.model.size import MAX_CLIQUE_CELLS, ModelSize, best_to_leave_out, table_cells
from noisewise.planning.effort import Effort, effort
from noisewise.schema import Schema
from noisewise.workload import Marginal


@dataclass(frozen=True, kw_only=True)
class FitSize:
    """The model of a workload, with the schema's names."""

    parameters: int
    """Free parameters of the model."""
    clique_cells: int
    """Cells of all tables the model keeps."""
    largest_clique: Marginal
    """The columns of the largest of them."""
    largest_cells: int
    """Its cells."""
    width: int
    """Most columns tied together in one table, less one."""
    leave_out: Marginal | None
    """The marginal without which the model would be smallest, where that is worth saying."""
    left: int | None
    """Clique cells without that marginal."""
    effort: Effort
    """What a fit is expected to need."""

    @property
    def fits(self) -> bool:
        """Whether the model can be held in memory."""
        return self.clique_cells <= MAX_CLIQUE_CELLS

    @property
    def advice(self) -> str:
        """What makes the model large and what to leave out, in one sentence; empty if nothing stands out."""
        if self.leave_out is None or self.left is None:
            return ""
        return (
            f"Leaving out {list(self.leave_out)} would bring the tables from {self.clique_cells:,} cells to "
            f"{self.left:,}."
        )


def fit_size(schema: Schema, marginals: Sequence[Marginal]) -> FitSize:
    """Size of the model of some marginals; when it is large, which marginal to leave out."""
    columns = [tuple(schema.index(name) for name in marginal) for marginal in marginals]
    size = ModelSize.of(schema.sizes, columns, schema.impossible)
    largest = size.tree.largest_clique
    measured = {frozenset(marginal) for marginal in columns}
    leave_out, left = None, None
    if frozenset(largest) not in measured:  # a ring of marginals, not one large marginal
        found = best_to_leave_out(schema.sizes, columns, schema.impossible)
        if found is not None and found[1] <= size.cells / 2:
            leave_out, left = tuple(schema.names[column] for column in found[0]), found[1]
    return FitSize(
        parameters=size.parameters,
        clique_cells=size.cells,
        largest_clique=tuple(schema.names[column] for column in largest),
        largest_cells=size.tree.clique_cells(size.tree.cliques.index(largest)),
        width=size.width,
        leave_out=leave_out,
        left=left,
        effort=effort(sum(table_cells(schema.sizes, marginal) for marginal in columns), size.cells),
    )


def possible_cells_of(schema: Schema, marginals: Sequence[Marginal]) -> list[int]:
    """For each marginal the number of cells that the schema's rules leave possible."""
    columns = [tuple(schema.index(name) for name in marginal) for marginal in marginals]
    model = MaxEnt.of(schema.sizes, columns, schema.impossible)
    possible = possible_cells(model.tree, model.masks)
    tables = [possible_table(model.tree, possible, one) for one in columns]
    return [
        math.prod(schema.shape(marginal)) if table is None else int(table.sum())
        for marginal, table in zip(marginals, tables, strict=True)
    ]


def refuse_large_model(schema: Schema, marginals: Sequence[Marginal]) -> FitSize:
    """Refuse, before anything is spent, marginals whose model would not fit in memory."""
    size = fit_size(schema, marginals)
    if not size.fits:
        raise ModelError(
            f"These marginals tie columns into tables of {size.clique_cells:,} cells in all, more than "
            f"{MAX_CLIQUE_CELLS:,}. The largest ties {list(size.largest_clique)} together. "
            f"{size.advice or 'Measure fewer marginals, or declare fewer levels.'} Nothing was measured."
        )
    return size

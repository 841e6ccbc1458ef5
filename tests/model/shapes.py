"""The graphs that every computation on the model is tried on: (sizes of the columns, measured marginals)."""

SHAPES = {
    "tree": ((2, 3, 2, 4), ((0, 1), (1, 2), (1, 3))),
    "cycle": ((2, 3, 2, 2), ((0, 1), (1, 2), (2, 3), (0, 3))),
    "triangle": ((3, 2, 3), ((0, 1), (1, 2), (0, 2))),
    "disconnected": ((2, 3, 2, 2, 3), ((0, 2), (3, 4))),
    "full joint": ((2, 3, 2), ((0, 1, 2),)),
    "singleton": ((4,), ((0,),)),
    "permuted duplicates": ((2, 3, 2), ((1, 0), (0, 1), (2, 1), (2, 1), (1,))),
    "mixed ways": ((2, 2, 3, 2, 2), ((0, 1, 2), (2, 3), (4,), (3, 0))),
    "three ways in a chain": ((2, 3, 2, 2, 3), ((0, 1, 2), (1, 2, 3), (4, 3))),
    "a column of one level": ((2, 1, 3), ((0, 1), (1, 2))),
    "long cycle": ((2, 2, 2, 2, 2, 2), ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0))),
}

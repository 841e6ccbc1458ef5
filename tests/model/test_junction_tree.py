"""The junction tree: its properties, its width, and that it is the same everywhere."""

import math
import os
import subprocess
import sys
from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.shapes import SHAPES
from noisewise.model.junction_tree import JunctionTree, junction_tree

ADULT = (
    (5, 8, 16, 7, 5, 2, 2, 2, 5, 2),
    ((0, 9), (0, 3), (0, 1), (2, 9), (4, 9), (4, 5), (5, 9), (6, 9), (7, 9), (8, 9)),
)


@st.composite
def graphs(draw, columns=7, largest=4):
    count = draw(st.integers(1, columns))
    sizes = tuple(draw(st.lists(st.integers(1, largest), min_size=count, max_size=count)))
    marginal = st.lists(st.integers(0, count - 1), min_size=1, max_size=min(3, count), unique=True).map(tuple)
    return sizes, tuple(draw(st.lists(marginal, min_size=0, max_size=10)))


def holds_running_intersection(tree: JunctionTree) -> bool:
    """For every column, the cliques that hold it are connected in the tree."""
    forest = nx.Graph()
    forest.add_nodes_from(range(len(tree.cliques)))
    forest.add_edges_from((i, parent) for i, parent in enumerate(tree.parents) if parent is not None)
    holders = [[i for i, clique in enumerate(tree.cliques) if c in clique] for c in range(len(tree.sizes))]
    return nx.is_forest(forest) and all(h and nx.is_connected(forest.subgraph(h)) for h in holders)


def check(sizes, marginals):
    tree = junction_tree(sizes, marginals)
    triangulated = nx.Graph()
    triangulated.add_nodes_from(range(len(sizes)))
    triangulated.add_edges_from(edge for clique in tree.cliques for edge in combinations(clique, 2))
    measured = nx.Graph(edge for m in marginals for edge in combinations(m, 2))
    measured.add_nodes_from(range(len(sizes)))

    assert nx.is_chordal(triangulated)
    assert sorted(tree.cliques) == sorted(tuple(sorted(c)) for c in nx.find_cliques(triangulated))
    assert holds_running_intersection(tree)
    assert all(any(set(m) <= set(clique) for clique in tree.cliques) for m in marginals)
    assert nx.number_connected_components(triangulated) == tree.parents.count(None)
    if nx.is_chordal(measured):  # the graph's own cliques are a tree already; no larger one may be chosen
        own = [tuple(clique) for clique in nx.find_cliques(measured)]
        assert tree.cells <= sum(math.prod(tree.shape(clique)) for clique in own)
    for i, parent in enumerate(tree.parents):
        shared = set() if parent is None else set(tree.cliques[i]) & set(tree.cliques[parent])
        assert parent is None or parent < i
        assert tree.separators[i] == tuple(sorted(shared))
        assert set(tree.residuals[i]) == set(tree.cliques[i]) - shared
        assert tree.residuals[i]
        assert i in tree.children[parent] if parent is not None else True
    for marginal in marginals:
        above = [i for i, clique in enumerate(tree.cliques) if set(marginal) <= set(clique)]
        assert tree.home(marginal) == above[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_tree_is_a_junction_tree(shape):
    check(*SHAPES[shape])


@settings(max_examples=300, deadline=None, derandomize=True)
@given(graphs())
def test_the_tree_is_a_junction_tree_on_any_graph(graph):
    check(*graph)


def test_the_check_notices_a_tree_that_is_none():
    broken = JunctionTree(
        sizes=(2, 2, 2), cliques=((0, 1), (1, 2), (0, 2)), parents=(None, 0, 1), separators=((), (1,), (2,))
    )
    assert not holds_running_intersection(broken)


def test_columns_that_nothing_measures_stand_alone():
    tree = junction_tree((2, 3, 4), ((0, 2),))
    assert sorted(tree.cliques) == [(0, 2), (1,)]
    assert tree.parents == (None, None)


def test_the_order_in_which_marginals_are_listed_does_not_matter():
    sizes, marginals = ADULT
    trees = {junction_tree(sizes, order) for order in (marginals, marginals[::-1], tuple(m[::-1] for m in marginals))}
    assert len(trees) == 1


def test_adult_has_the_triangle_and_nothing_larger():
    tree = junction_tree(*ADULT)
    assert tree.cells == 155
    assert tree.largest_clique in {(0, 1)}  # 40 cells; race, gender and income together have 20
    assert (4, 5, 9) in tree.cliques


def test_the_rule_with_fewest_cells_is_kept():
    """Eliminating the large column of a cycle first would join its two neighbours only; any other fill-in holds it."""
    tree = junction_tree((50, 2, 2, 2), ((0, 1), (1, 2), (2, 3), (0, 3)))
    assert sorted(tree.cliques) == [(0, 1, 3), (1, 2, 3)]
    tree = junction_tree((2, 50, 2, 50), ((0, 1), (1, 2), (2, 3), (0, 3)))
    assert sorted(tree.cliques) == [(0, 1, 2), (0, 2, 3)]


def test_the_same_tree_in_every_process():
    code = (
        "from model.test_junction_tree import ADULT; from model.shapes import SHAPES;"
        "from noisewise.model.maxent import MaxEnt;"
        "print([(m.tree, m.blocks) for m in (MaxEnt.of(*g) for g in (ADULT, *SHAPES.values()))])"
    )
    path = os.pathsep.join(sys.path)
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(printed) == 1
    assert b"JunctionTree" in printed.pop()

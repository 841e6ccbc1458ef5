"""The toy's widths by theory: those known for the published cells, and for all of them."""

import pytest

from experiments.toy_theory import delta_width


def test_widths_are_the_known_ones():
    # Known to two or three digits, at the published noise of ε = .1, .25, .5, 1.
    stddevs = (55.70, 23.47, 12.21, 6.37)

    assert [delta_width(s) for s in stddevs] == pytest.approx([1.33, 0.63, 0.425, 0.35], abs=0.006)
    published = [delta_width(s, (1, 1, 1)) for s in stddevs]
    assert published == pytest.approx([1.65, 0.75, 0.475, 0.37], abs=0.006)
    shares = [1 - delta_width(s) / p for s, p in zip(stddevs, published, strict=True)]
    assert shares == pytest.approx([0.19, 0.16, 0.11, 0.05], abs=0.006)


def test_without_noise_no_cell_matters():
    assert delta_width(1e-6) == pytest.approx(delta_width(1e-6, (1, 1, 1)))
    assert delta_width(1e-6) == pytest.approx(0.317, abs=0.001)

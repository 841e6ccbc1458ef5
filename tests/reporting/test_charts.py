"""Pictures for notebooks: ordinary matplotlib figures of what the release holds."""

import builtins
import io

import numpy as np
import pytest

from noisewise.errors import ReleaseError
from noisewise.posterior.expected import expected_counts
from small_release import SCHEMA, posterior_by_hand, small_counts


def drawn(figure):
    """The figure as SVG, which fails if anything in it cannot be drawn."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg")
    return buffer.getvalue().decode()


def test_one_column_of_noisy_counts():
    counts = small_counts()

    figure = counts.plot("ward")

    points = figure.axes[0].containers[0].lines[0].get_xdata()
    np.testing.assert_allclose(points, counts.measurements[0].values.sum(axis=1))
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == list(SCHEMA.column("ward").labels)
    assert drawn(figure)


def test_two_columns_in_the_order_asked_for():
    counts = small_counts()

    figure = counts.plot("age", "smoker")

    shown = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(shown, np.maximum(counts.measurements[1].values.T, 0))
    assert drawn(figure)


@pytest.mark.parametrize("columns", [("ward", "grade"), (), ("ward", "ward"), ("ward", "age", "grade")])
def test_what_cannot_be_drawn_is_said(columns):
    with pytest.raises(ReleaseError, match=r"Measured: |Name one column"):
        small_counts().plot(*columns)


def test_a_posterior_shows_expected_counts_beside_noisy_ones():
    posterior = posterior_by_hand()

    everything, one = posterior.plot(), posterior.plot("age", "grade")

    assert len([axes for axes in everything.axes if axes.lines]) == 3
    means = one.axes[0].lines[0].get_ydata()
    expected = expected_counts(posterior, [("age", "grade")])["age", "grade"]
    np.testing.assert_allclose(means, expected.mean.reshape(-1))
    noisy = one.axes[0].lines[1].get_ydata()
    np.testing.assert_allclose(noisy, posterior.noisy_counts.measurements[2].values.reshape(-1))
    assert drawn(everything)
    with pytest.raises(ReleaseError, match="not measured together"):
        posterior.plot(("ward", "grade"))


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    original = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ReleaseError, match=r"noisewise\[plot\]"):
        small_counts().plot("ward")

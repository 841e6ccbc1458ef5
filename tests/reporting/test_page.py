"""The page in a browser: nothing is asked for, nothing complained of, everything drawn, readable on a phone."""

import json
from itertools import pairwise

import numpy as np
import pytest

from browser import chromium
from conftest import REPOSITORY
from noisewise import report
from noisewise.analysis import analyze, glm
from noisewise.artifacts import Release
from noisewise.certificate import Certificate, CertifiedAnalysis, CertifiedTerm, LevelCoverage
from noisewise.demo import run_demo
from noisewise.noisy_counts import Measurement, NoisyCounts, PrivacyStatement, PrivacyStep
from noisewise.reporting.content import report_content
from noisewise.reporting.html import render
from noisewise.schema import Boolean, Categorical, Schema
from noisewise.study import Study, run_study
from noisewise.synthesis import synthesize
from small_release import PRIVACY, posterior_by_hand

PHONE, DESK = 360, 1200
MEGABYTE = 1_000_000

# Every picture as it is on the screen: its size, its marks that have a size, and the words that stick out of it.
PICTURES = """
JSON.stringify([...document.querySelectorAll('svg[role=img]')].map(svg => {
  const frame = svg.getBoundingClientRect();
  const box = e => e.getBoundingClientRect();
  const marks = [...svg.querySelectorAll('rect, line, circle, path, polygon')];
  const words = [...svg.querySelectorAll('text')];
  return {
    kind: svg.getAttribute('class'), label: svg.getAttribute('aria-label'),
    width: frame.width, height: frame.height,
    marks: marks.length, drawn: marks.filter(m => box(m).width + box(m).height > 0).length,
    painted: marks.filter(m => { const s = getComputedStyle(m);
      return s.fill !== 'none' && s.fill !== 'rgb(0, 0, 0)' || s.stroke !== 'none'; }).length,
    out: words.filter(t => box(t).left < frame.left - 1 || box(t).right > frame.right + 1
      || box(t).top < frame.top - 1 || box(t).bottom > frame.bottom + 1).map(t => t.textContent),
    smallest: Math.min(...words.map(t => parseFloat(getComputedStyle(t).fontSize) * frame.width
      / svg.viewBox.baseVal.width)),
  };
}))
"""
# What is wider than the page and not inside something that scrolls by itself.
OVERFLOW = """
JSON.stringify([document.documentElement.scrollWidth, innerWidth, [...document.querySelectorAll('main *')].filter(e => {
  if (e.closest('.wide, pre, .scroll, svg, .skip, thead')) return false;
  return e.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
}).map(e => e.tagName + ' ' + e.textContent.slice(0, 40)).slice(0, 5)])
"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as page:
        yield page


def checked(browser, path):
    """Look at a report at both widths, light and dark, and return its pictures."""
    assert path.stat().st_size < 3 * MEGABYTE
    address = path.resolve().as_uri()
    for width in (DESK, PHONE):
        for dark in (False, True):
            browser.open(address, width=width, dark=dark)
            assert browser.complaints == []
            assert browser.requests == [address]
            wide, inner, guilty = json.loads(browser.evaluate(OVERFLOW))
            assert (wide <= inner, guilty) == (True, [])
    pictures = json.loads(browser.evaluate(PICTURES))
    assert pictures
    for picture in pictures:
        assert picture["width"] > 100, picture
        assert picture["height"] > 30, picture
        assert picture["drawn"] == picture["marks"] > 0 or picture["drawn"] > 0.5 * picture["marks"], picture
        assert picture["painted"] == picture["marks"], picture
        assert picture["label"]
        assert picture["smallest"] > 9, picture  # pixels of type, on the phone
    assert browser.evaluate("document.querySelectorAll('script, iframe, object, embed, img').length") == 0
    return pictures


def kinds(pictures):
    return {picture["kind"] for picture in pictures}


def sticking_out(pictures):
    return [word for picture in pictures for word in picture["out"]]


def test_the_report_of_the_demo(browser, tmp_path):
    release, _ = run_demo(tmp_path / "demo")

    pictures = checked(browser, release.folder / "report.html")

    assert kinds(pictures) == {"graph", "noise-picture", "one-way", "two-way", "intervals"}
    assert len(pictures) == 1 + 1 + 3 + 2 * 3 + 1
    assert sticking_out(pictures) == []


@pytest.fixture(scope="module")
def adult_like(tmp_path_factory):
    """Adult's schema and marginals with invented counts and draws: its size without its records or a fit."""
    schema = Schema.load(REPOSITORY / "examples" / "adult" / "adult.schema.toml")
    study = Study.load(REPOSITORY / "examples" / "adult" / "adult.toml")
    random = np.random.default_rng(0)
    measurements = tuple(
        Measurement(marginal=m, values=random.integers(-20, 4_000, schema.shape(m)), stddev=25.2)
        for m in study.load_workload(schema).marginals
    )
    posterior = posterior_by_hand(NoisyCounts(schema=schema, rows=48_842, measurements=measurements, privacy=PRIVACY))
    release = Release(tmp_path_factory.mktemp("adult") / "release")
    formula = "income ~ age + race + gender"
    release.write_noisy_counts(posterior.noisy_counts, ({"model": "binomial", "formula": formula},))
    release.write_posterior(posterior)
    release.write_datasets(synthesize(posterior, 20, 4_000))
    report(release, {formula: analyze(release.datasets(), glm(formula, "binomial"), max_left_out=0.9)})
    return release


def test_a_report_of_adults_size(browser, adult_like):
    pictures = checked(browser, adult_like.folder / "report.html")

    assert len(pictures) == 1 + 1 + 10 + 2 * 10 + 1
    assert sticking_out(pictures) == []


def test_a_phone_shows_tables_as_cards_that_are_still_tables(browser, adult_like):
    browser.open((adult_like.folder / "report.html").resolve().as_uri(), width=PHONE)

    cell = "getComputedStyle(document.querySelector('table.cards td'))"
    assert browser.evaluate(f"{cell}.display") == "grid"
    shown = "getComputedStyle(document.querySelector('table.cards td'), '::before').content"
    assert browser.evaluate(shown) == '"Cells"'
    smallest = (
        "Math.min(...[...document.querySelectorAll('table *')].map(e => parseFloat(getComputedStyle(e).fontSize)))"
    )
    assert browser.evaluate(smallest) > 11
    unnamed = "[...document.querySelectorAll('table, thead, tbody, tr, th, td')].filter(e => !e.getAttribute('role'))"
    assert browser.evaluate(f"{unnamed}.length") == 0


def test_headings_landmarks_and_keys(browser, adult_like):
    """What a screen reader and a keyboard need: one h1, no level left out, landmarks, focus on all that scrolls."""
    browser.open((adult_like.folder / "report.html").resolve().as_uri())
    levels = json.loads(
        browser.evaluate("JSON.stringify([...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1]))")
    )

    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    for selector in ("html[lang]", "main", "nav[aria-label]", "a.skip[href='#content']", "#content"):
        assert browser.evaluate(f'document.querySelectorAll("{selector}").length') == 1
    broken = "[...document.querySelectorAll('a[href^=\"#\"]')].filter(a => !document.getElementById(a.hash.slice(1)))"
    assert browser.evaluate(f"{broken}.length") == 0
    stuck = "[...document.querySelectorAll('pre, .wide')].filter(e => e.tabIndex < 0 || !e.getAttribute('aria-label'))"
    assert browser.evaluate(f"{stuck}.length") == 0
    doubled = "(ids => ids.length - new Set(ids).size)([...document.querySelectorAll('[id]')].map(e => e.id))"
    assert browser.evaluate(doubled) == 0


# Contrast of every text with what is behind it, by the formula of the accessibility guidelines.
CONTRAST = """
(() => {
  const rgb = c => c.match(/[\\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = rgb(c).map(v => { v /= 255;
    return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (rgb(c).length < 4 || rgb(c)[3] > 0) return c; } return 'rgb(255, 255, 255)'; };
  return Math.min(...[...document.querySelectorAll('p, li, dd, dt, td, th, h1, h2, h3, h4, a, code, .status, caption')]
    .filter(e => e.textContent.trim() && !e.closest('.skip, svg')).map(e => {
      const a = light(getComputedStyle(e).color), b = light(behind(e));
      return (Math.max(a, b) + .05) / (Math.min(a, b) + .05); }));
})()
"""


@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out_from_the_paper(browser, adult_like, dark):
    browser.open((adult_like.folder / "report.html").resolve().as_uri(), dark=dark)

    assert browser.evaluate(CONTRAST) >= 4.5


def test_statuses_have_a_word_and_a_sign_besides_their_colour(browser, adult_like):
    browser.open((adult_like.folder / "report.html").resolve().as_uri())

    statuses = "[...document.querySelectorAll('.status, .verdict h3')]"
    assert browser.evaluate(f"{statuses}.length") > 1
    bare = f"{statuses}.filter(e => !e.textContent.trim() || getComputedStyle(e, '::before').content === 'none')"
    assert browser.evaluate(f"{bare}.length") == 0


def test_tables_fit_a_desk(browser, adult_like, tmp_path):
    """Nothing is hidden beyond the edge of a table, not even of a certificate with all its levels."""
    content = json.loads((adult_like.folder / "report.json").read_text("utf-8"))
    levels = tuple(
        LevelCoverage(nominal=n, hits=93, repeats=100, low=0.86, high=0.97, reference=0.9, width_ratio=12.34)
        for n in (0.5, 0.8, 0.9, 0.95)
    )
    names = ("Intercept", "age", "race[T.Amer-Indian-Eskimo]", "gender[T.Male]")
    figures = {"bias": -0.000110, "bias_stderr": 0.000095, "levels": levels, "verdict": "doubtful", "reasons": ("so",)}
    whole = _certificate(tuple(_certified(name, **figures) for name in names))
    page = tmp_path / "page.html"
    page.write_text(render(content | {"certificate": whole}), "utf-8")

    browser.open(page.resolve().as_uri(), width=DESK)
    browser.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")

    hidden = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1)"
    assert browser.evaluate("document.querySelectorAll('table.dense th').length") > len(names)
    assert browser.evaluate(f"{hidden}.map(e => e.innerText.trim().slice(0, 40)).join()") == ""


def test_it_prints(browser, adult_like):
    browser.open((adult_like.folder / "report.html").resolve().as_uri())

    assert browser.pdf().startswith(b"%PDF-")


HOSTILE = (
    "<script>document.title='pwned'</script>",
    "\"quotes\" 'and' `ticks` & ampersands\\",
    "</title></svg><img src=x onerror=alert(1)>",
    "عمر الشخص بالسنوات \u202e backwards",
    "x" * 300,
    "🧑‍🤝‍🧑 people 🇩🇪",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Names, levels, descriptions and a table's name that try to be something else."""
    names = [name[:190] for name in HOSTILE[:4]]
    schema = Schema(
        name=HOSTILE[2],
        column=(
            Categorical(name=names[0], levels=HOSTILE, description=HOSTILE[0]),
            Categorical(name=names[1], levels=HOSTILE[::-1]),
            Boolean(name=names[2]),
            Boolean(name=names[3]),
        ),
    )
    marginals = ((names[0], names[1]), (names[1], names[2], names[3]))
    random = np.random.default_rng(0)
    step = PrivacyStep(name=HOSTILE[0], mechanism=HOSTILE[1], rho=0.1, detail=HOSTILE[2])
    privacy = PrivacyStatement(epsilon=1.0, delta=1e-6, rho=0.1, accountant=HOSTILE[0], unit=HOSTILE[4], steps=(step,))
    counts = NoisyCounts(
        schema=schema,
        rows=5_000,
        measurements=tuple(
            Measurement(marginal=m, values=random.integers(-5, 200, schema.shape(m)), stddev=9.0) for m in marginals
        ),
        privacy=privacy,
    )
    posterior = posterior_by_hand(counts)
    release = Release(tmp_path_factory.mktemp("hostile") / "release")
    formula = "y ~ a"
    release.write_noisy_counts(counts)
    release.write_posterior(posterior)
    release.write_datasets(synthesize(posterior, 5, 300))
    tables = [{"y": np.arange(50.0) % 7, "a": random.choice(HOSTILE, 50)} for _ in range(5)]
    import pandas as pd

    pooled = analyze([pd.DataFrame(table) for table in tables], glm(formula), original_rows=50, max_left_out=0.9)
    content = report_content(release, {HOSTILE[0]: pooled}, {HOSTILE[2]: HOSTILE[0]})
    path = release.folder.parent / "hostile.html"
    path.write_text(render(content | {"certificate": _certificate()}), "utf-8")
    return path


LEVEL = LevelCoverage(nominal=0.95, hits=9, repeats=10, low=0.5, high=1.0, reference=0.9, width_ratio=2.0)


def _certified(term, **figures):
    plain = {"supported": True, "truth": 1.0, "stderr": 0.1, "fallbacks": 0, "cautions": 0}
    return CertifiedTerm(term=term, **plain | {"bias": 0.0, "bias_stderr": 0.1, "levels": (LEVEL,)} | figures)


def _certificate(terms=None):
    words = zip(HOSTILE[:3], ("holds", "doubtful", "fails"), strict=True)
    terms = terms or tuple(_certified(label, verdict=word, reasons=(label,)) for label, word in words)
    made = Certificate(
        noisy_counts_hash="",
        posterior_hash="",
        repeats=10,
        datasets=5,
        rows=300,
        method=HOSTILE[0],
        seed=0,
        software="0",
        analyses=(CertifiedAnalysis(title=HOSTILE[2], terms=terms, truth=HOSTILE[1], failure=HOSTILE[0], failed=1),),
    )
    return made.model_dump(mode="json")


def test_hostile_labels_are_shown_and_do_nothing(browser, hostile):
    pictures = checked(browser, hostile)

    assert sticking_out(pictures) == []
    assert browser.evaluate("document.title").startswith("</title></svg><img")
    text = browser.evaluate("document.body.textContent")
    for label in HOSTILE:
        assert label.replace("\u202e", "⟨U+202E⟩") in text
    assert "\u202e" not in text
    assert "49{%" not in text


def test_the_broken_twin_that_does_not_escape_is_caught(browser, hostile, tmp_path):
    """The checks see a script that runs, a picture that is not drawn, a request, and a page that is too wide."""
    page = hostile.read_text("utf-8")
    twin = tmp_path / "twin.html"

    twin.write_text(
        page.replace("&lt;img src=x onerror=alert(1)&gt;", "<img src=x>").replace("img-src data:", "img-src *")
    )
    with pytest.raises(AssertionError):
        checked(browser, twin)
    twin.write_text(page.replace("<main", "<main style='width:2000px'"))
    with pytest.raises(AssertionError):
        checked(browser, twin)
    twin.write_text(
        page.replace('class="bar"', 'class="bar" style="display:none"').replace(
            'class="band"', 'class="b" display="none"'
        )
    )
    with pytest.raises(AssertionError):
        checked(browser, twin)
    twin.write_text(page.replace("</body>", "<script>console.error('x')</script></body>"))
    with pytest.raises(AssertionError):
        checked(browser, twin)


@pytest.mark.slow
def test_the_report_of_adult(browser, data_folder, tmp_path):
    study = Study.load(REPOSITORY / "examples" / "adult" / "adult.toml")
    given = study.reading(str(data_folder / "adult" / "adult.csv"))

    outcome = run_study(given, Release(tmp_path / "adult"))

    pictures = checked(browser, outcome.report)
    assert len(pictures) == 1 + 1 + 10 + 2 * 10 + len(outcome.results)
    assert sticking_out(pictures) == []

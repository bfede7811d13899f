"""The pages: self-contained, everything from a log is text, and in a real browser they work."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pytest

from harness_noise.analysis.comparison import by_question, compare_runs
from harness_noise.analysis.mean import analyze_runs
from harness_noise.data.clusters import Fields
from harness_noise.data.notes import Note
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores
from harness_noise.extra.arena import figures as arena_figures
from harness_noise.extra.arena.build import arena
from harness_noise.extra.arena.pages import write_arena
from harness_noise.extra.arena.results import Arena
from harness_noise.extra.slices.cutting import slices_of_pairs
from harness_noise.report import canvas, html
from harness_noise.settings import Settings
from support.browsing import visit

if TYPE_CHECKING:
    from selenium.webdriver.remote.webdriver import WebDriver

HOSTILE = [
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "</svg><script>document.title='owned'</script> & ' \" $\\frac{1}{0}$ {{ 7 * 7 }} {% x %}",
    "x" * 10_000,
    "מודל שלום",
    "\u202egnirts desrever \x1b[31m \x00",
    "&lt;b&gt; javascript:alert(1)",
    "plain-7b",
]
N = 40


def drawn(K: int = 3, metric: str = "acc", **more: Any) -> list[Run]:
    rng = np.random.default_rng(0)
    u = rng.uniform(size=N)
    names = (HOSTILE * 6)[:N]
    fields = Fields({HOSTILE[1]: [HOSTILE[i % 4] for i in range(N)]}, (), (HOSTILE[1],))
    questions = Questions(tuple(f"{name}{i}" for i, name in enumerate(names)), texts=tuple(names), fields=fields)
    clusters = tuple(f"{HOSTILE[i % 4]}{i % 10}" for i in range(N))
    runs = []
    for m, name in enumerate(HOSTILE):
        p = np.clip(u + 0.05 * m, 0, 1)[:, None]
        values = (rng.uniform(size=(N, K)) < p).astype(float)
        parts = tuple(
            Scores(task, metric, HOSTILE[0], questions, values, clusters=clusters, cluster_spec=HOSTILE[1], **more)
            for task in (HOSTILE[2], "second task")
        )
        runs.append(
            Run(
                name,
                f"run {m} {HOSTILE[0]}",
                "array",
                scores=parts,
                notes=(Note("from_adapter", f"a hint about {HOSTILE[1]}"),),
            )
        )
    return runs


@pytest.fixture(scope="module")
def hostile() -> Arena:
    return arena(drawn(), Settings(), baseline=HOSTILE[0], by=[HOSTILE[1]])


@pytest.fixture(scope="module")
def pages(hostile: Arena, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pages")
    written = write_arena(hostile, folder / "arena", f"harness-noise arena {HOSTILE[0]}")
    runs = drawn()
    pairs = [(runs[i], runs[0]) for i in (1, 2, 4)]
    sliced = slices_of_pairs(pairs, [HOSTILE[1]], Settings())
    comparison = sliced.beside(compare_runs(pairs, Settings(), 6))
    text = html.page(comparison, command=HOSTILE[1], questions=by_question(pairs))
    (folder / "comparison.html").write_text(text, encoding="utf-8")
    (folder / "analysis.html").write_text(html.page(analyze_runs(runs, Settings())), encoding="utf-8")
    return [*written, folder / "comparison.html", folder / "analysis.html"]


class Reader(HTMLParser):
    """Every element with its attributes, and the text of the page, without the numbers that scripts read."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if not self.elements or self.elements[-1][1].get("type") != "application/json":
            self.text += data


def test_pages_hold_no_element_of_a_name_and_nothing_from_elsewhere(pages: list[Path]) -> None:
    assert len(pages) == 6
    for path in pages:
        page = Reader(path.read_text(encoding="utf-8"))
        tags = [tag for tag, _ in page.elements]
        scripts = [attributes.get("type") for tag, attributes in page.elements if tag == "script"]
        assert scripts in ([None], ["application/json", None])  # ours, and what it reads
        assert "img" not in tags
        for tag, attributes in page.elements:
            assert not any(name.startswith("on") for name in attributes), (tag, attributes)
            for name in ("src", "href", "xlink:href"):
                value = attributes.get(name) or "#"
                assert re.match(r"#|data:|[\w-]+\.html$", value), (tag, name, value)
        assert "<script>document.title='owned'</script>" in page.text
        assert "x" * 200 not in page.text
        assert "\u202e" not in page.text
        assert "\x1b" not in page.text
        assert "{1}{0}$ 49" not in page.text
        assert len(path.read_bytes()) < 2_000_000


def test_the_fragment_of_a_notebook_is_escaped_and_has_no_script(hostile: Arena) -> None:
    runs = drawn()
    tables = [hostile, compare_runs([(runs[0], runs[1])], Settings(), 3), analyze_runs(runs, Settings())]
    for table in tables:
        text = table._repr_html_()
        page = Reader(text)
        assert not {"script", "style", "img", "link"} & {tag for tag, _ in page.elements}
        assert "&lt;script&gt;" in text
        assert page.text.count("acc") > 0


def test_a_page_shows_the_numbers_of_its_table() -> None:
    runs = drawn()
    table = compare_runs([(runs[7], runs[0])], Settings())
    page = Reader(html.page(table))
    for item in table.comparisons:
        assert f"{100 * item.diff:.1f}".replace("-", "−") in page.text
        assert item.verdict in page.text
    assert f"{Settings().level}" in page.text


def test_an_empty_analysis_still_has_a_page() -> None:
    assert "<h1" in html.page(analyze_runs([], Settings()))


def test_figures_are_svg_with_words_and_hold_no_markup_of_a_name(hostile: Arena, tmp_path: Path) -> None:
    written = arena_figures.save(hostile, tmp_path / "figures")
    expected = {"means", "matrix", "noise", "separation", "accuracies", "heatmap", "difficulty", "pass-at-k"}
    expected |= {"forest"}
    assert {kind for kind in expected for path in written if path.stem.endswith(f"-{kind}")} == expected
    assert len(written) == 26
    for path in written:
        root = ElementTree.parse(path).getroot()
        tags = {element.tag.rsplit("}")[-1] for element in root.iter()}
        assert "script" not in tags
        assert root.attrib["aria-label"]
        assert root.find("{http://www.w3.org/2000/svg}title") is not None
        assert root.find("{http://www.w3.org/2000/svg}desc") is not None
        assert not re.search(r"var\(--", path.read_text(encoding="utf-8"))


def test_drawing_twice_gives_the_same_bytes(hostile: Arena) -> None:
    for one, other in zip(*(arena_figures.pictures(hostile, hostile.boards[0]) for _ in range(2)), strict=True):
        assert canvas.svg(one) == canvas.svg(other)


@pytest.mark.parametrize("K", [1, 2])
def test_figures_of_odd_boards_are_drawn(K: int) -> None:
    """One answer, an unbounded metric, two models, a model without variance, scores missing."""
    runs = drawn(K)
    boards = [runs, runs[:2]]
    scaled = []
    for m, run in enumerate(runs[:3]):
        values = run.scores[0].values * 40 - 7 if m else np.zeros((N, K))
        values[m * 5 : m * 5 + 5] = np.nan
        part = Scores("t", "bleu", "none", run.scores[0].questions, values)
        scaled.append(Run(run.model, run.name, "array", scores=(part,)))
    boards.append(scaled)
    for one in boards:
        found = arena(one, Settings())
        names = [one_figure.name for one_figure in arena_figures.pictures(found, found.boards[0])]
        assert ("pass-at-k" in names) == (K > 1 and one is not scaled)
        for one_figure in arena_figures.pictures(found, found.boards[0]):
            ElementTree.fromstring(canvas.svg(one_figure, "page"))


# In a real browser


@pytest.fixture
def browser(chromium: WebDriver) -> Iterator[WebDriver]:
    chromium.get_log("browser")  # what an earlier test left there
    yield chromium
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def opened(browser: WebDriver, path: Path, *, width: int = 1280, dark: bool = False) -> None:
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    visit(browser, path.as_uri())


@pytest.mark.browser
def test_pages_open_without_errors_or_requests_and_fit(browser: WebDriver, pages: list[Path]) -> None:
    for path in pages:
        for width, dark in ((1280, False), (380, True)):
            opened(browser, path, width=width, dark=dark)
            assert browser.get_log("browser") == []
            assert browser.title != "owned"
            loaded = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
            assert [name for name in loaded if not name.startswith("data:")] == []
            # wide tables scroll in their own box; the page itself never does
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
            background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
            assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) == dark


@pytest.mark.browser
def test_tables_sort_and_filter(browser: WebDriver, pages: list[Path]) -> None:
    opened(browser, pages[1])
    box = "document.querySelector('[data-table]')"

    def column(i: int) -> list[str]:
        script = (
            f"return [...{box}.querySelectorAll('tbody tr:not([hidden])')].map(r => r.cells[{i}].textContent.trim())"
        )
        found: list[str] = browser.execute_script(script)
        return found

    def head(i: int) -> Any:
        return browser.execute_script(f"return {box}.querySelectorAll('thead button')[{i}]")

    assert len(column(0)) == len(HOSTILE)
    assert head(1).text.startswith("best?"), "the answer is in sight"
    head(3).click()
    means = [float(text.replace("−", "-").rstrip("%")) for text in column(3)]
    assert means == sorted(means, reverse=True)
    head(3).click()
    assert [float(text.replace("−", "-").rstrip("%")) for text in column(3)] == sorted(means)
    sorts = browser.execute_script(f"return {box}.querySelectorAll('thead th')[3].getAttribute('aria-sort')")
    assert sorts == "ascending"
    head(0).click()
    names = column(0)
    assert names.index("plain-7b") < names.index("x" * 59 + "…")
    head(0).click()
    assert column(0) == names[::-1]
    field = browser.execute_script(f"return {box}.querySelector('input')")
    field.send_keys("PLAIN-7b")
    assert column(0) == ["plain-7b"]
    assert browser.execute_script(f"return {box}.querySelector('output').textContent") == f"1 of {len(HOSTILE)} rows"
    field.clear()
    field.send_keys("nothing has this")
    assert column(0) == []


@pytest.mark.browser
def test_p_values_and_intervals_sort_as_numbers(browser: WebDriver, pages: list[Path]) -> None:
    opened(browser, pages[3])
    found = browser.execute_script(
        """
        const headsOf = box => [...box.querySelectorAll('thead th')];
        const box = [...document.querySelectorAll('[data-table]')]
          .find(box => headsOf(box).some(head => head.textContent.trim() === 'p'));
        const heads = headsOf(box);
        const i = heads.findIndex(head => head.textContent.trim() === 'p');
        heads[i].querySelector('button').click();
        heads[i].querySelector('button').click();
        return [...box.querySelectorAll('tbody tr')].map(row => row.cells[i].textContent.trim());
        """
    )
    values = [float(text.removeprefix("<")) for text in found if text != "–"]
    assert len(values) >= 4
    assert values == sorted(values)


@pytest.mark.browser
def test_figures_are_rendered(browser: WebDriver, pages: list[Path]) -> None:
    opened(browser, pages[1])
    boxes = browser.execute_script(
        "return [...document.querySelectorAll('figure > svg')].map(s => {const b = s.getBoundingClientRect();"
        "return [b.width, b.height, s.querySelectorAll('path, image, rect, use').length, s.ariaLabel]})"
    )
    assert len(boxes) == 11
    for width, height, marks, label in boxes:
        assert width > 200
        assert height > 100
        assert marks >= 3
        assert len(label) > 20
    ids = browser.execute_script("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.slow
@pytest.mark.browser
def test_axe_finds_nothing_serious(browser: WebDriver, pages: list[Path]) -> None:
    found = importlib.util.find_spec("axe_core_python")
    assert found is not None, "pip install axe-core-python"
    assert found.origin is not None
    axe = (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    for path in (pages[0], pages[1], pages[3], pages[4]):
        for dark in (False, True):
            opened(browser, path, dark=dark)
            browser.execute_script(axe)
            result = browser.execute_async_script(
                "const done = arguments[0]; axe.run({resultTypes: ['violations']}).then(r => done(r.violations))"
            )
            bad = [
                (item["id"], item["impact"], [node["html"][:200] for node in item["nodes"][:2]])
                for item in result
                if item["impact"] in ("serious", "critical")
            ]
            assert bad == [], json.dumps(bad, indent=1, ensure_ascii=False)

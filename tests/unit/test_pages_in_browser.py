"""The pages in a real browser: hover, focus, click, pick; any width, either scheme, paper, and no script at all."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest

from harness_noise.analysis.comparison import by_question, compare_runs
from harness_noise.analysis.mean import analyze_runs
from harness_noise.extra.arena import figures as arena_figures
from harness_noise.extra.arena import pages
from harness_noise.extra.arena.build import arena
from harness_noise.extra.arena.results import Arena
from harness_noise.extra.slices.cutting import slices_of_pairs
from harness_noise.report import html
from harness_noise.report.fmt import equals_p
from harness_noise.results.schema import json_schema
from harness_noise.settings import Settings
from support.boards import N, sliced_board
from support.browsing import visit
from support.slow import rest_slow

if TYPE_CHECKING:
    from selenium.webdriver.remote.webdriver import WebDriver
    from selenium.webdriver.remote.webelement import WebElement

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def found() -> Arena:
    return arena(sliced_board(6), Settings(margin=0.02), by=["kind"])


@pytest.fixture(scope="module")
def folder(found: Arena, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`arena/…`, `one.html`, `many.html` and `means.html`."""
    out = tmp_path_factory.mktemp("browser")
    pages.write_arena(found, out / "arena", "harness-noise arena runs --by kind --html arena")
    runs = sliced_board(6)
    settings = Settings(margin=0.02)
    for name, pairs in (("one", [(runs[4], runs[0])]), ("many", [(run, runs[0]) for run in runs[1:]])):
        table = slices_of_pairs(pairs, ["kind"], settings).beside(compare_runs(pairs, settings, 5))
        text = html.page(table, command="harness-noise compare a b --html", questions=by_question(pairs))
        (out / f"{name}.html").write_text(text, encoding="utf-8")
    (out / "means.html").write_text(html.page(analyze_runs(runs, Settings())), encoding="utf-8")
    return out


@pytest.fixture
def browser(chromium: WebDriver) -> Iterator[WebDriver]:
    chromium.get_log("browser")
    yield chromium
    for command in ("Emulation.clearDeviceMetricsOverride",):
        chromium.execute_cdp_cmd(command, {})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def opened(browser: WebDriver, path: Path, *, width: int = 1280, dark: bool = False, media: str = "") -> None:
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    visit(browser, path.as_uri())
    assert browser.get_log("browser") == []


def board_page(folder: Path) -> Path:
    return next(path for path in (folder / "arena").glob("*.html") if path.name != "index.html")


def one(browser: WebDriver, selector: str) -> WebElement:
    element: WebElement = browser.execute_script("return document.querySelector(arguments[0])", selector)
    return element


def texts(browser: WebDriver, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map(node => node.textContent.trim())"
    return list(browser.execute_script(script, selector))


def point_at(browser: WebDriver, element: WebElement) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    ActionChains(browser).move_to_element(element).perform()


def press(browser: WebDriver, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    chain = ActionChains(browser)
    for key in keys:
        chain.send_keys(getattr(Keys, key))
    chain.perform()


def tip(browser: WebDriver) -> str:
    text: str = browser.execute_script(
        "const tip = document.querySelector('.tip'); return tip.hidden ? '' : tip.textContent"
    )
    return text


def test_hover_says_which_pair_a_point_is_and_its_numbers(browser: WebDriver, folder: Path, found: Arena) -> None:
    opened(browser, board_page(folder))
    mark = one(browser, 'svg[data-figure="separation"] use[data-m="0 5"]')
    point_at(browser, mark)
    pairs = found.boards[0].pairs
    row = next(i for i in range(len(pairs)) if (pairs.a[i], pairs.b[i]) == (0, 5))
    assert tip(browser) == arena_figures.pair_title(found.boards[0].pairs[row])
    assert re.match(r"model 0 − model 5: −\d+\.\d points", tip(browser))
    point_at(browser, one(browser, "h1"))
    assert tip(browser) == ""


def test_every_mark_has_a_title_without_any_script(browser: WebDriver, folder: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    for path in (board_page(folder), folder / "one.html", folder / "many.html", folder / "means.html"):
        opened(browser, path)
        bare = browser.execute_script(
            "return [...document.querySelectorAll('figure svg :is(use, g.iv, image[data-m], rect[data-m])')]"
            ".filter(node => !node.querySelector('title')?.textContent).length"
        )
        assert bare == 0
        assert len(texts(browser, "figure svg title")) > 4
        shown = browser.execute_script(
            "return [...document.querySelectorAll('.tools, .marked, #picker')].filter(node => node.offsetParent).length"
        )
        assert shown == 0, "what needs a script is not offered without one"
    # all details of all rows are there
    opened(browser, folder / "many.html")
    assert len(texts(browser, "[data-detail]")) == 5
    assert browser.execute_script("return document.querySelectorAll('[data-detail][hidden]').length") == 0


def test_the_keyboard_reaches_every_mark(browser: WebDriver, folder: Path, found: Arena) -> None:
    opened(browser, board_page(folder))
    browser.execute_script("document.querySelector('h1').tabIndex = -1; document.querySelector('h1').focus()")
    press(browser, "TAB")
    assert browser.execute_script("return document.activeElement.dataset.figure") == "means"
    assert browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert one(browser, ".hint").is_displayed()
    best = found.boards[0].benchmark.best[0]
    seen = [tip(browser)]
    for _ in range(5):
        press(browser, "ARROW_DOWN")
        seen.append(tip(browser))
    assert seen[0].startswith(best)
    assert len(set(seen)) == 6
    press(browser, "HOME")
    assert tip(browser) == seen[0]
    press(browser, "END")
    assert tip(browser) == seen[-1]
    press(browser, "ENTER")
    assert texts(browser, ".marked output") == [seen[-1].split(":")[0]]
    press(browser, "ESCAPE")
    assert tip(browser) == ""
    assert browser.execute_script("return document.querySelector('.marked').hidden")
    press(browser, "TAB")
    assert browser.execute_script("return document.activeElement.textContent") == "SVG"
    press(browser, "TAB")
    assert browser.execute_script("return document.activeElement.dataset.figure") == "matrix"
    assert tip(browser) != ""


def test_a_click_marks_the_models_in_every_figure_and_table(browser: WebDriver, folder: Path) -> None:
    opened(browser, board_page(folder))
    script = """return [...document.querySelectorAll('[data-m].on')].map(node =>
        [node.closest('svg')?.dataset.figure ?? node.closest('[role=region]').ariaLabel, node.dataset.m])"""
    point_at(browser, one(browser, 'svg[data-figure="means"] g[data-m="3"]'))
    one(browser, 'svg[data-figure="means"] g[data-m="3"]').click()
    marked = browser.execute_script(script)
    assert {
        "means",
        "noise",
        "separation",
        "accuracies",
        "heatmap",
        "pass-at-k",
        "forest",
        "Models",
        "Pairs",
    } <= {where for where, _ in marked}
    assert all("3" in ids.split() for _, ids in marked)
    assert texts(browser, ".marked output") == ["model 3"]
    one(browser, ".marked button").click()
    assert browser.execute_script(script) == []
    point = one(browser, 'svg[data-figure="separation"] use[data-m="1 4"]')
    point_at(browser, point)
    point.click()
    marked = browser.execute_script(script)
    assert {ids for _, ids in marked} == {"1", "4", "1 4"}
    assert {ids for where, ids in marked if where == "forest"} == {"1"}, "the others are held against model 4, the best"
    outline = browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "none", "a click needs no frame, the keyboard does"
    chosen = browser.execute_script("return [...document.querySelectorAll('#picker select')].map(s => s.value)")
    assert chosen == ["1", "4"], "the pair that was clicked is the pair that is picked"


def choose(browser: WebDriver, a: int, b: int) -> None:
    browser.execute_script(
        "const [a, b] = document.querySelectorAll('#picker select'); a.value = arguments[0]; b.value = arguments[1];"
        "b.dispatchEvent(new Event('change'))",
        str(a), str(b),
    )  # fmt: skip


def test_a_picked_pair_is_told_in_words_and_saved_in_those_of_json(
    browser: WebDriver, folder: Path, found: Arena
) -> None:
    opened(browser, board_page(folder))
    pair = next(pair for pair in found.boards[0].pairs if pair.verdict == "not separable")
    choose(browser, *(int(name.removeprefix("model ")) for name in (pair.model_a, pair.model_b)))
    assert texts(browser, "#picker output")[0].endswith(": not shown to differ.")
    saved = json.loads(saved_by(browser, "[data-save] button")[1])["pairs"]
    assert {row["verdict"] for row in saved} >= {"not separable"}


@pytest.mark.parametrize(("a", "b"), [(1, 5), (5, 1)])
def test_any_two_models_can_be_picked(browser: WebDriver, folder: Path, found: Arena, a: int, b: int) -> None:
    opened(browser, board_page(folder))
    choose(browser, a, b)
    board = found.boards[0]
    row, sign = board.pairs.find(f"model {a}", f"model {b}"), 1 if a < b else -1
    assert row.diff is not None
    assert row.se is not None
    said = texts(browser, "#picker output")[0].replace("−", "-")
    numbers = [float(x) for x in re.findall(r"-?\d+\.\d+", said)]
    assert said.startswith(f"model {a} - model {b} = ")
    points = 100 * sign * row.diff
    assert numbers[:2] == [pytest.approx(points, abs=0.05 + 1e-9), pytest.approx(100 * row.se, abs=0.05 + 1e-9)]
    ends = [100 * sign * (row.ci_low or 0), 100 * sign * (row.ci_high or 0)]
    assert [x for x in numbers if x != 95][2:4] == pytest.approx(sorted(ends), abs=0.05 + 1e-9)
    better = {"A better": row.model_a, "B better": row.model_b}.get(row.verdict)
    assert (f"{better} is better." if better else "not shown to differ.") in said
    # slices
    titles = texts(browser, '#picker svg[data-figure="picked-slices"] g.iv title')
    assert len(titles) == 5
    for one_slice, title in zip(board.slices, titles[1:], strict=True):
        pair = one_slice.pairs.find(f"model {a}", f"model {b}")
        assert title.startswith(f"{one_slice.slice}: ")
        shown = float(re.findall(r"-?\d+\.\d+", title.replace("−", "-"))[0])
        assert shown == pytest.approx(100 * sign * (pair.diff or 0.0), abs=0.5)
        assert title.endswith(f"n = {one_slice.n_questions}")
    # questions
    d = board.scores[:, a] - board.scores[:, b]
    d = d[np.isfinite(d)]
    bars = texts(browser, '#picker svg[data-figure="picked-questions"] rect title')
    ticks = texts(browser, '#picker svg[data-figure="picked-questions"] text[y="205"]')
    ends = [float(tick.replace("−", "-")) for tick in (ticks[0], ticks[-1])]
    assert 100 * d.min() - 1e-6 <= ends[0] < ends[1] <= 100 * d.max() + 1e-6  # no tick beyond the scores
    counts = {bar: int(bar.rsplit(" ", 2)[1]) for bar in bars}
    assert sum(counts.values()) == len(d) < N
    assert counts[next(bar for bar in bars if "= 0.0 points" in bar)] == int((np.abs(d) < 1e-9).sum())
    flips = [float(x.replace("−", "-")) for x in texts(browser, "#picker tbody td:last-child")]
    assert flips == pytest.approx(100 * np.sort(np.abs(d))[::-1][:15] * np.sign(flips), abs=0.5)
    as_much = int((np.abs(d) >= np.sort(np.abs(d))[-15] - 1e-9).sum())
    assert as_much > 15
    (caption,) = texts(browser, "#picker caption")
    assert caption == f"Questions that flipped most (15 of {as_much} that flipped at least as much as the last)"


def test_a_page_says_that_it_rounds_scores_of_many_levels(browser: WebDriver, tmp_path: Path) -> None:
    runs, rng = sliced_board(3), np.random.default_rng(1)
    for run in runs:
        run.scores[0].values[:] = rng.normal(20, 5, run.scores[0].values.shape)
    for name, said in (("rounded", True), ("exact", False)):
        if not said:
            for run in runs:
                run.scores[0].values[:] = np.round(run.scores[0].values)
        pages.write_arena(arena(runs, Settings()), tmp_path / name / "arena", "harness-noise arena runs --html arena")
        opened(browser, board_page(tmp_path / name))
        shown = [*texts(browser, "#picker figcaption"), *texts(browser, "#picker caption")]
        rounded = [text for text in shown if "Scores are rounded here, to 250 steps." in text]
        assert len(rounded) == (2 if said else 0), shown


def test_the_two_models_that_are_shown_first_are_those_that_are_chosen(browser: WebDriver, folder: Path) -> None:
    opened(browser, board_page(folder))
    names = browser.execute_script(
        "return [...document.querySelectorAll('#picker select')].map(s => s.selectedOptions[0].textContent)"
    )
    before = texts(browser, "#picker output")[0]
    assert before.startswith(" − ".join(names))
    choose(browser, 0, 5)
    one_way = texts(browser, "#picker output")[0]
    browser.execute_script("document.querySelector('#picker button').click()")
    swapped = texts(browser, "#picker output")[0]
    assert re.match(r"model 0 − model 5 = −\d+\.\d ± \d+\.\d points", one_way)
    size = one_way.partition("= −")[2].partition(",")[0]
    assert swapped.startswith(f"model 5 − model 0 = {size}")


SAVED = """window.saved = []; HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };
URL.createObjectURL = (blob) => { blob.text().then((text) => saved.push(text)); return 'blob:x'; };"""


def saved_by(browser: WebDriver, selector: str) -> tuple[str, str]:
    """The name and the text of the file that a button saves."""
    browser.execute_script(SAVED)
    browser.execute_script("document.querySelector(arguments[0]).click()", selector)
    name, text = browser.execute_async_script("const done = arguments[0]; setTimeout(() => done(saved), 100)")
    return name, text


def test_tables_are_saved_as_csv_that_a_spreadsheet_does_not_run(
    browser: WebDriver, found: Arena, folder: Path
) -> None:
    opened(browser, board_page(folder))
    browser.execute_script("document.querySelector('[aria-label=Models] td bdi').textContent = '=1+1, \"x\"'")
    name, text = saved_by(browser, "[aria-label='Save Models as CSV, as it is shown']")
    assert name == "task-acc-models.csv"
    rows = list(csv.reader(text.splitlines()))
    assert rows[0][:4] == ["Model", "best?", "Rank", "Mean"]
    assert rows[1][0] == '\'=1+1, "x"'
    means = [float(row[3].rstrip("%")) for row in rows[1:]]
    assert means == sorted((round(100 * (m.mean or 0), 1) for m in found.models), reverse=True)
    pairs = saved_by(browser, "[aria-label='Save Pairs as CSV, as it is shown']")[1]
    assert "plot" not in pairs.splitlines()[0]
    assert "\u2212" not in pairs, "numbers that a program reads"


def test_pairs_are_saved_as_json_and_figures_as_svg_files(browser: WebDriver, found: Arena, folder: Path) -> None:
    opened(browser, board_page(folder), dark=True)
    name, text = saved_by(browser, "[data-save] button")
    held = json.loads(text)
    assert (name, held["level"]) == ("task-acc-pairs.json", 0.95)
    for row in held["pairs"]:
        pair = found.boards[0].pairs.find(row["model_a"], row["model_b"])
        assert [row["diff"], row["ci_low"], row["se"]] == pytest.approx([pair.diff, pair.ci_low, pair.se], rel=1e-5)
        assert row["verdict"] == pair.verdict
    name, text = saved_by(browser, "[aria-label='Save the figure Means as SVG']")
    assert name == "task-acc-means.svg"
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(--" not in text
    assert "#6cb4ee" in text, "in the colours that the reader sees"


def test_the_page_of_a_comparison_holds_the_whole_result(browser: WebDriver, folder: Path) -> None:
    opened(browser, folder / "one.html")
    name, text = saved_by(browser, "[data-save] button")
    assert name == "model-4-against-model-0.json"
    held = json.loads(text)
    jsonschema.validate(held, json_schema())
    assert held["comparisons"][0]["model_a"] == "model 4"


def test_a_link_leads_to_a_chosen_pair(browser: WebDriver, folder: Path) -> None:
    opened(browser, board_page(folder))
    choose(browser, 1, 5)
    said = texts(browser, "#picker output")
    link = browser.execute_script("return document.querySelector('#picker a').href")
    assert link.endswith("#a=model+1&b=model+5")
    visit(browser, "about:blank")
    visit(browser, link)
    assert texts(browser, "#picker output") == said
    assert browser.execute_script("return document.querySelector('#picker').getBoundingClientRect().top") < 10
    visit(browser, link.replace("model+5", "nobody"))
    assert texts(browser, "#picker output")[0] == said[0], "a name that is not there changes nothing"


def test_every_pair_is_a_cell_with_its_p(browser: WebDriver, folder: Path, found: Arena) -> None:
    opened(browser, board_page(folder))
    pairs = found.boards[0].pairs
    cells = texts(browser, 'svg[data-figure="matrix"] rect title')
    assert len(cells) == len(pairs) == 15
    cell = one(browser, 'svg[data-figure="matrix"] rect[data-m="0 5"]')
    point_at(browser, cell)
    row = pairs.find("model 0", "model 5")
    assert tip(browser) == f"{arena_figures.pair_title(row)}; adjusted p {equals_p(row.p_adjusted)}"
    cell.click()
    chosen = browser.execute_script("return [...document.querySelectorAll('#picker select')].map(s => s.value)")
    assert chosen == ["0", "5"]
    signs = texts(browser, 'svg[data-figure="matrix"] text:not([data-m])')
    better = sum(pair.verdict in ("A better", "B better") for pair in pairs)
    assert signs.count("+") == better
    assert "−" not in signs, "rows and columns stand from the best to the worst"


def test_a_question_shows_every_model_on_a_click_and_by_keyboard(
    browser: WebDriver, folder: Path, found: Arena
) -> None:
    opened(browser, board_page(folder))
    row = one(browser, "[aria-label=Questions] tbody tr")
    question = int(row.get_attribute("data-q") or -1)
    browser.execute_script("arguments[0].querySelector('button').focus()", row)
    press(browser, "ENTER")
    assert browser.execute_script("return document.querySelector('dialog').open")
    shown = dict(zip(texts(browser, "dialog td.text"), texts(browser, "dialog td:last-child"), strict=True))
    scores = found.boards[0].scores[question]
    assert shown == {f"model {m}": "no answer" if np.isnan(x) else f"{100 * x:.0f}%" for m, x in enumerate(scores)}
    press(browser, "ESCAPE")
    assert not browser.execute_script("return document.querySelector('dialog').open")
    browser.execute_script("arguments[0].cells[3].click()", row)
    assert browser.execute_script("return document.querySelector('dialog').open")


def test_the_index_is_a_leaderboard_that_sorts(browser: WebDriver, folder: Path, found: Arena) -> None:
    opened(browser, folder / "arena" / "index.html")
    box = "[aria-label^=Leaderboard]"
    stars = texts(browser, f"{box} td.best")
    assert len(stars) == len(found.boards[0].benchmark.best)
    assert all("★" in text for text in stars), f"not by colour alone: {stars}"
    assert texts(browser, f"{box} tbody td:first-child")[0] == found.boards[0].benchmark.best[0]
    browser.execute_script(f"document.querySelectorAll('{box} th button')[1].click()")
    means = [float(text.replace("★", "").split()[0]) for text in texts(browser, f"{box} tbody td:nth-child(2)")]
    assert means == sorted(means, reverse=True)
    assert browser.execute_script("return document.querySelectorAll('details[open] table').length") == 0


def test_a_model_is_not_compared_with_itself(browser: WebDriver, folder: Path) -> None:
    opened(browser, board_page(folder))
    choose(browser, 2, 2)
    assert texts(browser, "#picker output") == ["Choose two different models."]
    assert texts(browser, "[data-picked]") == [""]


def test_many_pairs_are_one_picture_that_still_names_each(
    browser: WebDriver, found: Arena, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arena_figures, "LABELLED", 3)
    page = pages.write_arena(found, tmp_path)[1]
    opened(browser, page)
    figure = 'svg[data-figure="accuracies"]'
    assert len(texts(browser, f"{figure} use title")) == 3
    drawn = next(item for item in arena_figures.pictures(found, found.boards[0]) if item.name == "accuracies")
    assert drawn.points is not None
    shown = set(texts(browser, f"{figure} use title"))
    for row, x, y in zip(drawn.points.rows.tolist(), drawn.points.x.tolist(), drawn.points.y.tolist(), strict=True):
        title = arena_figures.pair_title(found.boards[0].pairs[row])
        if title in shown:
            continue
        browser.execute_script(
            """const svg = document.querySelector(arguments[0]); svg.scrollIntoView({block: 'center'});
            const place = new DOMPoint(arguments[1], arguments[2]).matrixTransform(svg.getScreenCTM());
            svg.dispatchEvent(new PointerEvent('pointermove', {clientX: place.x, clientY: place.y, bubbles: true}))""",
            figure, x, y,
        )  # fmt: skip
        assert tip(browser) == title
    browser.execute_script("page.mark([2])")
    assert browser.execute_script(f"return document.querySelectorAll('{figure} .over').length") == 5


def test_one_of_several_rows_is_shown_in_detail(browser: WebDriver, folder: Path) -> None:
    opened(browser, folder / "many.html")
    script = (
        "return [...document.querySelectorAll('[data-detail]')].filter(node => node.offsetParent).map(node => node.id)"
    )
    assert browser.execute_script(script) == ["row-0"]
    browser.execute_script(
        "const s = document.querySelector('[data-choose]'); s.value = 'row-3'; s.dispatchEvent(new Event('change'))"
    )
    assert browser.execute_script(script) == ["row-3"]
    figure = '#row-3 svg[data-figure="slices-row-3"] g.iv'
    point_at(browser, one(browser, figure))
    assert tip(browser).startswith("all questions: ")


def test_the_page_of_a_comparison_opens_with_the_verdict(browser: WebDriver, folder: Path) -> None:
    opened(browser, folder / "one.html", width=400)
    said, how, picture = (one(browser, s) for s in (".verdict .say", ".verdict .how", "figure.opening svg"))
    assert said.text == "model 4 is better than model 0 by 19.8 points."
    assert how.text.startswith("+")
    assert picture.rect["y"] + picture.rect["height"] < 900, "both are on the first screen of a telephone"
    assert len(texts(browser, "[data-detail] figure")) == 3


@pytest.mark.parametrize(
    ("width", "dark"),
    rest_slow([(360, True), (1280, False), *product([400, 768], [False, True]), (360, False), (1280, True)], quick=2),
)
def test_pages_fit_every_width_in_both_schemes(browser: WebDriver, folder: Path, width: int, dark: bool) -> None:
    for path in (board_page(folder), folder / "arena" / "index.html", folder / "one.html", folder / "many.html"):
        opened(browser, path, width=width, dark=dark)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        small = browser.execute_script(
            """return [...document.querySelectorAll('figure svg')].filter(svg => svg.getBoundingClientRect().width)
            .map(svg => 12 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width).filter(px => px < 8.5)"""
        )
        assert small == [], "letters of figures can be read"
        cut = browser.execute_script(
            """return [...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth
            && getComputedStyle(box).overflowX !== 'auto').length"""
        )
        assert cut == 0
        colours = {
            browser.execute_script(f"return getComputedStyle(document.querySelector('{s}')).color") for s in ("h1",)
        }
        light = sum(map(int, re.findall(r"\d+", colours.pop())[:3])) > 380
        assert light == dark


def test_on_paper_nothing_is_cut_off_and_nothing_can_be_clicked(browser: WebDriver, folder: Path) -> None:
    opened(browser, board_page(folder), width=800, media="print")
    state = browser.execute_script(
        """return [[...document.querySelectorAll('.tools, .marked')].filter(node => node.offsetParent).length,
        [...document.querySelectorAll('.scroll')].filter(box => getComputedStyle(box).overflow !== 'visible').length]"""
    )
    assert state == [0, 0]


def test_the_foot_says_when_from_what_and_how(browser: WebDriver, folder: Path) -> None:
    opened(browser, folder / "one.html")
    foot = texts(browser, "footer")[0]
    for words in ("harness-noise compare a b --html", "2 runs", "run 4", "paired by question", "clustered",
                  "p: two-sided (t)", "equivalent if they differ by less than 2 points", "Made on "):  # fmt: skip
        assert words in foot, words
    opened(browser, board_page(folder))
    assert "p adj.: Holm" in texts(browser, "footer")[0]


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing(browser: WebDriver, folder: Path, width: int, dark: bool) -> None:
    found = importlib.util.find_spec("axe_core_python")
    assert found is not None, "pip install axe-core-python"
    assert found.origin is not None
    axe = (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    pages = (
        board_page(folder),
        folder / "arena" / "index.html",
        *(folder / f"{x}.html" for x in ("one", "many", "means")),
    )
    for path in pages:
        opened(browser, path, width=width, dark=dark)
        if path == board_page(folder):
            choose(browser, 1, 3)
        browser.execute_script(axe)
        result: list[dict[str, Any]] = browser.execute_async_script(
            "const done = arguments[0]; axe.run({resultTypes: ['violations']}).then(r => done(r.violations))"
        )
        bad = [(item["id"], item["impact"], [node["html"][:200] for node in item["nodes"][:2]]) for item in result]
        assert bad == [], json.dumps(bad, indent=1, ensure_ascii=False)

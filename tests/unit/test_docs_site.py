"""The documentation as a site: every page has its place, and what it points at is there."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest

from support.simulations import simulation

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def test_every_page_has_one_place_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    places = re.findall(r"([\w/-]+\.md)$", text, re.M)
    assert sorted(places) == PAGES
    tabs = re.findall(r"^  - ([\w-]+):$", text, re.M)
    assert tabs == ["Start", "How-to", "Reference", "Methods", "Validation"]


def test_each_tab_opens_with_a_line_for_each_of_its_pages(tmp_path: Path) -> None:
    """The landing pages and the list for language models are made of the navigation and of the pages."""
    spec = importlib.util.spec_from_file_location("contents", DOCS / "contents.py")
    assert spec is not None
    assert spec.loader is not None
    contents = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(contents)
    for tab, (place, _) in contents.TABS.items():
        assert (DOCS / place).read_text(encoding="utf-8") == contents.landing(tab), "python docs/contents.py"
    assert (DOCS / "llms.txt").read_text(encoding="utf-8") == contents.for_models(), "python docs/contents.py"
    landings = {place for place, _ in contents.TABS.values()}
    assert sorted([page.path for page in contents.pages()] + ["index.md", *landings]) == PAGES
    assert {page.path for page in contents.pages()} >= set(contents.LINES)


@pytest.mark.parametrize(
    "page", [*PAGES, "../README.md", "../CONTRIBUTING.md", "../SECURITY.md", "../upstream/README.md"]
)
def test_relative_links_lead_somewhere(page: str) -> None:
    path = DOCS / page
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text):
        assert (path.parent / target).exists(), target


def test_the_readme_has_whole_addresses_that_lead_somewhere() -> None:
    """PyPI shows it, too, where no relative address leads anywhere."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text)
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    home = "github(?:usercontent)?.com/harness-noise/harness-noise/(?:blob/)?main/([^#]+)(?:#(.+))?"
    own = [found for target in targets if (found := re.fullmatch(f"https://(?:raw.)?{home}", target))]
    assert len(own) > 20
    for found in own:
        path = ROOT / found[1]
        assert path.exists(), found[0]
        if found[2]:
            heads = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M)
            assert found[2] in [re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads], found[0]


def test_the_home_of_the_site_is_the_readme_and_formulas_need_no_script() -> None:
    pytest.importorskip("latex2mathml", reason="make docs has it")
    from types import SimpleNamespace

    spec = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    home = hooks.on_page_markdown("", page=SimpleNamespace(file=SimpleNamespace(src_uri="index.md")))
    assert home.startswith("# harness-noise")
    for scheme in ("light", "dark"):
        assert f'src="images/compare-{scheme}.png#only-{scheme}"' in home
    assert "<picture>" not in home
    assert "](tutorials/table.md)" in home
    other = SimpleNamespace(file=SimpleNamespace(src_uri="options.md"))
    assert hooks.on_page_markdown(r"| `a\|b` | c \| d |", page=other) == r"| `a|b` | c \| d |"
    session = hooks.on_page_markdown("```python\n>>> 1 + 1\n2\n```\n\n```python\nx = 1\n```", page=other)
    assert session == "```pycon\n>>> 1 + 1\n2\n```\n\n```python\nx = 1\n```"
    drawn = hooks.on_page_content(r'<p><span class="arithmatex">\(\frac{a &lt; b}{2}\)</span></p>')
    assert "<mfrac>" in drawn
    assert "&#x0003C;" in drawn
    assert "arithmatex" not in drawn


METHODS = [page for page in PAGES if page.startswith("methods/") and not re.match("methods/(coverage|index)", page)]


OTHERWISE = ("which-noise", "gsm-symbolic", "judges", "measures")
"""Pages that choose among methods, or hold several."""


@pytest.mark.parametrize("page", [*METHODS, "diagnostics.md"])
def test_simulated_figures_stand_in_generated_tables_only(page: str) -> None:
    """Prose that repeats what a simulation found is wrong after the next one: it links to the row."""
    prose = (DOCS / page).read_text(encoding="utf-8").partition("<!-- tables")[0]
    prose = re.sub(r"^```.*?^```$|^\[(?:Table|Rows): .*?$", "", prose, flags=re.M | re.S)
    prose = re.sub(r"\b(?:95 ?% (?:interval|limit|CI)|80 ?% power)", "", " ".join(prose.split()))
    of_simulations = re.compile(r"\b(?:cover(?:s|ed|age)?|simulat\w+|rejects?|trips?|errs?|type I)\b", re.I)
    repeated = [
        sentence
        for sentence in re.split(r"(?<=[.;]) (?=[A-Z`*(|])", prose)
        if of_simulations.search(sentence) and re.search(r"\d ?%", sentence)
    ]
    assert repeated == []


@pytest.mark.parametrize("page", sorted({*METHODS} - {f"methods/{x}.md" for x in OTHERWISE}))
def test_a_method_says_its_question_and_when_not_to_use_it(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert "**Question" in text
    assert "**When not to use" in text


def test_the_list_for_language_models_names_pages_that_are_there() -> None:
    text = (DOCS / "llms.txt").read_text(encoding="utf-8")
    site = re.search(r"^site_url: (\S+)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    assert site is not None
    links = re.findall(r"\]\((\S+)\)", text)
    assert len(links) > 10
    for link in links:
        assert link.startswith(site[1])
        name = link.removeprefix(site[1])
        assert (DOCS / name).is_file() or (DOCS / f"{name.rstrip('/')}.md").is_file(), link


@pytest.mark.parametrize(
    ("patch", "package", "import_name", "root"),
    [
        ("lm-eval-doc-scored.patch", "lm-eval", "lm_eval", ""),
        ("inspect-task-scored.patch", "inspect-ai", "inspect_ai", "src"),
    ],
)
def test_patches_apply_to_the_release_that_they_are_for(
    patch: str, package: str, import_name: str, root: str, tmp_path: Path
) -> None:
    pytest.importorskip(import_name)
    folder = ROOT / "upstream"
    told = re.search(r"lm-eval ([\d.]+\d) and Inspect ([\d.]+\d)", (folder / "README.md").read_text(encoding="utf-8"))
    assert told is not None
    release = told[1 if package == "lm-eval" else 2]
    if version(package) != release:
        pytest.skip(f"the patch is for {package} {release}, and {version(package)} is installed")
    source = Path(str(files(import_name)))
    place = tmp_path / root / import_name
    for name in re.findall(rf"^--- a/{root and root + '/'}{import_name}/(\S+)$", (folder / patch).read_text(), re.M):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, place / name)
    assert any(place.rglob("*.py"))
    command = ["git", "apply", "--check", f"--include={root and root + '/'}{import_name}/*", str(folder / patch)]
    outside = {**os.environ, "GIT_DIR": str(tmp_path / "none")}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=outside)
    assert done.returncode == 0, done.stderr


def test_patches_for_upstream_are_whole() -> None:
    folder = ROOT / "upstream"
    told = (folder / "README.md").read_text(encoding="utf-8")
    patches = sorted(path.name for path in folder.glob("*.patch"))
    assert sorted(re.findall(r"^\| `([\w.-]+\.patch)`", told, re.M)) == patches
    for name in patches:
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            found = re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line)
            if found is not None:
                old, new = (int(count or 1) for count in found.groups())
                for body in lines[number + 1 :]:
                    if (old, new) == (0, 0):
                        break
                    old -= body[:1] in (" ", "-", "")
                    new -= body[:1] in (" ", "+", "")
                assert (old, new) == (0, 0), (name, line)


def test_tables_of_simulations_are_drawn_from_their_files() -> None:
    """A page holds a place for each table, and a page that asks for rows gets them."""
    results = simulation("results")
    places = re.compile(r"^\[(?:Table|Rows): .*\]\((?:\.\./)+benchmarks/results/(.+)\)$", re.M)
    used = set()
    for page in PAGES:
        text = (DOCS / page).read_text(encoding="utf-8")
        found = places.findall(text)
        used |= set(found)
        drawn = results.drawn(text)
        assert places.findall(drawn) == []
        assert drawn.count("\n|") >= text.count("\n|") + 3 * len(found)
        if page.startswith("methods/coverage"):
            assert found, page
            assert text.count("\n|") == 0, f"{page}: `make coverage` writes tables as CSV"
            assert results.split(drawn, Path(page).stem)[0] == text, page
    files = {path.relative_to(results.FOLDER).as_posix() for path in results.FOLDER.rglob("*.csv")}
    assert used == files
    assert len(files) > 40
    with pytest.raises(ValueError, match="does not have all of these rows: nothing"):
        results.drawn("[Rows: nothing](../../benchmarks/results/coverage-weak/few-flips.csv)")

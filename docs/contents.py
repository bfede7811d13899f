"""The landing page of each tab, one line for each page, and `llms.txt`, the same for language models.

python docs/contents.py

A how-to has its first command, a method its question, and any other page its line in `LINES`. The navigation is that
of `mkdocs.yml`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

import yaml

DOCS = Path(__file__).parent
SITE = "https://harness-noise.github.io/harness-noise/"
TABS = {
    "How-to": ("how/index.md", "One task each: the command first, then the choices."),
    "Reference": ("reference/index.md", "Complete and dry. Most pages are made from the code."),
    "Methods": ("methods/index.md", "How each number is computed, what it assumes, and when not to use it."),
    "Validation": ("validation/index.md", "Does a 95% interval contain the truth in 95% of cases? This was simulated."),
}
"""The landing page of a tab and its first sentence. Start has the README."""
BELOW = {
    "Validation": """
## How to read a figure

In a simulation the truth is known, so each interval can be checked. **Coverage** is the share of intervals that contain
it. A 95% interval should have 95%.

- **Below 95%** the interval is too short. At 90% it misses the truth twice as often as it promises.
- **Above 95%** it is wider than it need be. You can trust it, but it hides small differences.
- **Close to 95%** can be chance. The figure has a standard error of 0.2 points with 10,000 replications, and of 1.5
  points with 200.

**95.3** (94.3 … 99.3) is the median of several designs, with the lowest and the highest. An example, the difference of
two runs:

[Rows: none; 5 giant](../../benchmarks/results/coverage/difference-of-two-runs.csv)

The first two columns are this package's interval, if the models are equal and if they differ. The last one is the usual
formula (difference ± 1.96 standard errors), which ignores clusters. It holds if there are none. With five clusters, of
which one has half of the questions, its interval is far too short.

| Other figures | What they are | They should be |
|---|---|---|
| type I error, wrong decisions | how often a difference is found that is not there | at most 5%, or 2.5% one-sided |
| power, found | how often a true difference is found | high, but a small one needs many questions |
| codes | how often a [diagnostic](../diagnostics.md) warns | high if the coverage is not 95% |

Look for the row that is most like your data: the number of questions, answers and clusters, and the score. What was not
simulated is not shown.
""",
}
"""What a landing page has below its table."""
HEADS = {"How-to": "Command", "Methods": "Question"}
LINES = {
    "tutorials/table.md": "compare two CSV files, a page to send, a sentence for a paper",
    "tutorials/lm-eval.md": "a run with error bars, then two runs compared",
    "tutorials/inspect.md": "a task with error bars, then two logs compared",
    "how/cost.md": "`harness-noise analyze RUN --measure score --measure cost/score`",
    "how/drop-models.md": "`harness-noise arena RUN… --looks 20 --n 400`",
    "how/rank.md": "`harness-noise arena RUN… --html DIR`",
    "how/stop-early.md": "`harness-noise lm-eval run … --noise --noise_until decided --noise_against RUN`",
    "how/switch.md": "from mean ± 1.96 · sd/√n to these, case by case",
    "how/where.md": "`harness-noise compare A B --by FIELD`",
    "how/plan.md": "`harness-noise plan --effect 2pt --from A B`",
    "how/judge.md": "`harness-noise label RUN… -n 100 -o labels.csv`",
    "commands.md": "what a RUN is, every command, exit codes",
    "options.md": "every option of every command",
    "lm-eval.md": "`--noise` options, what is added to the results, limits",
    "inspect.md": "settings, metrics that are added, limits",
    "formats.md": "the files of other tools, a format of your own, what is written",
    "glossary.md": "every term, defined once. `harness-noise what TERM RUN` has a run's numbers",
    "columns.md": "every number, in tables, JSON, lm-eval and Inspect",
    "diagnostics.md": "every code, and what to do",
    "choices.md": "estimators, intervals, tests and adjustments by name",
    "python.md": "`import harness_noise as hn`: read, analyze, compare, gate, arena, plan, …",
    "python-reference.md": "every function, class and field",
    "profiles.md": "the noise of public benchmarks, and what it assumes",
    "versions.md": "of Python, the harnesses and packages: needed, tested",
    "performance.md": "time and memory, and how they grow",
    "sources.md": "the papers behind the formulas",
    "skill/SKILL.md": "which command answers which question, for agents",
    "methods/which-noise.md": "Which of the four standard errors fits the sentence that you write?",
    "methods/gsm-symbolic.md": "Published results, analysed again",
    "methods/coverage.md": "the defaults in hundreds of designs, beside the usual formulas",
    "methods/coverage-weak.md": "few flips, rare failures, missing answers, costs, …",
    "methods/coverage-slices.md": "false discoveries, shrunken values, rank sets",
    "methods/coverage-gate.md": "how often an identical model fails, and which loss is found",
    "methods/coverage-judges.md": "means corrected by human labels",
    "neighbours.md": "the same data in other packages",
}
INTRODUCTION = """# harness-noise

> Error bars for LLM evaluations, inside lm-evaluation-harness and Inspect: clustered standard errors, two runs tested
> question by question, data and prediction noise, leaderboards, planning. `pip install harness-noise`. Command
> `harness-noise`, Python `import harness_noise as hn`. A harness's own values never change. What cannot be estimated is
> null with a diagnostic code, never 0.
"""


class Page(NamedTuple):
    """A page in the navigation: its tab, title, path below `docs/` and line."""

    tab: str
    title: str
    path: str
    line: str


def pages() -> list[Page]:
    """Return all pages but the home and the landing pages, in the order of the navigation."""
    written = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    tabs = [next(iter(each.items())) for each in yaml.safe_load(written)]
    return [
        Page(tab, *next(iter(each.items())), line(next(iter(each.values()))))
        for tab, inner in tabs
        for each in inner
        if isinstance(each, dict)
    ]


def line(path: str) -> str:
    """Return what a page is about."""
    if path in LINES:
        return LINES[path]
    text = (DOCS / path).read_text(encoding="utf-8")
    question = re.search(r"^\*\*Question\.\*\* (.*?\?)(?: |\n)", text, re.M | re.S)
    if question:
        return " ".join(question[1].split())
    command = re.search(r"^(?:\$ )?(harness-noise .*?)(?: {2,}#.*)?$", text, re.M)
    if command is None:
        raise ValueError(f"{path} begins with no command and no question: give it a line in docs/contents.py")
    general = command[1].replace(" --quiet", "").replace("new.csv old.csv", "A B").replace("new.csv", "RUN")
    return f"`{general}`"


def landing(tab: str) -> str:
    """Return the landing page of a tab in Markdown."""
    place, sentence = TABS[tab]
    folder = Path(place).parent
    rows = [
        f"| [{page.title}]({os.path.relpath(page.path, folder)}) | {page.line.replace('|', chr(92) + '|')} |"
        for page in pages()
        if page.tab == tab
    ]
    head = f"# {tab}\n\n{sentence}\n\n" + '<div class="contents" markdown="1">' + "\n\n"
    head += f"| Page | {HEADS.get(tab, 'What it has')} |\n|---|---|\n"
    return head + "\n".join(rows) + "\n\n</div>\n" + BELOW.get(tab, "")


def for_models() -> str:
    """Return `llms.txt`."""
    text = INTRODUCTION
    tab = ""
    for page in pages():
        if page.tab != tab:
            tab = page.tab
            text += f"\n## {tab}\n\n"
        text += f"- [{page.title}]({SITE}{page.path.removesuffix('.md')}/): {page.line}\n"
    return text + f"\n## Optional\n\n- [The planner]({SITE}planner.html): how many questions, in the browser\n"


def main() -> None:
    """Write the pages."""
    for tab, (place, _) in TABS.items():
        (DOCS / place).write_text(landing(tab), encoding="utf-8")
    (DOCS / "llms.txt").write_text(for_models(), encoding="utf-8")


if __name__ == "__main__":
    main()

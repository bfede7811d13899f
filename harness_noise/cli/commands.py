"""The commands by name, and those that call one function of the library; nothing heavy is imported here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .._version import __version__
from ..errors import InputError, some_of
from . import arena, compare, demo, gate, options, plan


@options.command("analyze", "harness-noise analyze runs/new --cluster template")
@options.RUN
@options.to_read(*options.reading("analyze"), *options.LABELS, options.REFERENCES)
@options.to_compute(*options.computing("analyze"), options.BY)
@options.to_show(*options.PRINTING)
def analyze(runs: tuple[str, ...], **choices: Any) -> None:
    """Estimate the noise of every mean in one or several runs.

    For each task and metric: the mean, its confidence interval, its standard error (SE), the SE that it
    would have with one answer per question (total) and with infinitely many (data), and the share of the
    model's own randomness (prediction).
    """
    from .. import analyze

    options.answer(analyze, choices, runs)


@options.command("explain", "harness-noise explain new-run baseline-run --on length --on category")
@options.RUN
@options.to_read(options.MODELS, *options.reading("explain"))
@options.to_compute(
    options.several(
        "--on",
        "SPEC",
        "A property of the questions: a field, a.dotted.path, a Jinja template (repeatable).",
        required=True,
    ),
    options.several("--category categories", "SPEC", "Treat the numbers of this SPEC as names of categories."),
    *options.computing("explain"),
)
@options.to_show(*options.PRINTING)
def explain(runs: tuple[str, ...], **choices: Any) -> None:
    """Regress scores or differences on question properties.

    The question means of A (or of A − B, paired by question) are regressed on fields of the questions:
    numbers as they are, categories against their most frequent value. Standard errors are CR2, clustered
    where the questions are, with degrees of freedom for each coefficient.
    """
    from .. import explain

    options.answer(explain, choices, runs)


@options.command("factors", "harness-noise factors runs --factor prompt=task --factor seed")
@options.RUN
@options.to_read(
    options.several(
        "--factor factors",
        "NAME[=COLUMN]",
        "A source of noise: a column of the table, an argument of the task, or task, model, run, or scorer where "
        "several judges graded the same answers (repeatable). One word is both its name and its column.",
        required=True,
    ),
    *options.reading("factors"),
)
@options.to_compute(
    options.value(
        "--more", "N", "Number of further answers that the advice is about.", click.IntRange(1), default=1000
    ),
)
@options.to_show(*options.PRINTING)
def factors(runs: tuple[str, ...], factors: tuple[str, ...], **choices: Any) -> None:
    """Split the noise by source: the prompt, the seed, the judge.

    All answers of all runs are taken together; a question that two tasks or runs share is one question.
    The last line says where the next thousand answers would help most. With judge=scorer it also says which judges
    agree, and which one differs.
    """
    from .. import factors as noise_by_factor

    options.answer(noise_by_factor, choices, runs, options.mapping(factors, "--factor", one_word=True))


@options.command("label", "harness-noise label runs/new -n 100 -o labels.csv")
@options.RUN
@options.to_read(*options.reading("label"))
@options.to_compute(
    options.value("-n n", "N|SHARE", "Questions to be labelled.", default="100"),
    options.switch("--by-score", "Draw questions of uncertain score more often."),
    *options.computing("label", seed="Seed of the drawing; the file records it."),
)
@options.to_show(
    options.target("-o output", "FILE.csv", "Write to FILE.", required=True),
    click.option("--blind/--no-blind", default=True, help="Show neither the model nor the judge's score (default)."),
    options.switch("--force", "Replace FILE, with the labels that it may hold."),
    options.QUIET,
    options.DEBUG,
)
def label(runs: tuple[str, ...], output: Path, **choices: Any) -> None:
    """Draw the answers that people label, to correct a judge's scores.

    FILE is a table with the question, the answer and an empty column label, which people fill in with a
    spreadsheet; then give it to analyze, compare, arena or gate as --labels FILE. Rows without a label do not
    count, so that one may stop early.
    """
    from .. import label_sample

    drawn = label_sample(runs, output=output, **options.keywords(choices))
    if not choices["quiet"]:
        options.hints(drawn.notes)
    options.wrote([output], choices)


@options.command("references", "harness-noise references gpqa_diamond")
@click.argument("name", required=False)
def references(name: str | None) -> None:
    """List the benchmarks whose noise comes with this package.

    Their names are for --reference of compare and plan. With NAME: where its table came from, and how
    the profile was made.
    """
    from .. import profiles

    for noise in profiles(name):
        profile = noise.profile
        clusters = {} if profile.cluster is None else {"clusters": f"{profile.n_clusters} ({profile.cluster})"}
        figures = {"questions": profile.n_questions, **clusters, "models": profile.n_models}
        figures["SE of A − B"] = f"{profile.se_total.median:.3f}"
        if name is None:
            click.echo(f"{noise.name:34} " + ", ".join(f"{key} {value}" for key, value in figures.items()))
            continue
        about = {"task": profile.task, "metric": profile.metric, **(noise.source or {})}
        for key, value in {**figures, **about}.items():
            click.echo(f"{key:13} {value}")


@options.command("export", "harness-noise export runs/new -o runs/new-with-noise")
@options.RUN
@options.to_read(*options.reading("export"))
@options.to_compute(*options.computing("export"))
@options.to_show(
    options.target("-o output", "DIR", "The folder to write to."),
    options.switch("--in-place", "Replace the run's own files (atomically)."),
    options.value("--as form", "FORMAT", "Write another format: every-eval-ever."),
    options.QUIET,
    options.DEBUG,
)
def export(runs: tuple[str, ...], output: Path | None, in_place: bool, form: str | None, **choices: Any) -> None:
    """Rewrite result files with error bars; native values stay unchanged.

    The files keep their names, and exporting twice changes nothing. Their paths go to stdout, one a line.
    """
    from .. import export

    keywords = options.keywords(choices)
    for path in options.progress(runs, "exporting", len(runs)):
        try:
            result = export(path, output, in_place=in_place, form=form, **keywords)
        except InputError as error:
            options.hints(() if choices["quiet"] else getattr(error, "__notes__", ()))
            raise
        for file in result.written:
            click.echo(file)
        options.wrote(result.written, choices)
        added = f"error bars of {some_of(result.means, 6)}; the harness's own values are unchanged"
        options.hints(() if choices["quiet"] else (*([added] if result.means else []), *result.notes))


@click.command(
    "lm-eval",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lm_eval(arguments: tuple[str, ...]) -> int:
    """Run lm-eval; --noise adds error bars to its results.

    Everything is lm-eval's own but the options that begin with --noise:
    `harness-noise lm-eval run --help` lists them.
    """
    from ..io.registry import load

    adapter: Any = load("lm-eval")  # a command line of its own is beyond the protocol of adapters
    return int(adapter.cli(list(arguments)))


@options.command("adapters", "harness-noise adapters")
@options.FORMAT_FILE
def adapters(format_file: str | None) -> None:
    """List the harnesses and file formats that can be read."""
    from .. import adapters

    formats = adapters(format_file)
    width = max(map(len, formats))
    for name, reads in formats.items():
        click.echo(f"{name:{width}}  {reads}")


_IN_ORDER = (
    *(analyze, compare.command, gate.command, explain, arena.command, factors, plan.command, label, references),
    *(export, lm_eval, demo.command, adapters),
)
COMMANDS: dict[str, click.Command] = {str(command.name): command for command in _IN_ORDER}


class Commands(click.Group):
    """The commands in their order, each with the first line of its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from difflib import get_close_matches

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else f" There are {', '.join(COMMANDS)}."
            ctx.fail(f"No such command {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, (cmd.help or "").splitlines()[0]) for name, cmd in self.commands.items()])


@click.group(
    cls=Commands,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 1000},
)
@click.version_option(__version__, "--version", prog_name="harness-noise")
def cli() -> None:
    """Error bars for LLM evaluations.

    RUN is an lm-eval output folder or results file, an Inspect log or log folder, or a score table
    (CSV, JSONL, Parquet).
    """

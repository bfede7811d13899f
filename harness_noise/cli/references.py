"""`harness-noise references`."""

from __future__ import annotations

from typing import Any

import click

from . import options


@options.command("references", example="harness-noise references gpqa_diamond")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the benchmarks whose noise comes with this package.

    Their names are for --reference of compare and plan. With NAME: where its table came from, and how
    the profile was made.
    """
    from ..leaderboard import profiles, shipped

    if name is not None:
        path = shipped.locate(name)
        (one,), origin = profiles.read(path), shipped.source(path) or {}
        for key, value in {**_numbers(one), "task": one.task, "metric": one.metric, **origin}.items():
            click.echo(f"{key:13} {value}")
        return
    for item in shipped.names():
        (one,) = profiles.read(item)
        click.echo(f"{item:34} " + ", ".join(f"{key} {value}" for key, value in _numbers(one).items()))


def _numbers(one: Any) -> dict[str, str]:
    clusters = {} if one.cluster is None else {"clusters": f"{one.n_clusters} ({one.cluster})"}
    noise = f"{one.se_total.median:.3f}"
    return {"questions": str(one.n_questions), **clusters, "models": str(one.n_models), "SE of A − B": noise}

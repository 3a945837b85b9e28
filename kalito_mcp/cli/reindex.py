"""`kalito-mcp reindex`."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio
import click

from kalito_mcp.cli.options import settings_of, with_settings
from kalito_mcp.errors import ConfigurationError

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar


@click.command(name="reindex")
@with_settings
@click.option("--vectors", "is_only_vectors", is_flag=True, help="Only the vectors, not the text index.")
@click.option(
    "--all", "is_anew", is_flag=True, help="All vectors anew, for a model that has changed and kept its name."
)
def command(database: Path | None, config: Path | None, is_only_vectors: bool, is_anew: bool) -> None:
    """Build the text index anew from the records and, with an embedder, the vectors that it has not made yet.

    Other processes may go on reading meanwhile. Vectors of another embedder are served until those of this one are
    complete. Stop it whenever you like: the next time, without --all, it goes on where it was.
    """
    settings = settings_of(database, config)
    if (is_only_vectors or is_anew) and not settings.vectors.embedder:
        raise ConfigurationError("no embedder is configured; set vectors.embedder, or leave out --vectors and --all")
    if not is_only_vectors:
        from kalito_mcp.wiring import reindex  # noqa: PLC0415 - keeps --help quick

        click.echo(f"indexed {anyio.run(reindex, settings)} records")
    if settings.vectors.embedder:
        from kalito_mcp.wiring import reindex_vectors  # noqa: PLC0415 - keeps --help quick

        with VectorProgress() as progress:
            anyio.run(partial(reindex_vectors, settings, progress, is_anew=is_anew))
        click.echo(f"{progress.done} records have their vectors")


class VectorProgress:
    """A progress bar on stderr, drawn from the first report on; none where stderr is no terminal."""

    def __init__(self) -> None:
        self.done = 0
        self._bar: ProgressBar[Any] | None = None

    def __call__(self, done: int, total: int) -> None:
        """`done` of `total` records have their vector."""
        if self._bar is None:
            self._bar = click.progressbar(
                length=total, label="vectors", show_pos=True, hidden=not sys.stderr.isatty(), file=sys.stderr
            )
            # What an earlier run has made took no time in this one.
            self._bar.pos = done
            self._bar.__enter__()
        self._bar.length = total
        self._bar.update(done - self._bar.pos)
        self.done = done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)

"""`kalito-mcp reindex`."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio
import click

from kalito_mcp.cli.options import settings_of_existing, with_settings
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.text.plurals import plural

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar


@click.command(name="reindex")
@with_settings
@click.option("--vectors", "is_only_vectors", is_flag=True, help="Only the vectors, not the text index.")
@click.option("--all", "is_anew", is_flag=True, help="Rebuild all vectors, for a model that changed but kept its name.")
def command(database: str | None, config: Path | None, is_only_vectors: bool, is_anew: bool) -> None:
    """Rebuild the text index from the records and, with an embedder, make the vectors that are missing.

    Other processes can read and write meanwhile. The vectors of an earlier embedder are used until those of this one
    are complete. You can stop it at any time: the next run without --all continues.
    """
    from kalito_mcp.wiring import has_embedder, reindex, reindex_vectors  # noqa: PLC0415 - keeps --help quick

    settings = settings_of_existing(database, config)
    is_embedding = has_embedder(settings)
    if (is_only_vectors or is_anew) and not is_embedding:
        raise ConfigurationError('there is no embedder; set models.embedder = "auto", or leave out --vectors and --all')
    if not is_only_vectors:
        click.echo(f"indexed {plural(anyio.run(reindex, settings), 'record')}")
    if is_embedding:
        with VectorProgress() as progress:
            anyio.run(partial(reindex_vectors, settings, progress, is_anew=is_anew))
        click.echo(f"vectors complete: {plural(progress.done, 'record')}")


class VectorProgress:
    """A progress bar on stderr, drawn from the first report on; hidden if stderr is not a terminal."""

    def __init__(self) -> None:
        self.done = 0
        self._bar: ProgressBar[Any] | None = None

    def __call__(self, done: int, total: int) -> None:
        """Show that `done` of `total` records have their vector."""
        if self._bar is None:
            self._bar = click.progressbar(
                length=total, label="vectors", show_pos=True, hidden=not sys.stderr.isatty(), file=sys.stderr
            )
            # Vectors of an earlier run took no time in this one.
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

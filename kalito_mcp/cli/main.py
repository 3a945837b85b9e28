"""Where `kalito-mcp` starts. A host that starts `serve` gets its first answers before anything else is imported."""

import gc
import importlib
import os
import sys
from typing import Final

_INTERRUPTED: Final = 130
"""The exit code that shells report for a command that Ctrl-C ended."""
_TO_SERVE: Final = ("kalito_mcp.server.stdio", "kalito_mcp.cli.commands", "kalito_mcp.cli.serve")


def main() -> None:
    """Run the command line."""
    begun = None
    if sys.argv[1:2] == ["serve"]:
        from kalito_mcp.server.first_answers import begin  # noqa: PLC0415 - only here

        try:
            begun = begin(sys.argv[1:], os.environ, _import_server)
        except KeyboardInterrupt:
            sys.exit(_INTERRUPTED)
        if begun is not None and begun.is_over:
            return
    from kalito_mcp.cli.commands import run  # noqa: PLC0415 - click takes longer than all of the above

    run(begun)


def _import_server() -> None:
    """Import what serves over stdio. Its objects stay, so that the garbage collector need not look at them again."""
    from kalito_mcp.runtime.gc_pause import gc_paused  # noqa: PLC0415 - only here

    with gc_paused():
        for name in _TO_SERVE:
            importlib.import_module(name)
    gc.freeze()

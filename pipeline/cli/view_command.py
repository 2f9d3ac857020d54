"""``excise view``: a task set in the browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from excise.pipeline.cli.options import Config, Out, Quiet, exit_codes_for_errors, print_message, settings_of


def view(
    out: Out = None,
    runs: Annotated[
        list[Path] | None,
        typer.Option("--runs", help="Folder of a training run, or of several, for curves and requests; repeatable."),
    ] = None,
    static: Annotated[Path | None, typer.Option("--static", help="Write the pages into this new folder.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; any but this machine's own needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="Port; 0 takes any free one.", min=0, max=65535)] = 8421,
    open_: Annotated[bool, typer.Option("--open", help="Open a browser.")] = False,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Show a task set in the browser: tasks, rejections, attempts, training runs, also while they are made.

    The server only reads. It listens on this machine alone; with another --host, the address that is printed holds a
    token, without which nothing is shown.
    """
    from excise.datasets.viewer.loaded_set import LoadedSet
    from excise.datasets.viewer.pages import Site
    from excise.datasets.viewer.server import Address, serve
    from excise.datasets.viewer.static_copy import write_static
    from excise.errors import StoreError
    from excise.verifiers.gates.all_gates import ALL_CLAIMS

    with exit_codes_for_errors():
        settings = settings_of(config, None, out=out)
        if not settings.out.is_dir():
            raise StoreError(f"{settings.out} does not exist. Make a set with `excise generate`.", reason="no_task_set")
        site = Site(
            index=LoadedSet(settings.out),
            run_folders=tuple(path.absolute() for path in runs or ()),
            claims=ALL_CLAIMS,
            name=settings.out.absolute().name,
            is_static=static is not None,
        )
        if static is not None:
            count = write_static(site, static)
            print(f"{count} pages written to {static}. Open {static / 'index.html'}.")
            return

        def announce(address: str) -> None:
            print(address, flush=True)
            if not quiet:
                print_message("Press Ctrl+C to stop.")
            if open_:
                webbrowser.open(address)

        serve(site, Address(host=host, port=port), announce)

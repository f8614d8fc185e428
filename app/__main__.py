"""The command line: serve, fetch, models, check, analyze.

    headwater serve                     the server
    headwater fetch [MODEL…]            models into the data folder
    headwater models                    the catalogue and what of it is here
    headwater check MODEL               the ledger on a fixed prompt
    headwater analyze TEXT --out FILE   one prompt to a file of tensors

A MODEL is a name of the catalogue or a source such as dir:PATH. torch is imported only by the commands that compute.
"""

from pathlib import Path
from typing import Annotated, NoReturn

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from app.errors import AppError
from app.lm.catalog import Catalogue, CatalogueEntry
from app.settings import Settings

cli = typer.Typer(
    name="headwater",
    help="See where each attention head looks, what it sends, and what the residual stream keeps.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Model = Annotated[str, typer.Option("--model", "-m", help="A catalogue name, or a source such as dir:PATH.")]


@cli.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on, instead of HEADWATER_HOST.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on, instead of HEADWATER_PORT.")] = None,
) -> None:
    """Start the server and print its address."""
    from app.serving import run_server

    settings = _settings()
    changed = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    run_server(settings.model_copy(update=changed))


@cli.command()
def fetch(
    models: Annotated[list[str] | None, typer.Argument(help="Catalogue names or sources; none: all.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Fetch even what is already here.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing of what is already here.")] = False,
) -> None:
    """Fetch models into the data folder: downloaded, checked, converted once."""
    from app.lm.fetching import fetch as fetch_entry

    settings, console = _settings(), Console(stderr=True)
    catalogue = Catalogue.of(settings)
    entries = [catalogue.resolve(name) for name in models] if models else list(catalogue.entries)
    for entry in entries:
        if entry.is_fetched(settings) and not again:
            if not quiet:
                console.print(f"{entry.name} is in {entry.folder(settings)}", markup=False, highlight=False)
            continue
        with console.status(f"{escape(entry.name)}: starting") as status:

            def report(text: str, entry: CatalogueEntry = entry) -> None:
                status.update(f"{escape(entry.name)}: {escape(text)}")
                if not console.is_terminal:
                    console.print(f"{entry.name}: {text}", markup=False, highlight=False, soft_wrap=True)

            folder = fetch_entry(entry, settings, report, again)
        console.print(f"{entry.name} is in {folder}", markup=False, highlight=False, soft_wrap=True)


@cli.command()
def models() -> None:
    """List the catalogue, and what of it is on this machine."""
    settings = _settings()
    catalogue = Catalogue.of(settings)
    table = Table(box=None, pad_edge=False)
    for column in ("name", "kind", "source", "here", "folder"):
        table.add_column(column, overflow="fold")
    for entry in catalogue.entries:
        here = "yes" if entry.is_fetched(settings) else f"no; headwater fetch {entry.name}"
        cells = (entry.name, entry.kind(settings), entry.source, here, str(entry.folder(settings)))
        table.add_row(*(escape(cell) for cell in cells))
    Console().print(table)


@cli.command()
def check(model: Annotated[str, typer.Argument(help="A catalogue name, or a source such as dir:PATH.")]) -> None:
    """Run the ledger on a fixed prompt and print its rows; the exit status is 1 when one does not hold."""
    from app.web.engine import Engine

    settings = _settings()
    catalogue = Catalogue.of(settings)
    engine = Engine(settings, catalogue)
    console = Console(stderr=True)
    with console.status(f"loading {escape(model)}"):
        loaded = engine.open(catalogue.resolve(model))
        rows = engine.self_check(loaded)
    table = Table(box=None, pad_edge=False)
    for column in ("", "claim", "worst error", "relative", "allowed", "where"):
        table.add_column(column, overflow="fold")
    for row in rows:
        numbers = (f"{row['worst_abs']:.2e}", f"{row['worst_rel']:.2e}", f"{row['tolerance']:.0e}")
        holds = "holds" if row["holds"] else "FAILS"
        table.add_row(holds, escape(str(row["claim"])), *numbers, escape(str(row["where"])))
    Console().print(table)
    failed = [str(row["name"]) for row in rows if not row["holds"]]
    if failed:
        _fail(f"{model} fails its self-check: {', '.join(failed)}.")
    typer.echo(f"{model}: all {len(rows)} rows hold ({loaded.dtype} on {loaded.device}).")


@cli.command()
def analyze(
    text: Annotated[str, typer.Argument(help="The prompt.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write, .npz or .json.")],
    model: Model = "",
    tensors: Annotated[str, typer.Option(help="Names of tensors, separated by commas; none: all that fit.")] = "",
) -> None:
    """Record one prompt and write its tensors to a file."""
    from app.analyzing import write_report
    from app.web.engine import Engine

    settings = _settings()
    catalogue = Catalogue.of(settings)
    entry = catalogue.resolve(model) if model else catalogue.default
    names = tuple(name.strip() for name in tensors.split(",") if name.strip())
    with Console(stderr=True).status(f"recording with {escape(entry.name)}"):
        written = write_report(Engine(settings, catalogue).open(entry), text, out, names)
    typer.echo(f"{out}: {', '.join(written)}")


def _settings() -> Settings:
    try:
        return Settings()
    except ValidationError as error:
        lines = [f"HEADWATER_{'_'.join(map(str, item['loc'])).upper()}: {item['msg']}" for item in error.errors()]
        _fail("The configuration cannot be used. " + "; ".join(lines) + ".")


def _fail(message: str) -> NoReturn:
    typer.echo(f"headwater: {message}", err=True)
    raise SystemExit(1)


def main() -> None:
    """The entry point: errors of the program are one line on standard error and exit status 1."""
    try:
        cli()
    except AppError as error:
        _fail(error.message)


if __name__ == "__main__":
    main()

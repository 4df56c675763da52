"""`policygen db import`: results of other tuners as a database."""

from functools import partial
from pathlib import Path

import click

from policygen.app.db_import import ImportedAs, import_results
from policygen.cli.options import (
    Command,
    arch_option,
    as_one,
    decorated,
    force_option,
    output_options,
)
from policygen.cli.output import Output
from policygen.report.views.db_import import print_import


def facts_options(command: Command) -> Command:
    """What files do not say, as one `named`."""
    names = ("name", "base", "gpu", "archs", "ctk", "cccl", "types", "size", "cub", "warmup")
    return decorated(
        as_one(command, "named", ImportedAs, *names),
        click.option(
            "--warmup",
            type=click.IntRange(0, 1000),
            default=1,
            show_default=True,
            help="As many first launches of each configuration warm up, and do not count.",
        ),
        click.option(
            "--cub",
            default="",
            metavar="PATH",
            help="The tree whose entries are base, of a library whose results these are:"
            " rocprim@5.7.1, or a checkout.",
        ),
        click.option(
            "--size",
            default="",
            metavar="SIZE",
            help="The size of the problem, where a file does not say it: 1000000, or 4096x4096.",
        ),
        click.option(
            "--type",
            "types",
            multiple=True,
            metavar="AXIS=VALUE",
            help="What the kernel was compiled for, as an axis: T=F32. Repeatable.",
        ),
        click.option(
            "--cccl",
            default="",
            metavar="VERSION",
            help="The version of CCCL, or of the tree that has the kernel's header.",
        ),
        click.option("--ctk", default="", metavar="VERSION", help="The version of the toolkit."),
        partial(arch_option, text="The GPU's, where policygen does not know it.", amd=True),
        click.option(
            "--gpu",
            default="",
            metavar="NAME",
            help="The GPU, as the database is to name it.  [default: as the files do]",
        ),
        click.option(
            "--base",
            default="",
            metavar="CONFIGURATION",
            help="The configuration in use now, with which others are compared:"
            " block_size_x=128,tile=2, or a label.",
        ),
        click.option(
            "--name",
            default="",
            metavar="NAME",
            help="What results call the kernel: own.NAME; with dots it stays, as bindings have it."
            "  [default: as the files do]",
        ),
    )


@click.command(name="import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("-o", "--out", required=True, metavar="FILE", help="The database to write.")
@force_option
@facts_options
@partial(output_options, own=True)
def import_files(
    files: tuple[str, ...], out: str, force: bool, named: ImportedAs, output: Output
) -> int:
    """Writes results of Kernel Tuner, T4 results, or rocPRIM's results, as a database.

    Several files are of one kernel on one GPU: sizes of the problem are its runtime workloads, and
    what was measured twice is joined. Files of rocPRIM's are of as many algorithms as they name.
    What a file is, its content tells.
    """
    output.tell(import_results(files, Path(out), named, force=force), print_import)
    return 0

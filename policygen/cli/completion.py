"""`policygen completion`: shell completion of commands, options and values."""

import click

from policygen.cli.completing import SHELLS, script


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print a completion script for a shell.

    In bash or zsh: eval "$(policygen completion bash)"; in fish: policygen completion fish |
    source. Put the line into the shell's start file to keep it.
    """
    click.echo(script(context.find_root().command, shell), nl=False)
    return 0

"""`policygen completion`: shell completion of commands, options and values."""

import click

from policygen.cli.completing import SHELLS, script


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Prints a script that lets bash, zsh or fish complete commands, options and values.

    In bash: eval "$(policygen completion bash)", in zsh the same with zsh, in fish:
    policygen completion fish | source. The same line in the shell's start file keeps it.
    """
    click.echo(script(context.find_root().command, shell), nl=False)
    return 0

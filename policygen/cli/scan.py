import click


@click.command()
def scan() -> int:
    """To be written."""
    return 0

import click


@click.command()
def bench() -> int:
    """To be written."""
    return 0

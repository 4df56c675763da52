import click


@click.command()
def demo() -> int:
    """To be written."""
    return 0

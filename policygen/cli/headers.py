import click


@click.group()
def headers() -> None:
    """Shows and obtains CUB trees."""


@headers.command("list")
def list_() -> int:
    """Lists the trees that can be had."""
    return 0

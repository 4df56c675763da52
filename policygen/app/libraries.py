"""The libraries whose trees are read, as commands name them."""

from policygen.model.cub import CALLED, Library

__all__ = ["LIBRARIES", "Library"]

LIBRARIES: tuple[Library, ...] = tuple(CALLED)

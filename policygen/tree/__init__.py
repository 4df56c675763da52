"""Finds trees, their versions and headers; obtains them from wheels and packages."""

from policygen.tree.given import open_tree
from policygen.tree.layout import tuning_headers
from policygen.tree.obtain import fetch
from policygen.tree.search import find, find_any
from policygen.tree.store import headers_folder

__all__ = ["fetch", "find", "find_any", "headers_folder", "open_tree", "tuning_headers"]

"""Finds trees, their versions and headers; obtains them from wheels and packages."""

from policygen.trees.fetched import fetch, headers_folder
from policygen.trees.layout import tuning_headers
from policygen.trees.lookup import find, find_any, open_tree

__all__ = ["fetch", "find", "find_any", "headers_folder", "open_tree", "tuning_headers"]

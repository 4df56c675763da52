"""Finds a CUB tree, its version and its headers; obtains trees from wheels."""

"""Measures on a GPU what variants are worth: their space, their objects, the measuring itself."""

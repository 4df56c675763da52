"""Puts changed files into a tree so that nothing is lost, and takes them back."""

"""Imports results of other tuners into databases; formats are detected by content."""

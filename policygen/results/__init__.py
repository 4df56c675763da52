"""Turns tuning databases into tables, scores and choices; the only package that uses pandas."""

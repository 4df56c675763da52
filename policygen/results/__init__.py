"""Tuning databases to tables, scores and choices; pandas lives here alone."""

"""Tuning databases to tables, scores and choices; pandas and sqlite-utils live here alone."""

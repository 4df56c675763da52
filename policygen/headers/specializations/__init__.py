"""Struct templates `smNN_*_tuning`, which a policy chain reads."""

"""Generates the database of `policygen demo`, which must not be mistaken for measured data."""

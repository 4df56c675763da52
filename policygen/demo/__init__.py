"""Generates the database of `policygen demo`: nobody must mistake it for measured data."""

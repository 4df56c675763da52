"""The database of `policygen demo`: made by a script, so that nobody takes it for measured."""

"""Writes files so that nothing is lost: replacement of all or none, the journal, undo."""

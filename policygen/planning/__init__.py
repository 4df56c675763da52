"""Plans edits from results, bindings, and the contents of a tree."""

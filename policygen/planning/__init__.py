"""Results, bindings and what is in the tree, to a plan."""

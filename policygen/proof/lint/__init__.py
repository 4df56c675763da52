"""Values of tuning entries against what the algorithm can use; one module per idea."""

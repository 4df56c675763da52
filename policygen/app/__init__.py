"""What users do with policygen, one module per task. The command line only calls these modules."""

"""What people do with policygen, one module for each thing; the command line only calls it."""

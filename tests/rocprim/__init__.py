"""Trees of rocPRIM, made up and real."""

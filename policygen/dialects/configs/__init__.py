"""rocPRIM's configs: how they are spelled in each of their three forms."""

"""Results of other tuners, read into what databases are made of; a format is told by content."""

"""What a person reads of each document: short functions from a document to blocks."""

"""What to try next: each way to search a space, under one protocol."""

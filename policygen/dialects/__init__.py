"""How tunings are spelled: read, marked, placed and written, in each dialect."""

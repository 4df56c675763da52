"""Machine code before and after a change, kernel by kernel."""

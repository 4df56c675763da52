"""Policy selectors of a user's own, for CUB's public API."""

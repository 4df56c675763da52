"""What tunings depend on beside their types and architecture, which no proof can know."""

"""How a benchmark's workloads and parameters map to a family of tunings."""

"""A search on the workers of a Dask cluster: what travels, what they do, who asks them."""

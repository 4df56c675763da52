"""Console, Markdown and HTML from saved JSON."""

"""Console, Markdown and HTML reports from saved JSON."""

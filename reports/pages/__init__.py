"""One report as an HTML page, Markdown, terminal text or figure files."""

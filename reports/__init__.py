"""Read run folders, analyse them, and show them as a page, Markdown, text or data files."""

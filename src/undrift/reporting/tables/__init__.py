"""Tables of finished runs: compared, tested, and written as Markdown, LaTeX and CSV."""

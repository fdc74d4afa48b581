"""Writers: the parts of a report as text for a terminal, Markdown, LaTeX, CSV and HTML."""

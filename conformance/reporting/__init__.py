"""Tables for Markdown and for a terminal, and files. The grid of ``collshim conformance`` has its own form."""

"""Tables: as Markdown for the pages, as text for a terminal. The grid of ``collshim conformance`` has its own form."""

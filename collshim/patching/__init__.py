"""The real frameworks with collshim's collectives: the functions that are replaced in each, and their replacements."""

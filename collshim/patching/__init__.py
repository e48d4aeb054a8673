"""The real frameworks with collshim's collectives: the functions replaced in each, and how."""

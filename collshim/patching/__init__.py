"""The real frameworks with collshim's collectives: what is replaced in each, and how."""

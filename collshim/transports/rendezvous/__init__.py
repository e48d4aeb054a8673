"""What the processes of a world share: the store, who belongs to the world, who is missing, and how groups meet."""

"""What the processes of a world share: the store, the members, the missing ranks, and how groups are made."""

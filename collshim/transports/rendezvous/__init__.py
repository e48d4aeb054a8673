"""The state that the processes of a world share: the store, members and missing ranks; and how groups are made."""

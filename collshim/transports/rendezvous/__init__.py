"""The state that the processes of a world share, such as the store, members and missing ranks; and making groups."""

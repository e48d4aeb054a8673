"""What a rank asks of the others: collectives, the description of a call, its validation, and its plan."""

"""One call of a rank: collectives, the description of the call, its validation, and its plan."""

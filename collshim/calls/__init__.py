"""One call of a rank: its collective, description, validation and plan."""

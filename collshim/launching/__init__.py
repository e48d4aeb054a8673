"""Start ranks: ``launch`` from a program, ``collshim run`` for a script, and the setup of each rank's process."""

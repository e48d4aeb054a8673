"""How ranks start: ``launch`` from a program, ``collshim run`` for a script, and the setup of each rank's process."""

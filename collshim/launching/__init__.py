"""How ranks start: ``launch`` from a program, ``collshim run`` for a script, and what each rank's process needs."""

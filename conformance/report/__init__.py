"""What a person sees of conformance: ``collshim conformance``.

results.py    what came of each case, and what that makes of a cell of the grid
readiness.py  whether somebody's module can be asked at all
listed.py     functions and cases that a file names
plan.py       which cases are asked
runner.py     asks them
replays.py    replays the recorded calls
verdicts.py   what differences make of a case
upstream/     what is declared to be wrong in the real frameworks, and what the last runs on them came to
causes.py     failures by their cause
shown.py      inputs and answers as text
progress.py   how far a run is
terminal.py   the grid in a terminal
page.py       the grid as one HTML file, made of browser/
real.py       what a real framework is
outcomes.py   docs/real-frameworks.md
options.py    the options of the command
command.py    the command
"""

"""The command ``collshim conformance`` and its output.

results.py    the result of each case, and of a cell of the grid
readiness.py  whether a user's module can be tested at all
listed.py     the functions and cases that a file names
plan.py       selects the cases
runner.py     runs them
replays.py    replays the recorded calls
verdicts.py   turns the differences of a case into a verdict
upstream/     declared faults of the real frameworks, and the last runs on them
causes.py     groups failures by cause
failures.py   the verdict of a run in a sentence, and its failures as text
saved.py      results read from a file
diff.py       the comparison of two results
shown.py      inputs and answers as text
progress.py   the progress of a run
terminal.py   the verdict, the grid and the failures in a terminal
page.py       the grid as one HTML file, made of browser/
real.py       the versions of a real framework
outcomes.py   docs/real-frameworks.md
options.py    the options of the command
command.py    the command
"""

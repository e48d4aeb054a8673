"""Proof that the suite can fail: small faults are put into the code, and the suite must catch each one.

``declared/`` holds patches, one file per layer of the engine and one per adapter; ``mechanical`` makes more by a rule.
Each is put into a copy of the package in a temporary folder, never into this one, and the suite is run on the copy.
"""

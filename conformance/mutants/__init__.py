"""Proof that the suite can fail: small faults are put into the code, and the suite must catch each one.

``declared/`` holds patches, one file per layer of the engine and one per adapter; ``mechanical`` generates more by a
rule. Each is applied to a copy of the package in a temporary folder, never to this one, and the suite runs on the copy.
"""

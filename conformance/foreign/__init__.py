"""Ranks outside collshim's worlds: those of a real framework, or of another module.

    ranks.py            starts, asks and ends them
    rank.py             their main program
    wire.py             answers as bytes
    arrays.py           a real framework's own arrays, as a kind
    differentiation.py  how a real framework computes gradients

All of this also runs beside a real framework, under that framework's own interpreter. It needs only the standard
library, NumPy (1.23 or newer) and the framework itself.
"""

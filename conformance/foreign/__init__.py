"""Ranks that are in no world of collshim's: those of a real framework, or of another module.

    ranks.py            starts them, asks them, ends them
    rank.py             their main program
    wire.py             answers as bytes
    arrays.py           a real framework's own arrays, as a kind
    differentiation.py  how a real framework is asked for gradients

All of it runs beside a real framework too, under that framework's own interpreter: the standard library, NumPy
(1.23 and newer) and the framework itself, nothing else.
"""

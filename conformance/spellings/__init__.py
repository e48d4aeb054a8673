"""What each framework's functions do, told once: one module or folder per framework, with its ``SPELLINGS``.

A spelling names a function's parameters and the role of each, says where the result is, in what form and on which
ranks, and what is admitted and refused. What is asked of a framework, and what is expected, follow from it. This folder
imports the standard library and NumPy only, as ``bindings`` does.
"""

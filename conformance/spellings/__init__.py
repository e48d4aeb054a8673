"""The spellings of each framework's functions: one module or folder per framework, with its ``SPELLINGS``.

A spelling names a function's parameters and the role of each, says where the result is, in what form and on which
ranks, and what is admitted and refused. The cases for a framework, and the expected answers, follow from it. This
folder imports only the standard library and NumPy, as ``bindings`` does.
"""

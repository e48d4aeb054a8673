"""One data-parallel training, written in each framework's words; ``single`` is the same in one process.

Every rank starts from the same parameters, takes each fourth image of a batch, and has the gradients averaged.
"""

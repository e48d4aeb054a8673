"""One data-parallel training, written with each framework's functions; ``single`` is the same in one process.

    collshim.launch(torch.train, 4, ranks="processes", args=(digits.load(),))

Every rank starts from the same parameters, takes every fourth image of a batch, and gets the averaged gradients.
"""

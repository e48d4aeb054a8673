"""One data-parallel training, written in each framework's words; ``single`` is the same in one process.

    collshim.launch(torch.train, 4, ranks="processes", args=(digits.load(),))

Every rank starts from the same parameters, takes each fourth image of a batch, and has the gradients averaged.
"""

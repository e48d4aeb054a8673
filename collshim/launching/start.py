"""The script that ``collshim run`` starts as a rank; it ends quietly on Ctrl-C before the program has begun.

It is a separate file, without imports of collshim at its top, because importing torch takes seconds.
"""

import os
import signal
import sys

if __name__ == "__main__":
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise it is ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback; the worker restores Python's handler
    if sys.path[0] == os.path.dirname(os.path.abspath(__file__)):
        sys.path[0] = os.getcwd()  # as with `python -m`; this folder's modules are not the program's
    from collshim.launching import worker

    worker.main()

"""Runs Granian, with its arguments, for `serve`. Each worker is a new interpreter, so a reload loads the new code.

A worker that was forked would keep the modules of the main process: those of the log, and the version.
"""

import multiprocessing
import runpy

if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    runpy.run_module("granian", run_name="__main__")

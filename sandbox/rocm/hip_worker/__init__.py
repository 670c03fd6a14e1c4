"""The process beside the GPU: ours, trusted, standard library only, started fresh for every batch.

It is not imported by the rest of the program: `python -I -S` runs it from this folder's parent, so that it
needs nothing but an interpreter, also in a cage.
"""

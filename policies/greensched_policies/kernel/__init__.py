"""What decides, compiled once: into the simulator's engine, and ahead of time into a library.

Plain loops over arrays. Needs numba, as `compiling` does. Imports `compiling`, `library`,
`rules`, `encoding` and `costs`. `build.py` makes the library for images that have neither numba nor
a compiler. Begin with `planning.py`.
"""

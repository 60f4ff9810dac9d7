"""Imports mm's rooms from the byte code in mm.pyz; the interpreter finds the others in the archive's src/.

The code says that it comes from src/, so that rooms find the files beside them and tracebacks show the
sources.
"""

import importlib.machinery
import os
import sys
import threading


class Rooms:
    """A finder for sys.meta_path, and the loader of what it finds.

    `archive` is the path of mm.pyz, which mm tells editors to start; `start` is the first part, {room:
    (whether it is a package, its code)}, with the index {room: part} of the others. `part(name)` reads one of
    these. `get_data(path)` reads a file of the archive. Code that has run is not kept.
    """

    def __init__(self, archive, start, part, get_data):
        self.archive, self._part, self.get_data = archive, part, get_data
        self._index = start.pop("index")  # without what has been read
        self._rooms = start
        self._reading = threading.Lock()

    def _room(self, name):
        if name in self._index:
            with self._reading:
                part = self._index.get(name)
                if part:
                    self._rooms.update(self._part(part))
                    self._index = {room: other for room, other in self._index.items() if other != part}
        return self._rooms.get(name)

    def find_spec(self, name, path=None, target=None):
        room = self._room(name)
        if room is None:
            return None
        place = os.path.join(self.archive, "src", *name.split("."))
        file = os.path.join(place, "__init__.py") if room[0] else place + ".py"
        spec = importlib.machinery.ModuleSpec(name, self, origin=file, is_package=room[0])
        spec.has_location = True
        if room[0]:
            spec.submodule_search_locations.append(place)
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(self._rooms.pop(module.__name__)[1], module.__dict__)

    def get_source(self, name):
        return self.get_data(sys.modules[name].__file__).decode("utf-8")

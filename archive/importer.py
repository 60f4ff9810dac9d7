"""Imports mm's rooms from the byte code in mm.pyz; the interpreter finds the others in the archive's src/.

The code says that it comes from src/, so that rooms find the files beside them and tracebacks show the
sources.
"""

import importlib.machinery
import marshal
import os
import sys
import threading


class Rooms:
    """A finder for sys.meta_path, and the loader of what it finds.

    `archive` is the path of mm.pyz, which mm tells editors to start; `start` is the first part, {room: (whether it is a
    package, its marshalled code)}; `rest` names the other one, which is read with the first room that `start`
    does not have. `get_data(path)` reads a file of the archive.
    """

    def __init__(self, archive, start, rest, get_data):
        self.archive, self._rooms, self._rest, self.get_data = archive, start, rest, get_data
        self._reading = threading.Lock()

    def _room(self, name):
        if self._rest and name.startswith("mm.") and name not in self._rooms:
            with self._reading:
                if self._rest:
                    self._rooms.update(self._read_rest())
                    self._rest = None
        return self._rooms.get(name)

    def _read_rest(self):
        try:
            import lzma
        except ImportError:  # some Pythons are built without it: they run the sources
            return {}
        return marshal.loads(lzma.decompress(self.get_data(self._rest)))

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
        exec(marshal.loads(self._room(module.__name__)[1]), module.__dict__)

    def get_source(self, name):
        return self.get_data(sys.modules[name].__file__).decode("utf-8")

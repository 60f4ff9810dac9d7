import os, sys
if sys.version_info < (3, 9):
    sys.stderr.write("mm: Python 3.9 or later is needed, this is %d.%d\n" % sys.version_info[:2])
    sys.exit(2)
# The start of mm.pyz. The lines above also run on Pythons that are too old for the rest; these here are
# compiled at each start, so the importer is not among them. The archive's path is made absolute because rooms
# are imported late, when the process may have moved to another folder.
import importlib.util, marshal, zipimport
archive = os.path.abspath(sys.path[0])
sys.path[0] = os.path.join(archive, "src")
get_data = zipimport.zipimporter(archive).get_data
version = "%s.%d." % (sys.implementation.cache_tag, int.from_bytes(importlib.util.MAGIC_NUMBER[:2], "little"))
try:
    start = marshal.loads(get_data(version + "start"))
except OSError:
    pass  # there is no byte code for this Python
else:
    importer = {}
    exec(start.pop("importer")[1], importer)
    read_part = lambda part: marshal.loads(get_data(version + part))
    sys.meta_path.insert(0, importer["Rooms"](archive, start, read_part, get_data))
from mm.cli import script
script()

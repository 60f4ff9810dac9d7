"""The moving picture of the README: a chat with the demo model in a real terminal, as an SVG that plays it again.

    python3 -m tests.picture        writes docs/picture.svg

Nothing in the picture is made up: a chat runs in a pseudo-terminal, a Screen keeps what a person would see in the end, and each
row appears in the picture in the order in which it appeared in the chat. Rows that were typed are typed again.
"""

from __future__ import annotations

import fcntl
import html
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections import namedtuple

from tests import support

PICTURE = os.path.join(support.PROJECT, "docs", "picture.svg")
COLUMNS, ROWS = 76, 40
# The chat begins with this question. Then what is typed, and what the last row ends with when it is time for it.
QUESTION = "edit: greet.py = Helo -> Hello"
SCENE = (
    ("y", "instead: "),
    ("run: python3 greet.py", "> "),
    ("a", "instead: "),
    ("/exit", "> "),
)
FILES = {"greet.py": 'print("Helo, world")\n'}

# Seconds: a typed character, a printed row, the pause before an answer is typed, the end.
CHARACTER, ROW, PAUSE, END = 0.04, 0.12, 0.9, 4.0
CELL_WIDTH, ROW_HEIGHT, MARGIN, TITLE = 9.03, 20, 20, 38
COLORS = {"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "34": "blue", "35": "magenta", "36": "cyan"}
STYLE = """text{font:15px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d6deeb;white-space:pre}
.bold{font-weight:bold}.dim{fill:#7f8c98}.red{fill:#ff7b72}.green{fill:#7ee787}.yellow{fill:#e3b341}
.blue{fill:#79c0ff}.magenta{fill:#d2a8ff}.cyan{fill:#7fdbca}.bold.dim{fill:#7f8c98}
@media (prefers-reduced-motion:reduce){text{animation:none!important}}"""

_CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07]*\x07|\x1b.|[\r\n\b\x07]")
Cell = namedtuple("Cell", "character style")


class Screen:
    """A terminal without an end: what is printed, row by row, with its colours. It knows what a chat prints, not more."""

    def __init__(self):
        self.rows, self.column, self.style = [[]], 0, ()

    def feed(self, text: str) -> None:
        position = 0
        for control in _CONTROL.finditer(text):
            self._print(text[position:control.start()])
            self._obey(control)
            position = control.end()
        self._print(text[position:])

    def last_row(self) -> str:
        return "".join(cell.character for cell in self.rows[-1])

    def _print(self, text: str) -> None:
        row = self.rows[-1]
        for character in text:
            row += [Cell(" ", ())] * (self.column - len(row))
            row[self.column:self.column + 1] = [Cell(character, self.style)]
            self.column += 1

    def _obey(self, control) -> None:
        sign, parameters, letter = control.group(), control.group(1), control.group(2)
        if sign == "\r":
            self.column = 0
        elif sign == "\n":
            self.rows.append([])
            self.column = 0
        elif sign == "\b":
            self.column = max(self.column - 1, 0)
        elif letter == "K":
            del self.rows[-1][self.column:]
        elif letter == "m":
            for code in (parameters or "0").split(";"):
                self.style = self.style + (COLORS[code],) if code in COLORS else ()


def play(command: list) -> tuple:
    """Runs the chat; returns its rows of Cells, and for each typed row (number, first column) of what was typed."""
    folder = support.scratch_folder()
    for name, text in FILES.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    terminal, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(command, cwd=folder, stdin=other, stdout=other, stderr=other, start_new_session=True,
                               env=support.environment(TERM="xterm-256color", COLUMNS=str(COLUMNS)))
    os.close(other)
    screen, typed = Screen(), []
    try:
        for text, sign in SCENE:
            _until(terminal, screen, lambda: screen.last_row().endswith(sign))
            typed.append((len(screen.rows) - 1, screen.column))
            os.write(terminal, text.encode() + b"\r")
            _until(terminal, screen, lambda: len(screen.rows) - 1 > typed[-1][0])
        process.wait(support.DEADLINE)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    return screen.rows, typed


def _until(terminal: int, screen: Screen, seen) -> None:
    """Shows the screen what comes until `seen()`; returns at the end of the chat, too."""
    deadline = time.monotonic() + support.DEADLINE
    while not seen():
        if time.monotonic() > deadline:
            raise AssertionError("the chat shows: " + screen.last_row())
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                screen.feed(os.read(terminal, 65536).decode("utf-8", "replace"))
            except OSError:  # Linux: the chat has closed its end
                return


def svg(rows: list, typed: list, title: str = "mm in a terminal") -> str:
    """The picture of a chat: `rows` of Cells, and where in them something was typed."""
    while rows and not rows[-1]:
        rows.pop()
    starts, clock, typed = [], 0.5, dict(typed)
    for number, row in enumerate(rows):
        if number in typed:
            clock += PAUSE
        starts.append(clock)
        clock += (len(row) - typed[number]) * CHARACTER if number in typed else ROW
    length = clock + END
    width, height = round(COLUMNS * CELL_WIDTH + 2 * MARGIN), TITLE + len(rows) * ROW_HEIGHT + MARGIN
    frames, texts = [], []
    for number, (row, start) in enumerate(zip(rows, starts)):
        top = TITLE + (number + 1) * ROW_HEIGHT - 5
        cut = typed.get(number, 0)
        for cells, column, first in ((row[:cut], 0, start - PAUSE), (row[cut:], cut, start)):
            if not "".join(cell.character for cell in cells).strip():
                continue
            name = "r%d%s" % (number, "t" if column else "")
            appear = 100 * first / length
            if column:  # typed: uncovered character by character
                end = 100 * (first + len(cells) * CHARACTER) / length
                frames.append("@keyframes %s{0%%,%.2f%%{clip-path:inset(0 100%% 0 0)}%.2f%%,100%%{clip-path:inset(0)}}"
                              % (name, appear, end))
            else:
                frames.append("@keyframes %s{0%%,%.2f%%{opacity:0}%.2f%%,100%%{opacity:1}}"
                              % (name, max(appear - 0.01, 0), appear))
            timing = "steps(%d)" % len(cells) if column else "linear"
            frames.append("#%s{animation:%s %.1fs %s infinite}" % (name, name, length, timing))
            texts.append('<text id="%s" x="%.1f" y="%d">%s</text>'
                         % (name, MARGIN + column * CELL_WIDTH, top, _spans(cells)))
    return "\n".join((
        '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">'
        % (width, height, width, height, title),
        "<style>" + STYLE, *frames, "</style>",
        '<rect width="%d" height="%d" rx="10" fill="#10151c" stroke="#30363d"/>' % (width, height),
        *('<circle cx="%d" cy="18" r="6" fill="%s"/>' % (24 + 20 * place, color)
          for place, color in enumerate(("#ff5f57", "#febc2e", "#28c840"))),
        *texts, "</svg>", ""))


def _spans(cells: list) -> str:
    """Cells of one style become one span."""
    spans, style = [], None
    for cell in cells:
        if cell.style != style:
            spans.append((cell.style, []))
            style = cell.style
        spans[-1][1].append(cell.character)
    return "".join('<tspan class="%s">%s</tspan>' % (" ".join(style), html.escape("".join(text)))
                   if style else html.escape("".join(text)) for style, text in spans)


def made() -> str:
    """The picture as this mm makes it."""
    return svg(*play(support.mm("--demo", "--no-yolo", QUESTION)))


if __name__ == "__main__":
    with open(PICTURE, "w", encoding="utf-8") as picture:
        picture.write(made())
    print("written:", PICTURE, file=sys.stderr)

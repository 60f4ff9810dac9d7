"""What leaves a text that streams in, and what has to wait: text and reasoning before a call, all of it after
one (pure).

A call counts only if nothing follows the last one. So after the first complete call everything waits for the
end. If it turns out to be prose, or far too much follows, all of it is said as it came, in order.
"""

from __future__ import annotations

import re
from collections import namedtuple

from mm.events import Text, Thought

# All that this answer has said as Text until now was reasoning: the model's template had written its
# beginning.
Misread = namedtuple("Misread", "")

# A complete call, or several: the whitespace before it, which would be dropped with it, its text, and [(name,
# arguments)].
Found = namedtuple("Found", "gap raw calls")

# An answer that goes on for so many characters after a call may have to be stopped: it waits no longer.
_MOST_AFTER_CALL = 4096

# A model that goes on with the result of its own call has made it up, and what it calls next follows from
# that.
_INVENTED = re.compile(r"<tool_response|<\|tool_response|\[TOOL_RESULTS\]")


class Held:
    """Collects what the reader finds, and says it as events once nothing keeps it back."""

    def __init__(self):
        self.events = []  # the list that the events are appended to
        self.thoughts = []  # the reasoning that was found
        self.spoke = False  # whether there was any text besides calls and reasoning
        self.gave_up = False  # whether too much followed a call: there are none then
        self._text = []  # text of this read that is not an event yet
        self._said = []  # the text that has left
        self._waiting = None  # after the first call: the Text, Thought and Found that wait
        self._size = 0  # how much of that follows the last call

    @property
    def waits(self) -> bool:
        return self._waiting is not None

    def say(self, text: str) -> None:
        if not text:
            return
        if self.waits:
            self._wait(Text(text))
        else:
            self.spoke = self.spoke or not text.isspace()
            self._text.append(text)

    def say_at_once(self, text: str) -> None:
        """The same for text that is known to wait for nothing."""
        self._said.append(text)
        self.events.append(Text(text))

    def think(self, text: str) -> None:
        if not text:
            return
        if self.waits:
            self._wait(Thought(text))
            return
        self.flush()
        self.thoughts.append(text)
        self.events.append(Thought(text))

    def add_call(self, found: Found) -> None:
        self.flush()
        self._waiting = self._waiting or []
        self._waiting.append(found)
        self._size = 0

    def take_back(self) -> None:
        """What was said until now, or waits to be said, was reasoning."""
        text, self._text = "".join(self._text), []
        if self._said:
            self.events.append(Misread())
            self.thoughts += self._said
            self._said = []
        waiting, self._waiting = self._waiting or (), None
        text += "".join(item.gap + item.raw if isinstance(item, Found) else item.text for item in waiting)
        self.think(text)
        self.spoke = False

    def drop_calls(self) -> None:
        """The answer is not complete: a call that still waits is dropped."""
        self._waiting = [item for item in self._waiting or () if not isinstance(item, Found)]

    def calls(self) -> list:
        """The calls among what waits, if they are to be made: [(name, arguments)]."""
        calls, after = [], ""
        for item in self._waiting or ():
            if isinstance(item, Found):
                if _INVENTED.search(after):
                    return []
                calls += item.calls
                after = ""
            elif isinstance(item, Text):
                after += item.text
        return [] if after.strip() else calls

    def release(self, called: bool) -> None:
        """Says what waits: only the text between the calls if they are made, else all of it as it came."""
        waiting, self._waiting = self._waiting or (), None
        between = ""
        for item in waiting:
            if isinstance(item, Thought):
                self.think(item.text)
            elif not called:
                self.say(item.text if isinstance(item, Text) else item.gap + item.raw)
            elif isinstance(item, Text):
                between += item.text
            elif between:
                self.say("\n" + between.strip() if between.strip() else "")
                between = ""

    def flush(self) -> None:
        """The text of this read becomes an event."""
        if self._text:
            self.say_at_once("".join(self._text))
            self._text = []

    def _wait(self, item) -> None:
        self._waiting.append(item)
        self._size += len(item.text)
        if self._size > _MOST_AFTER_CALL:
            self.gave_up = True
            self.release(False)

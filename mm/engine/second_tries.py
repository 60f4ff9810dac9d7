"""Second tries: everything that may go wrong in a turn and is then tried again. One table:

    what    what happened
    most    how often it is tried again in one turn
    note    what the model reads before the next try; None if nothing, or if the words come with what happened
    end     the line that ends the turn if it happens once more; None if the turn ends with the error, or as
    usual

A turn has one SecondTries, which counts.
"""

from __future__ import annotations

from collections import Counter, namedtuple

SecondTry = namedtuple("SecondTry", "what most note end", defaults=(None, None))

REPEATED_TEXT = SecondTry(
    "the answer, or the reasoning, repeats itself and was cut", 1,
    "[your last answer repeated itself and was cut. Go on without repeating.]",
    "🔁 stopped: the answer repeated itself. Tell me how to go on.")
ONLY_THOUGHT = SecondTry(
    "the model reasoned, and then said nothing", 1,
    "[you thought and then said nothing: act now with a tool or answer]",
    "🛑 stopped: the model reasoned but gave no answer, twice. Rephrase the question, or switch models.")
THOUGHT_TOO_LONG = SecondTry(  # after that it may reason as long as it likes
    "the reasoning was longer than model.maxReasoning and was cut", 1,
    "[you thought for too long: act now with a tool or answer]")
UNREADABLE_CALL = SecondTry(
    "the server could not read the call that its model had just written", 1,
    "[the server could not read your last tool call. Call the tool again.]")
UNREADABLE_ARGUMENTS = SecondTry(  # the first time without the note: it may be a matter of sampling
    "the server could not read the arguments of a call", 2,
    "[the arguments of your last tool call are not valid JSON. Call the tool again with one JSON object.]")
MALFORMED_CALL = SecondTry(  # in a row; the note is the result of the call
    "mm could not read a call, or there is no such tool", 2, None,
    "🛑 stopped: 3 malformed tool calls in a row. Tell me how to continue.")
SENT_ON_BY_HOOK = SecondTry(  # the note is the hook's reason
    "a turnEnd hook denied the end of the turn", 3)
REFUSED_AS_TOO_LONG = SecondTry(  # after the history was shortened
    "the server refused the request because it is too long", 1, None,
    "⚠️ the conversation no longer fits the context window (%s/%s tokens). Use /new or /compact.")

# By the kind of the model server's error (model.failures).
OF_KIND = {"unreadable_call": UNREADABLE_CALL, "bad_history_arguments": UNREADABLE_ARGUMENTS}


class SecondTries:
    """How often each was taken in this turn."""

    def __init__(self):
        self._taken = Counter()

    def left(self, second_try: SecondTry) -> bool:
        """Whether there is one more."""
        return self._taken[second_try] < second_try.most

    def take(self, second_try: SecondTry) -> bool:
        """Counts one; False if there is none left."""
        if not self.left(second_try):
            return False
        self._taken[second_try] += 1
        return True

    def is_last(self, second_try: SecondTry) -> bool:
        """Whether the one that was just taken is the last of several."""
        return second_try.most > 1 and not self.left(second_try)

    def reset(self, second_try: SecondTry) -> None:
        """It went well this time: only failures in a row count."""
        del self._taken[second_try]

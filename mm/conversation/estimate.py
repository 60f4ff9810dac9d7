"""How many tokens a conversation takes: estimated, and corrected by what the server reports. Pure.

There is no tokenizer that fits every model. So the estimate counts characters, and is corrected by the ratio
between the server's last report and the estimate of the same request. A Meter is asked before every request,
so it counts each message only once: messages never change while they are in the list, they are only added,
removed from the end, or replaced all at once.
"""

from __future__ import annotations

import json

# Measured over code and English: 3.6 ASCII characters a token, and a token for each other character.
ASCII_PER_TOKEN = 3.6
# What a template adds around each message: role, separators.
PER_MESSAGE = 8

# A report that differs more than this from the estimate is not believed: some servers leave out what was
# cached, or what they have dropped.
LOWEST_RATIO, HIGHEST_RATIO = 0.6, 1.8


def tokens(text: str) -> float:
    """The estimate for one text."""
    others = 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))
    return (len(text) - others) / ASCII_PER_TOKEN + others


def of_message(message: dict) -> float:
    """The estimate for a message of the history (conversation.history)."""
    total = PER_MESSAGE + tokens(message["content"]) + tokens(message.get("reasoning") or "")
    for call in message.get("calls") or ():
        total += PER_MESSAGE + tokens(call["name"]) + tokens(call["arguments"])
    return total


def of_messages(messages: list) -> float:
    return sum(map(of_message, messages))


def of_prompt(system: str, wire_tools: list) -> float:
    """The estimate for what every request of a session begins with."""
    return PER_MESSAGE + tokens(system) + (tokens(json.dumps(wire_tools, ensure_ascii=False)) if wire_tools
                                           else 0)


def reserve(config, window: int) -> int:
    """Tokens of the window that are kept free for the answer."""
    wanted = config.context_reserve
    return min(min(4096, window // 8) if wanted is None else wanted, window // 2)


def limit(config, window: int) -> int:
    """Tokens up to which a conversation stays as it is."""
    return min(round(config.context_threshold * window), window - reserve(config, window))


class Meter:
    """How much of the window one session uses. Belongs to the thread that runs the session's turn.

    `measure` is the server's last report, input and output together, None before the first and after
    `forget`.
    """

    def __init__(self, system: str, wire_tools: list):
        self.ratio = 1.0
        self.measure = None
        self._prompt = of_prompt(system, wire_tools)
        # how many messages _sum holds, and the last of them
        self._counted, self._last, self._sum = 0, None, 0.0
        self._measured = 0.0  # the sum that belongs to `measure`

    def report(self, messages: list, input_tokens, output_tokens) -> None:
        """Takes the server's counts (or None) for the request whose answer is now the last message."""
        if not input_tokens:
            return
        total = self._of(messages)
        asked = total - (of_message(messages[-1]) if messages and messages[-1]["role"] == "assistant" else 0)
        self._calibrate(input_tokens, asked)
        self.measure = input_tokens + (output_tokens or 0)
        self._measured = total

    def refused(self, messages: list, input_tokens: int) -> None:
        """Takes a server's refusal: the request with these messages has at least this many tokens."""
        self._calibrate(input_tokens, self._of(messages))
        self.forget()

    def forget(self) -> None:
        """Some messages were replaced. What reports have taught about the model stays."""
        self.measure = None
        self._counted, self._last, self._sum = 0, None, 0.0

    def used(self, messages: list) -> int:
        """Tokens of the next request: the last report and an estimate of the rest, or that alone."""
        total = self._of(messages)
        if self.measure is None:
            return round(self.ratio * (self._prompt + total))
        later = self.ratio * (total - self._measured)
        return round(max(self.measure + later, LOWEST_RATIO * (self._prompt + total)))

    def estimate(self, messages: list) -> int:
        """Tokens of a request with these messages, without the last report."""
        return round(self.ratio * (self._prompt + of_messages(messages)))

    def guess(self, messages: list) -> int:
        """Tokens of a request with these messages, without anything that the server has ever reported."""
        return round(self._prompt + self._of(messages))

    def shown(self, messages: list) -> int:
        """What a front end shows: the larger of the last report and the estimate."""
        return max(self.measure or 0, round(self.ratio * (self._prompt + self._of(messages))))

    def _calibrate(self, actual: int, messages_tokens: float) -> None:
        self.ratio = min(max(actual / (self._prompt + messages_tokens), LOWEST_RATIO), HIGHEST_RATIO)

    def _of(self, messages: list) -> float:
        known = self._counted <= len(messages) and (not self._counted
                                                    or messages[self._counted - 1] is self._last)
        if not known:
            self._counted, self._sum = 0, 0.0
        self._sum += of_messages(messages[self._counted:])
        self._counted, self._last = len(messages), messages[-1] if messages else None
        return self._sum

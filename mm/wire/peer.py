"""JSON-RPC 2.0 with one other program, in both directions over a pair of streams.

Threads. run() reads on one thread, the reader: it serves requests in the order they came, delivers answers,
notifications and cancels, and *never writes*. What is sent on it (an answer given on the spot, the error for
a broken line) goes to the outbox, which the writer thread empties. So does an outgoing request, because its
caller must stay free to be cancelled. Everything else is written by the thread that sends it, which waits as
long as the other side does not read. So a side that stops reading holds up the turn that writes to it, but a
cancel is still delivered.

Order. Whoever is about to write empties the outbox first: messages leave in the order they were sent.

Locks. `_writing` is held for one write, `_state` for moments. `_state` may be taken under `_writing`, never
the other way round, and no callback runs under either.

The end. The input may end while the output still works: then whatever waits for an answer gets Closed, and
answers still go out until close(). A failed write closes the peer from whichever thread it happened on. The
reader may be blocked in read() and not notice, so whoever must act on the end registers with on_close().
"""

from __future__ import annotations

import collections
import itertools
import threading

from mm import log
from mm.cancel import Cancel, Cancelled
from mm.wire import messages
from mm.wire.framing import LINES, TooLong
from mm.wire.messages import INTERNAL_ERROR, RpcError

# Bytes in the outbox above which the reader stops reading: a side that only sends must not fill the memory.
OUTBOX_LIMIT = 1024 * 1024
# Seconds that the reader waits for the writer after giving it something to do. Otherwise an answer would
# leave up to 5 ms late, when the interpreter takes its lock away from whatever the reader does next.
HANDOVER = 0.02
TOO_DEEP = "Internal error: the answer is nested too deeply"


class Closed(Exception):
    """The connection is gone."""


class TimedOut(Exception):
    """No answer came in the time that was given for it."""


class Request:
    """A request from the other side, to be answered exactly once, now or later, from any thread.

    `params` is a dict, empty if there were none. `cancel` is cancelled by a `$/cancel_request` for it and by
    the connection's close, as long as it is unanswered. Answering does not raise when the connection is gone.
    """

    __slots__ = ("id", "method", "params", "cancel", "_peer")

    def __init__(self, peer: Peer, call):
        self.id, self.method, self.params = call
        self.cancel = Cancel()
        self._peer = peer

    @property
    def answered(self) -> bool:
        """Whether its answer is on its way or written; also true once the connection is closed."""
        return self not in self._peer._serving

    def answer(self, result) -> None:
        self._peer._answer(self, messages.answer(self.id, result))

    def fail(self, code: int, message: str, data=None) -> None:
        self._peer._answer(self, messages.failure(self.id, code, message, data))


class _Waiting:
    """An outgoing request: `done` is set when `answer` has come, or when none will come any more."""

    __slots__ = ("done", "answer")

    def __init__(self):
        self.done = threading.Event()
        self.answer = None


class Peer:
    """The other program. See the module for threads and locks.

    read() -> bytes            blocks; b"" is the end
    write(bytes)               returns when all is written; OSError when the other side is gone
    serve(request)             on the reader, for each request, in order; must not block. RpcError becomes the
                               answer, anything else is a bug and becomes "Internal error"
    notified(method, params)   on the reader, for each notification; params is a dict
    name                       in log lines and in Closed
    trace(direction, line)     ">" and the bytes sent, with their framing, or "<" and the message received,
                               without; in the order of the wire, on the thread that writes or reads
    noise(line)                on the reader, for what is not a message and has no id, such as a stray print;
                               must not raise. None: it is answered with an error
    longest                    bytes that a message may have; 0: any number
    """

    def __init__(self, read, write, serve, notified, name="client", trace=None, framing=LINES, noise=None,
                 longest=0):
        self._read = read
        self._write = write
        self._serve = serve
        self._notified = notified
        self._name = name
        self._trace = trace
        self._framing = framing
        self._encode = framing.encode
        self._noise = noise
        self._longest = longest
        self._writing = threading.Lock()
        self._state = threading.RLock()
        self._changed = threading.Condition(self._state)
        self._outbox = collections.deque()
        self._outbox_size = 0  # what is being written included
        self._writer = None
        self._reader = None
        self._serving = set()
        self._answering = 0  # requests whose answer is being written
        self._waiting = {}
        self._numbers = itertools.count(1)
        self._input_ended = False
        self._closed = False
        self._on_close = Cancel()

    # The life of the connection

    def run(self) -> None:
        """Reads and serves until the input ends or close(); the calling thread is the reader.

        Afterwards requests of ours end with Closed, but answers still go out: cancel what runs, let it
        answer, then flush() and close(). Raises TooLong.
        """
        framer = self._framing.framer()
        self._reader = threading.get_ident()
        try:
            while not self._closed:
                try:
                    data = self._read()
                except OSError:
                    data = b""
                for message in framer.feed(data) if data else framer.rest():
                    if self._closed:
                        return
                    self._receive(message)
                if not data:
                    return
                if self._longest and framer.size > self._longest:
                    raise TooLong(self._name)
        finally:
            self._reader = None
            self._end_input()

    @property
    def closed(self) -> bool:
        return self._closed

    def on_close(self, callback):
        """Runs `callback()` once when the peer closes, on the thread that closes it, or at once.

        It must not block or raise. Returns a registration, as Cancel.on_cancel does.
        """
        return self._on_close.on_cancel(callback)

    def close(self) -> None:
        """Ends every wait with Closed and cancels what is being served. From any thread, any number of times.

        Nothing is written after it: call flush() first if the last answers matter. The streams stay open.
        """
        with self._state:
            if self._closed:
                return
            self._closed = True
            serving, self._serving = self._serving, set()
            self._outbox.clear()
            self._changed.notify_all()
        self._end_input()
        for cancel in [self._on_close] + [request.cancel for request in serving]:
            try:
                cancel.cancel()
            except Exception:
                log.traceback()  # one callback's bug must not keep the others waiting

    def flush(self, timeout: float) -> None:
        """Waits until all is answered and written, at most `timeout` seconds. Not on the reader."""
        with self._state:
            self._changed.wait_for(lambda: self._closed or not (
                self._serving or self._answering or self._outbox_size), timeout)

    def _end_input(self) -> None:
        """No answer can come any more."""
        with self._state:
            self._input_ended = True
            waiting, self._waiting = list(self._waiting.values()), {}
        for one in waiting:
            one.done.set()

    # Sending

    def notify(self, method: str, params) -> None:
        """Sends a notification, as send_encoded() does."""
        self.send_encoded(self._encode(messages.notice(method, params)))

    def post(self, method: str, params) -> None:
        """Leaves a notification for the writer thread: who sends it need not wait for a slow reader."""
        self._post(self._encode(messages.notice(method, params)))

    def send_encoded(self, line: bytes) -> None:
        """Sends a framed message; returns when it is written, on the reader at once. Raises Closed."""
        if self._closed:
            raise Closed(self._name)
        if threading.get_ident() == self._reader:
            self._post(line)
            return
        try:
            with self._writing:
                if self._outbox:
                    self._write_outbox()
                if self._closed:
                    raise Closed(self._name)
                if self._trace is not None:
                    self._traced(">", line)
                self._write(line)
        except OSError:
            self.close()
            raise Closed(self._name) from None

    def request(self, method: str, params, cancel: Cancel, cancel_notice=messages.cancel_request, limit=None):
        """Asks and waits; returns the result.

        `limit` is a cancel.Deadline, or another object whose left() says how many seconds remain; it is asked
        again when they are over, so it may move. None: there is no limit. Raises RemoteError for an error,
        Closed when the connection is gone, Cancelled and TimedOut. Before the last two, the other side is
        sent `cancel_notice(id)`, a method and its params, unless that is None. Must not be called on the
        reader, which delivers the answer.
        """
        cancel.check()
        waiting, number = _Waiting(), next(self._numbers)
        line = self._encode(messages.call(number, method, params))
        with self._state:
            if self._input_ended:
                raise Closed(self._name)
            self._waiting[number] = waiting
            self._post(line)
        try:
            while not cancel.wait(waiting.done, limit and limit.left()):
                if limit.left() <= 0:
                    raise TimedOut(self._name)
        except (Cancelled, TimedOut):
            with self._state:
                if number in self._waiting and cancel_notice:
                    self._post(self._encode(messages.notice(*cancel_notice(number))))
            raise
        finally:
            self._waiting.pop(number, None)
        if waiting.answer is None:
            raise Closed(self._name)
        return messages.result_of(waiting.answer)

    def _answer(self, request: Request, message: dict) -> None:
        try:
            line = self._encode(message)
        except RecursionError:  # it repeats something of the request that could only just be read
            line = self._encode(messages.failure(request.id, INTERNAL_ERROR, TOO_DEEP))
        with self._state:
            if request not in self._serving:
                return
            self._serving.discard(request)
            self._answering += 1
        try:
            self.send_encoded(line)
        except Closed:
            pass  # nobody is left to read it
        finally:
            with self._state:
                self._answering -= 1
                self._changed.notify_all()

    def _post(self, line: bytes) -> None:
        """Leaves a message for the writer thread; does not block for longer than HANDOVER."""
        with self._state:
            if self._closed:
                return
            idle = not self._outbox_size
            self._outbox.append(line)
            self._outbox_size += len(line)
            if self._writer is None:
                self._writer = threading.Thread(target=self._run_writer, daemon=True,
                                                name=self._name + " writer")
                self._writer.start()
            self._changed.notify_all()
            if idle and threading.get_ident() == self._reader:
                self._changed.wait_for(lambda: self._closed or not self._outbox_size, HANDOVER)

    def _run_writer(self) -> None:
        while True:
            with self._state:
                self._changed.wait_for(lambda: self._closed or self._outbox)
                if self._closed:
                    return
            try:
                with self._writing:
                    self._write_outbox()
            except OSError:
                self.close()

    def _write_outbox(self) -> None:
        """Writes what the outbox holds, in one go. The caller holds `_writing`."""
        with self._state:
            lines = list(self._outbox)
            self._outbox.clear()
        if not lines:
            return
        if self._trace is not None:
            for line in lines:
                self._traced(">", line)
        data = b"".join(lines)
        self._write(data)
        with self._state:
            self._outbox_size -= len(data)
            self._changed.notify_all()

    def _traced(self, direction: str, line: bytes) -> None:
        try:
            self._trace(direction, line)
        except Exception:
            self._trace = None  # a full disk must not end the conversation that is traced
            log.traceback()

    # Receiving, all on the reader

    def _receive(self, line: bytes) -> None:
        if self._trace is not None:
            self._traced("<", line)
        try:
            self._dispatch(messages.read(line))
        except messages.Refused as refused:
            if self._noise is not None and refused.id is None:
                self._noise(line)
                return
            error = refused.code, refused.message, refused.data
            self._post(self._encode(messages.failure(refused.id, *error)))
        except Exception:
            log.traceback()
        if self._outbox_size > OUTBOX_LIMIT:
            with self._state:
                self._changed.wait_for(lambda: self._closed or self._outbox_size <= OUTBOX_LIMIT)

    def _dispatch(self, message) -> None:
        if isinstance(message, messages.Call):
            self._serve_one(Request(self, message))
        elif isinstance(message, messages.Notice):
            self._receive_notice(message)
        elif message is not None:
            self._deliver(message)

    def _serve_one(self, request: Request) -> None:
        with self._state:
            if self._closed:
                return
            self._serving.add(request)
        try:
            self._serve(request)
        except RpcError as error:
            request.fail(error.code, error.message, error.data)
        except Exception as error:
            log.traceback()
            reason = " ".join(("%s: %s" % (type(error).__name__, error)).split())
            request.fail(INTERNAL_ERROR, "Internal error: " + reason, {"error": reason})

    def _receive_notice(self, notice) -> None:
        if notice.method == messages.CANCEL_REQUEST:
            self._cancel(notice.params.get("requestId"))
            return
        try:
            self._notified(notice.method, notice.params)
        except RpcError:
            pass  # a notification has no answer, not even an error

    def _cancel(self, identifier) -> None:
        if not messages.is_id(identifier):
            return
        with self._state:
            found = [request for request in self._serving if request.id == identifier]
        for request in found:
            request.cancel.cancel()

    def _deliver(self, answer) -> None:
        """Hands an answer to the request that waits for it. One that nobody waits for is dropped."""
        with self._state:
            waiting = self._waiting.pop(answer.id, None)
        if waiting is not None:
            waiting.answer = answer
            waiting.done.set()
        elif not answer.complete:
            raise messages.unanswerable()

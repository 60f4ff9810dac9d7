"""What a model server answers for a transcript's `=` lines."""

from __future__ import annotations

import json
import threading
import unittest

from mm.transcripts import script, transcript


def reply(text: str, names=None):
    lines = transcript.parse("~ {}\n" + text)
    return script.reply(transcript.groups(lines)[0][1], names or {}, "m", threading.Event())


def events(text: str) -> list:
    """What the stream says: the delta with its finish reason or the usage of each event, and "[DONE]"."""
    found = []
    for chunk in reply(text).chunks:
        data = chunk.decode("utf-8").strip()
        if not data.startswith("data: {"):
            found.append(data)
            continue
        event = json.loads(data[6:])
        if event["choices"]:
            choice = event["choices"][0]
            found.append(choice["finish_reason"] or choice["delta"])
        else:
            found.append(event["usage"])
    return found


class TheStream(unittest.TestCase):
    def test_each_line_adds_up(self):
        for text, expected in (
            ('= {"text":"a"}', [{"content": "a"}, "stop", "data: [DONE]"]),
            ('= {"text":["a"," b"]}', [{"content": "a"}, {"content": " b"}, "stop", "data: [DONE]"]),
            ('= {"thought":"t","text":"a"}', [{"reasoning_content": "t"}, {"content": "a"}, "stop",
                                              "data: [DONE]"]),
            ('= {"text":"a"}\n= {"finish":"length"}', [{"content": "a"}, "length", "data: [DONE]"]),
            ('= {"text":"a"}\n= {"usage":{"input":3,"output":4}}',
             [{"content": "a"}, {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}, "stop",
              "data: [DONE]"]),
            ('= {"usage":{"input":3,"output":4,"cached":2,"thought":1}}',
             [{"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7,
               "prompt_tokens_details": {"cached_tokens": 2},
               "completion_tokens_details": {"reasoning_tokens": 1}}, "stop", "data: [DONE]"]),
            ('= data: {"choices":[]}\n= data: [DONE]', ['data: {"choices":[]}', "data: [DONE]"][1:]),
        ):
            with self.subTest(text):
                if "data:" in text:
                    self.assertEqual(b"".join(reply(text).chunks),
                                     b'data: {"choices":[]}\n\ndata: [DONE]\n\n')
                else:
                    self.assertEqual(events(text), expected)

    def test_calls_are_numbered_and_may_come_in_pieces(self):
        text = '= {"call":{"name":"bash","arguments":{"command":"ls"}}}\n= {"call":{"name":"bash","arguments":["{\\"a", "\\":1}"]}}'
        self.assertEqual(events(text), [
            {"tool_calls": [{"index": 0, "id": "scripted_1", "type": "function",
                             "function": {"name": "bash", "arguments": '{"command": "ls"}'}}]},
            {"tool_calls": [{"index": 1, "id": "scripted_2", "type": "function",
                             "function": {"name": "bash", "arguments": '{"a'}}]},
            {"tool_calls": [{"index": 1, "function": {"arguments": '":1}'}}]},
            "tool_calls", "data: [DONE]",
        ])

    def test_malformed_arguments_go_out_as_they_are(self):
        self.assertEqual(events('= {"call":{"name":"x","arguments":"{oops"}}')[0]["tool_calls"][0]["function"]["arguments"], "{oops")

    def test_a_status_answers_with_an_error(self):
        answer = reply('= {"status":500,"body":{"error":{"message":"<cwd>"}}}', {"cwd": "/w"})
        self.assertEqual((answer.status, json.loads(b"".join(answer.chunks))),
                         (500, {"error": {"message": "/w"}}))
        self.assertEqual(b"".join(reply('= {"status":503,"body":"busy"}').chunks), b"busy")
        self.assertEqual(reply('= {"status":503}').status, 503)

    def test_a_drop_ends_the_connection_in_the_middle(self):
        chunks = reply('= {"text":"a"}\n= {"drop":true}\n= {"text":"b"}').chunks
        self.assertIn(b'"a"', next(chunks))
        with self.assertRaises(ConnectionError):
            next(chunks)

    def test_a_hang_lasts_until_the_transcript_is_over(self):
        stop = threading.Event()
        lines = transcript.groups(transcript.parse('~ {}\n= {"text":"a"}\n= {"hang":true}'))[0][1]
        chunks = script.reply(lines, {}, "m", stop).chunks
        next(chunks)
        threading.Timer(0.05, stop.set).start()
        with self.assertRaises(ConnectionError):
            next(chunks)
        self.assertTrue(stop.is_set())


if __name__ == "__main__":
    unittest.main()

"""What an editor does with mm, and a real model behind it: the main job, a cancel, a conversation too long, two at once."""

from __future__ import annotations

import os
import time
import unittest

from tests import support
from tests.fakes.model_server import ModelServer
from tests.real import server
from tests.real.server import PATIENCE, WITHOUT_TOOLS

STORY = "Tell me a very long story about a lighthouse, its keeper and the sea."
REMEMBER = "Remember this and answer with the one word yes: "
# An answer that goes on until somebody ends it; servers that do not know the field leave it out.
ENDLESS = {"model": {"extra": {"ignore_eos": True}}, "loop": {"enabled": False}, **WITHOUT_TOOLS}
BRIEF = {"model": {"maxTokens": 40}, **WITHOUT_TOOLS}
KEPT = {"enabled": True}
ENDS = ("end_turn", "max_tokens")

# Seconds: until the answer to a cancel comes, and until the server is free again that was writing.
ANSWERED, FREED = 1, 5
# Tokens of a prompt that takes a while to read.
LONG = 1500

# Windows up to this are filled in minutes.
FILLABLE = 8192
WORD_TOKENS = 5


def words(tokens: int, seed: int) -> str:
    """A text of about so many tokens that no other seed begins with."""
    return " ".join("item%d" % (seed * 1000 + number) for number in range(tokens // WORD_TOKENS))


class MainJob(server.RealTest):
    def test_a_prompt_a_streamed_call_its_result_a_text_the_end(self):
        if not server.calls_tools():
            self.skipTest("no tool call can be streamed from this server and model")
        with self.client(model={"maxTokens": 80}) as client:
            for name in ("first.txt", "second.txt"):
                with open(os.path.join(client.cwd, name), "w"):
                    pass
            session = self.session(client)
            ended = client.prompt(session, server.QUESTION, PATIENCE)
            kinds = [update["sessionUpdate"] for update in client.updates(session=session)]
            call = client.updates("tool_call")[0]
            result = client.update("tool_call_update", toolCallId=call["toolCallId"], status="completed")
        self.assertIn(ended["stopReason"], ENDS)
        self.assertEqual(call["title"], "bash: ls")
        self.assertIn("first.txt\nsecond.txt", result["rawOutput"]["output"])
        last_text = len(kinds) - 1 - kinds[::-1].index("agent_message_chunk")
        self.assertGreater(last_text, kinds.index("tool_call_update"), "the text comes behind the result")

    def test_a_text_comes_in_pieces(self):
        with self.client(**BRIEF) as client:
            ended = client.prompt(self.session(client), STORY, PATIENCE)
            self.assertGreater(len(client.updates("agent_message_chunk")), 5)
        self.assertIn(ended["stopReason"], ENDS)


class Cancelling(server.RealTest):
    def cancelled(self, client, session, prompt) -> float:
        """Cancels the prompt; the seconds until the server was free again, None where it does not tell."""
        begin = time.monotonic()
        client.cancel(session)
        self.assertEqual(client.finish(prompt, PATIENCE)["stopReason"], "cancelled")
        self.assertLess(time.monotonic() - begin, ANSWERED)
        if server.busy_slots() is None:
            return None
        self.wait_idle()
        return time.monotonic() - begin

    def assert_goes_on(self, client, session):
        """The next prompt of the same session is answered."""
        prompt = client.start_prompt(session, "Thank you. And now another story.")
        before = len(client.updates("agent_message_chunk"))
        client.wait_for(lambda: len(client.updates("agent_message_chunk")) > before, PATIENCE, "a text")
        self.cancelled(client, session, prompt)

    def test_in_the_stream(self):
        with self.client(**ENDLESS) as client:
            session = self.session(client)
            prompt = client.start_prompt(session, STORY)
            client.update("agent_message_chunk", PATIENCE)
            freed = self.cancelled(client, session, prompt)
            self.assert_goes_on(client, session)
        if freed is not None:
            server.report("cancel in the stream: free after %.2f s" % freed)
            self.assertLess(freed, FREED)

    def test_before_the_first_token(self):
        with self.client(**ENDLESS) as client:
            session = self.session(client)
            prompt = client.start_prompt(session, REMEMBER + words(LONG, int(time.time()) % 1000))
            if server.busy_slots() is None:
                time.sleep(1)
            else:
                support.wait_until(server.busy_slots, PATIENCE, "the request")
            self.assertEqual(client.text(), "")
            freed = self.cancelled(client, session, prompt)
            self.assertEqual(client.text(), "")
            self.assert_goes_on(client, session)
        if freed is not None:  # it reads in batches that nothing interrupts
            server.report("cancel while a prompt of %d tokens is read: answered at once, free after %.2f s" % (LONG, freed))


class TooLong(server.RealTest):
    """The conversation is made with a scripted model, which is quick, kept, and gone on with before the real server."""

    def setUp(self):
        self.folder = support.scratch_folder()

    def test_old_outputs_are_left_out_of_a_conversation_that_is_refused(self):
        size = self.fillable_window()
        big = "for i in $(seq %d); do printf 'item%%d ' $((RANDOM %% 1000)); done" % (0.4 * size / WORD_TOKENS)
        calls = [[{"call": {"name": "bash", "arguments": {"command": command}}}] for command in
                 [big, big + " "] + ["echo step %d" % number for number in range(6)]]
        session = self.made([["Look at the items."], calls + [[{"text": "There are many."}]]])
        log = self.gone_on_with(session, size // 3, 40)
        self.assertIn("🗜️ left out 2 old tool output(s)", log)

    def test_a_conversation_that_is_refused_becomes_a_summary(self):
        size = self.fillable_window()
        yes = [[{"text": "Yes."}]]
        for seed in (1, 11, 21):
            session = self.made([[REMEMBER + words(size // 4, seed + number) for number in range(3)], yes])
            log = self.gone_on_with(session, size // 3, 200)
            if "🗜️ compressed " in log:
                return
        self.skipTest("the model wrote no usable summary in three tries")

    def fillable_window(self) -> int:
        if not 0 < server.window() <= FILLABLE:
            self.skipTest("the server tells no window that can be filled in minutes")
        return server.window()

    def made(self, talk) -> str:
        """The id of a session in which these prompts got these answers."""
        prompts, answers = talk
        with ModelServer(*answers) as scripted:
            with self.client(cwd=self.folder, model={"url": scripted.url, "contextWindow": 1_000_000}, sessions=KEPT) as client:
                session = self.session(client)
                for prompt in prompts:
                    client.prompt(session, prompt)
                return session

    def gone_on_with(self, session: str, tokens: int, longest: int) -> str:
        """Asks the real server for more than its window holds; what mm logged until the answer came.

        mm is told of a large window: that the conversation no longer fits it hears from the server alone.
        """
        model = {"contextWindow": 1_000_000, "maxTokens": longest}
        with self.client(cwd=self.folder, model=model, sessions=KEPT, **WITHOUT_TOOLS) as client:
            client.initialize()
            client.request("session/load", {"sessionId": session, "cwd": self.folder, "mcpServers": []})
            ended = client.prompt(session, REMEMBER + words(tokens, 99), 2 * PATIENCE)
            log = client.stderr
        self.assertIn(ended["stopReason"], ENDS)  # with a line that says so where there was no way to make it fit
        server.report("overflow: " + (next((line for line in log.splitlines() if "🗜️" in line or "compact: " in line), "not noticed")))
        return log

    def test_a_prompt_that_does_not_fit_is_a_failure(self):
        size = server.window() or FILLABLE
        if size > FILLABLE:
            self.skipTest("the server tells no window that can be filled in minutes")
        with self.client(**WITHOUT_TOOLS) as client:
            session = self.session(client)
            try:
                client.prompt(session, REMEMBER + words(2 * size, 1), PATIENCE)
                said = client.text().partition("\n\n")[0]  # below it is told that the window is small
            except support.RemoteError as error:
                said = error.data["error"]
            self.assertRegex(said, "context window|window \\(|fit")
            self.assertNotIn("\n", said)
            # The session is not spoilt by it.
            before = client.text()
            ended = client.prompt(session, "Hello, who are you? One word.", PATIENCE)
            self.assertGreater(len(client.text()), len(before))
        self.assertIn(ended["stopReason"], ENDS)


class TwoAtOnce(server.RealTest):
    def test_two_sessions_of_one_mm_are_answered_in_turn(self):
        with self.client(**BRIEF) as client:
            client.initialize()
            sessions = [client.new_session(), client.new_session()]
            prompts = [client.start_prompt(session, STORY) for session in sessions]
            for session, prompt in zip(sessions, prompts):
                self.assertIn(client.finish(prompt, PATIENCE)["stopReason"], ENDS)
                self.assertGreater(len(client.text(session)), 20)

    def test_two_mm_are_both_answered_or_told_why_not(self):
        with self.client(**BRIEF) as one, self.client(**BRIEF) as other:
            started = [(client, self.session(client)) for client in (one, other)]
            started = [(client, session, client.start_prompt(session, STORY)) for client, session in started]
            answered = 0
            for client, session, prompt in started:
                answer = client.answer(prompt, PATIENCE)
                if "error" in answer:  # some servers let a new request cut the one before: never an empty answer
                    self.assertIn("interrupted", answer["error"]["data"]["error"])
                else:
                    self.assertIn(answer["result"]["stopReason"], ENDS)
                    self.assertGreater(len(client.text(session)), 20)
                    answered += 1
        self.assertGreaterEqual(answered, min(2, server.slots()))


if __name__ == "__main__":
    unittest.main()

"""The line of turns: order, cancelling while waiting, never two at once."""

from __future__ import annotations

import threading
import unittest

from mm.cancel import Cancel, Cancelled
from mm.engine.queue import TurnQueue


class Line(unittest.TestCase):
    def test_turns_run_in_order_of_their_tickets(self):
        queue, order, running = TurnQueue(), [], []
        tickets = [queue.ticket() for _ in range(20)]

        def run(number):
            with tickets[number].turn(Cancel()):
                running.append(number)
                self.assertEqual(len(running), 1)
                order.append(number)
                running.remove(number)

        threads = [threading.Thread(target=run, args=(number,)) for number in reversed(range(20))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
        self.assertEqual(order, list(range(20)))

    def test_cancelled_ticket_does_not_hold_up_others(self):
        queue = TurnQueue()
        first, second, third = queue.ticket(), queue.ticket(), queue.ticket()
        with first.turn(Cancel()):
            cancel = Cancel()
            cancel.cancel()
            with self.assertRaises(Cancelled), second.turn(cancel):
                self.fail("it is not its turn")
            self.assertFalse(third.called.is_set())
        with third.turn(Cancel()):
            pass

    def test_leaving_twice_harms_nobody(self):
        queue = TurnQueue()
        first, second = queue.ticket(), queue.ticket()
        first.leave()
        first.leave()
        self.assertTrue(second.called.is_set())


if __name__ == "__main__":
    unittest.main()

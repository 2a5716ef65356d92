#!/usr/bin/env python3
"""Receives webhooks of Placet and prints what they tell, each once.

WEBHOOK_SECRET=whsec_... python3 examples/webhook/python/receiver.py 127.0.0.1 9000
"""

import http.server
import json
import os
import sys
import threading

from verify import verify

MAX_BODY = 1 << 20
SECRET = os.environ["WEBHOOK_SECRET"]

# The ids of what was done. Keep them in your database, written in the transaction that
# does the work: then a repeat does nothing, also after a restart.
seen = set()
lock = threading.Lock()


def once(message_id, body):
    """Does the work of a delivery that was not seen yet."""
    with lock:
        if message_id in seen:
            return
        event = json.loads(body)
        print(event["type"], event.get("subject", ""), flush=True)
        seen.add(message_id)


class Receiver(http.server.BaseHTTPRequestHandler):
    timeout = 10  # seconds

    def do_POST(self):
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > MAX_BODY:
            return self.answer(400)
        body = self.rfile.read(int(length))
        if not verify(SECRET, self.headers, body):
            return self.answer(401)
        try:
            once(self.headers["webhook-id"], body)
        except (ValueError, KeyError, AttributeError):
            return self.answer(500)  # and is sent again
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Receiver)
    print("listening on http://%s:%d" % server.server_address[:2], flush=True)
    server.serve_forever()

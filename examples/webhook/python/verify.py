import base64
import hashlib
import hmac
import re
import time

TOLERANCE = 5 * 60  # seconds


def verify(secret, headers, body, now=None):
    """Whether these bytes come from who has the secret, and are not old.

    secret is the text whsec_..., headers a mapping in which case does not count, and
    body the bytes that came, before anything was parsed.
    """
    key = base64.b64decode(secret.removeprefix("whsec_"))
    message_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not message_id or not re.fullmatch("[0-9]{1,12}", timestamp):
        return False
    if abs((time.time() if now is None else now) - int(timestamp)) > TOLERANCE:
        return False
    signed = f"{message_id}.{timestamp}.".encode() + body
    mac = hmac.new(key, signed, hashlib.sha256).digest()
    want = b"v1," + base64.b64encode(mac)
    # While a secret is rotated there are two signatures; one that fits is enough.
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(want, signature.encode()) for signature in given)

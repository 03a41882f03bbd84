"""Drives analytics-python as its application would: one JSON order as argument, one JSON outcome on stdout."""
import json
import sys
from datetime import datetime

from segment.analytics.client import Client

order = json.loads(sys.argv[1])
errors = []


def failed(error, batch):
    errors.append({"kind": type(error).__name__, "code": getattr(error, "code", None),
                   "status": getattr(error, "status", None), "calls": len(batch)})


client = Client(order["writeKey"], host=order["host"], gzip=order.get("gzip", False), on_error=failed,
                upload_size=1 if order["kind"] == "many" else 100, upload_interval=0.1, max_queue_size=100000)
user = order["userId"]


def every_call():
    at = datetime.fromisoformat(order["at"].replace("Z", "+00:00"))
    client.identify(user, {"email": "a@example.org", "plan": "pro"}, timestamp=at)
    client.track(user, "Order Completed", {"price": 9.5}, timestamp=at)
    client.page(user, None, "Home", {"url": "https://example.org/"}, timestamp=at)
    client.screen(user, None, "Cart", timestamp=at, context={
        "device": {"model": "Pixel 9", "type": "android"},
        "os": {"name": "Android", "version": "16"},
        "app": {"build": "12", "name": "Shop", "version": "3.4"},
    })
    client.group(user, "g1", {"total seats": 5}, timestamp=at)
    client.alias(user, order["newId"], timestamp=at)
    return 6


def many_calls():
    for number in range(order["count"]):
        client.track(user, "Counted", {"number": number})
    return order["count"]


def bomb():
    """A batch that compresses by more than any honest one: refused for good, whatever it is sent."""
    for number in range(10):
        client.track(user, "Bomb", {"text": "a" * 30000, "number": number})
    return 10


sent = {"every": every_call, "many": many_calls, "bomb": bomb}[order["kind"]]()
client.shutdown()
print(json.dumps({"sent": sent, "errors": errors}))

"""solehold.py as a process that a test steers: one JSON request a line, one JSON answer a line."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

import solehold  # noqa: E402

client = solehold.Client(sys.argv[1], holder="python")
solehold.COMMAND_TIMEOUT = 3.0
leases = {}
lost = []


def answer(op, given):
    name = given.get("name")
    if op == "acquire":
        leases[name] = client.acquire(**given, on_lost=lost.append)
        return {"fence": str(leases[name].fence)}
    if op == "held":
        return {"held": leases[name].held(), "remaining": leases[name].remaining(), "lost": lost}
    if op == "check":
        leases[name].check()
        return {}
    if op == "wait_lost":
        return {"lost": leases[name].lost.wait(given["timeout"]), "reason": leases[name].loss_reason}
    return {"released": leases[name].release()}


for line in sys.stdin:
    request = json.loads(line)
    try:
        print(json.dumps(answer(request.pop("op"), request)), flush=True)
    except Exception as error:
        facts = {name: getattr(error, name, None) for name in ("holder", "outcome")}
        print(json.dumps({"error": type(error).__name__, "message": str(error), **facts}), flush=True)

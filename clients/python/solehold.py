"""A Solehold client in one file: Python 3.8 or later, standard library only. Copy it.

    client = Client("http://127.0.0.1:7077")
    with client.acquire("reports/nightly", ttl=30, wait=10) as lease:
        write(row, fence=lease.fence)   # what is written to refuses a lower fence
        lease.check()                   # raises LeaseLost unless the lease is held at this very moment

It is also the reference of how to write a safe client over the HTTP API. What makes it safe:

1. The clocks are read BEFORE a request leaves. A belief counts from there and ends a margin early (`margin_ms`).
2. Two clocks are read, and either one saying "over" is enough: the monotonic clock stands still while a machine is
   suspended, the wall clock may be set back.
3. A renewal that fails takes nothing away, and one that is refused ends the lease at once. A belief that is over is
   never revived.
4. An answer that got lost is asked for again with the same token. What may have been granted without an answer is
   released, so that nobody waits for its ttl.

Not promised: that a paused program stops in time. Between `check` and a write anything can happen; that is what fences
are for. The functions without a class are pure; docs/vectors has test vectors for them.
"""
import http.client
import json
import math
import os
import random
import secrets
import socket
import threading
import time
import urllib.error
import urllib.request
from collections import namedtuple

Clocks = namedtuple("Clocks", "monotonic_ms wall_ms")
Validity = namedtuple("Validity", "monotonic_end_ms wall_end_ms")
Drift = namedtuple("Drift", "ratio tick_ms")

DEFAULT_DRIFT = Drift(0.01, 2)
COMMAND_TIMEOUT = 10.0
LONGEST_WAIT = 30.0  # A server takes no longer waits in one request.
RETRY_PAUSE = 0.2
LONGEST_RELEASE = 5.0
RENEW_PART, RETRY_PART, TIMEOUT_PART, JITTER = 1 / 3, 1 / 10, 1 / 5, 0.2


# What a holder may believe. Durations and instants in milliseconds.


def read_clocks():
    return Clocks(time.monotonic() * 1000, time.time() * 1000)


def margin_ms(ttl_ms, drift):
    """How much earlier than the store a holder must stop."""
    return math.ceil(ttl_ms * drift.ratio) + drift.tick_ms


def believed_from(sent, received, waited_ms, drift):
    """From when on a grant may count: before the request left, plus its time in the server's queue, slowed by drift.

    While this machine slept its monotonic clock stood: that part of the wait is not added to it.
    """
    if waited_ms == 0:
        return sent
    queued = waited_ms / (1 + drift.ratio)
    elapsed = received.monotonic_ms - sent.monotonic_ms
    slept = max(0, received.wall_ms - sent.wall_ms - elapsed)
    awake = max(0, min(queued - slept, elapsed))
    return Clocks(sent.monotonic_ms + awake, sent.wall_ms + queued)


def validity_from(start, valid_for_ms, drift):
    length = valid_for_ms - margin_ms(valid_for_ms, drift)
    return Validity(start.monotonic_ms + length, start.wall_ms + length)


def is_valid(validity, now):
    return now.monotonic_ms < validity.monotonic_end_ms and now.wall_ms < validity.wall_end_ms


def remaining_ms(validity, now):
    left = min(validity.monotonic_end_ms - now.monotonic_ms, validity.wall_end_ms - now.wall_ms)
    return max(left, 0)


def later(a, b):
    """A renewal never takes away what was already promised."""
    return a if a.monotonic_end_ms >= b.monotonic_end_ms else b


# What an answer means: applied, denied, refused or unsettled.

WAITABLE = frozenset(
    "LEASE_HELD_BY_OTHER LEASE_HELD_BY_SELF LEASE_REVOKED LEASE_HANDOFF_PENDING LEASE_RESERVED LEASE_LOCK_DELAY".split()
)
DECISIONS = WAITABLE | frozenset(
    "LEASE_TOKEN_INVALID LEASE_TTL_OUT_OF_BOUNDS LEASE_NOT_FOUND LEASE_EXPIRED LEASE_ALREADY_REVOKED LEASE_FENCED "
    "LEASE_PURPOSE_MISMATCH LEASE_BREAKING LEASE_RESUME_REQUIRED LEASE_GENERATION_STALE FENCE_EXHAUSTED QUORUM_NOT_MET "
    "CAPACITY_EXCEEDED IDEMPOTENCY_KEY_REUSED FENCE_WENT_BACK RECORD_CORRUPT INPUT_SCHEMA_INVALID "
    "UPSTREAM_INPUT_MISSING BUDGET_EXCEEDED INTERNAL_PIPELINE_ERROR".split()
)


def meaning_of(op, status, body, own_token):
    """A dict with `kind`. "unsettled" with outcome "unknown": it may have been carried out."""
    if status == 200:
        try:
            lease = body["lease"]
            return {
                "kind": "applied",
                "token": body.get("token", own_token),
                "fence": int(lease["fence"]),
                "validForMs": _whole(body["validForMs"]),
                "waitedMs": _whole(body["waitedMs"]),
                "replayed": body.get("replayed") is True,
            }
        except (KeyError, TypeError, ValueError, AttributeError):
            return _unsettled(op, "unknown", "the server's answer cannot be read")
    body = body if isinstance(body, dict) else {}
    reason, detail = body.get("reason"), body.get("detail", "status %d" % status)
    decided = isinstance(reason, str) and reason in DECISIONS
    if status == 401 or (status == 403 and not decided):
        return _unsettled(op, "not-applied", detail, retry=False)
    if decided and isinstance(body.get("field"), str):
        field = body["field"]
        message = detail[len(field) + 1 :] if detail.startswith(field + " ") else detail
        return {"kind": "refused", "field": field, "message": message}
    if decided and status < 500:
        outcome = {"kind": "denied", "reason": reason, "heldBy": body.get("heldBy"), "detail": detail}
        if op == "renew":
            # A lease that an operator asked for stays valid until its end; it cannot be prolonged.
            outcome["lost"] = reason != "LEASE_BREAKING"
        else:
            dated = reason == "FENCE_WENT_BACK" and body.get("heldUntilMs") is not None
            outcome["worthWaiting"] = reason in WAITABLE or dated
        return outcome
    nothing_done = body.get("outcome") == "not-applied" or status == 429
    lost_data = body.get("storeError") == "data-loss"
    return _unsettled(op, "not-applied" if nothing_done else "unknown", detail, lost=lost_data)


def _whole(value):
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("not a whole number: %r" % (value,))
    return value


def _unsettled(op, outcome, detail, retry=True, lost=False):
    settled = {"kind": "unsettled", "outcome": outcome, "detail": detail, "retry": retry}
    return dict(settled, lost=lost) if op == "renew" else settled


# Errors.


class LeaseError(Exception):
    """The base of all errors here."""


class LeaseHeld(LeaseError):
    """Somebody else has it, or it is closed. Nothing is broken."""

    def __init__(self, name, outcome):
        holder = outcome["heldBy"]
        what = "is held by %s" % holder if holder else outcome["detail"]
        super().__init__("%s: %s (%s)" % (name, what, outcome["reason"]))
        self.reason, self.holder = outcome["reason"], holder


class LeaseRefused(LeaseError):
    """The request is wrong: the message names the field and the fix."""


class LeaseUnavailable(LeaseError):
    """The server could not be asked. `outcome` says whether the command may have been carried out."""

    def __init__(self, message, outcome):
        super().__init__(message)
        self.outcome = outcome


class LeaseLost(LeaseError):
    """The lease is over for its holder: stop."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # The API key is for this server alone.


class Client:
    """Leases of one server. Safe to share between threads."""

    def __init__(self, url, holder=None, api_key=None, tenant=None, drift=DEFAULT_DRIFT):
        if not url.startswith(("http://", "https://")):
            raise ValueError("url must begin with http:// or https://, got %r" % url)
        if not (0 <= drift.ratio < 0.5 and drift.tick_ms >= 1):
            raise ValueError("drift must have a ratio from 0 to below 0.5 and ticks of at least 1 ms, got %r" % (drift,))
        self.url = url.rstrip("/")
        self.holder = holder or "%s-%d-%s" % (socket.gethostname()[:60], os.getpid(), secrets.token_hex(4))
        self.drift = drift
        self._api_key = api_key or os.environ.get("SOLEHOLD_API_KEY")
        self._tenant = tenant
        self._opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))

    def acquire(self, name, ttl=30.0, wait=10.0, note=None, on_lost=None):
        """A Lease, renewed by a thread until it is released. Waits up to `wait` seconds for its turn.

        `on_lost(reason)` is called once, by the thread that notices that the lease is over. Raises LeaseHeld, LeaseRefused or
        LeaseUnavailable.
        """
        ttl_ms = int(ttl * 1000)
        # Room for two retries after a failed renewal.
        if ttl_ms * (RENEW_PART + 2 * RETRY_PART) * (1 + JITTER) >= ttl_ms - margin_ms(ttl_ms, self.drift):
            raise ValueError("ttl of %r s leaves no room for renewals: use a longer one" % ttl)
        if not wait >= 0:
            raise ValueError("wait must be a number of seconds from 0, got %r" % wait)
        # One token for all attempts: a later one finds the grant of an earlier one whose answer was lost.
        token = secrets.token_urlsafe(24)
        body = {"name": name, "token": token, "ttlMs": ttl_ms}
        if note is not None:
            body["note"] = note
        deadline = time.monotonic() + wait
        perhaps_granted = False
        try:
            while True:
                # While a request is under way nobody knows; Ctrl-C may come.
                earlier, perhaps_granted = perhaps_granted, True
                turn = min(max(0.0, deadline - time.monotonic()), LONGEST_WAIT)
                outcome = self._settle("acquire", dict(body, waitMs=int(turn * 1000)), COMMAND_TIMEOUT, turn)
                if outcome["kind"] == "applied":
                    if not is_valid(outcome["validity"], read_clocks()):
                        raise LeaseUnavailable("%s: the answer took longer than the ttl" % name, "not-applied")
                    lease = Lease(self, name, token, ttl_ms, outcome, on_lost)
                    perhaps_granted = False
                    return lease
                unsettled = outcome["kind"] == "unsettled"
                perhaps_granted = earlier or (unsettled and outcome["outcome"] == "unknown")
                again = outcome["retry"] if unsettled else outcome.get("worthWaiting", False)
                if not again or time.monotonic() >= deadline:
                    raise _error_of(name, outcome)
                if unsettled:
                    time.sleep(RETRY_PAUSE)
        finally:
            if perhaps_granted:
                self._settle("release", {"name": name, "token": token}, min(LONGEST_RELEASE, ttl))

    def _settle(self, op, body, timeout, wait=0.0):
        """Asks until there is an answer, with the same token, within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        maybe_done = None
        while True:
            outcome = self._ask(op, body, max(0.05, deadline - time.monotonic()) + wait)
            if outcome["kind"] != "unsettled" or not outcome["retry"]:
                return outcome
            if outcome["outcome"] == "unknown":
                maybe_done = outcome
            if time.monotonic() + RETRY_PAUSE >= deadline:
                return maybe_done or outcome
            time.sleep(RETRY_PAUSE)

    def _ask(self, op, body, timeout):
        """One request. Never raises; an applied outcome has its validity."""
        sent = read_clocks()
        try:
            status, answer = self._post("/v1/leases/" + op, dict(body, holder=self.holder), timeout)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return _unsettled(op, "unknown", str(error))
        received = read_clocks()
        outcome = meaning_of(op, status, answer, body["token"])
        if outcome["kind"] == "applied":
            start = believed_from(sent, received, outcome["waitedMs"], self.drift)
            outcome["validity"] = validity_from(start, outcome["validForMs"], self.drift)
        return outcome

    def _post(self, path, body, timeout):
        if self._tenant is not None:
            body["tenant"] = self._tenant
        headers = {"content-type": "application/json"}
        if self._api_key:
            headers["authorization"] = "Bearer " + self._api_key
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers, method="POST")
        try:
            with self._opener.open(request, timeout=timeout) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            with error:
                try:
                    return error.code, json.loads(error.read())
                except ValueError:
                    return error.code, None


def _error_of(name, outcome):
    if outcome["kind"] == "denied":
        return LeaseHeld(name, outcome)
    if outcome["kind"] == "refused":
        return LeaseRefused("%s %s" % (outcome["field"], outcome["message"]))
    return LeaseUnavailable("%s: %s" % (name, outcome["detail"]), outcome["outcome"])


class Lease:
    """A grant. `with` releases it. `lost` is an Event; it may come a little late, `check` never does."""

    def __init__(self, client, name, token, ttl_ms, grant, on_lost):
        self.name, self.fence, self.ttl_ms = name, grant["fence"], ttl_ms
        self.lost = threading.Event()
        self.loss_reason = None
        self._client, self._token, self._on_lost = client, token, on_lost
        self._validity = grant["validity"]
        self._lock = threading.Lock()
        threading.Thread(target=self._keep, name="lease " + name, daemon=True).start()

    def remaining(self):
        """Seconds for which it may still be believed; 0 when it is over. Reads the clocks: never a stale answer."""
        with self._lock:
            left = 0 if self.lost.is_set() else remaining_ms(self._validity, read_clocks())
        if left == 0:
            self._end("expired")
        return left / 1000

    def held(self):
        return self.remaining() > 0

    def check(self):
        """Raises LeaseLost unless it is held at this very moment."""
        if not self.held():
            raise LeaseLost("the lease %s (fence %d) is over: %s" % (self.name, self.fence, self.loss_reason))

    def release(self):
        """Stops believing, then releases. False when it was over already or the server did not answer. Never raises."""
        if not self._end("released"):
            return False
        body = {"name": self.name, "token": self._token}
        timeout = min(LONGEST_RELEASE, self.ttl_ms / 1000)
        return self._client._settle("release", body, timeout)["kind"] == "applied"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()

    def _end(self, reason):
        """True for the one call that ended it."""
        with self._lock:
            if self.lost.is_set():
                return False
            self.loss_reason = reason
            self.lost.set()
        if reason != "released" and self._on_lost is not None:
            self._on_lost(reason)
        return True

    def _keep(self):
        """The renewing thread: ends with the lease."""
        ttl = self.ttl_ms / 1000
        pause = ttl * RENEW_PART
        renewing = True
        while True:
            pause *= 1 + random.uniform(-JITTER, JITTER)
            left = self.remaining()
            if self.lost.wait(min(pause, left) if renewing else left):
                return
            # After a suspend this may be the first to run: a lease that is over must not be renewed.
            if not self.held():
                return
            if not renewing:
                continue
            body = {"name": self.name, "token": self._token, "ttlMs": self.ttl_ms}
            outcome = self._client._ask("renew", body, max(0.05, min(ttl * TIMEOUT_PART, self.remaining())))
            pause = ttl * RETRY_PART
            if outcome["kind"] == "applied":
                pause = ttl * RENEW_PART
                with self._lock:
                    # A belief that ended while the answer was under way stays over.
                    if is_valid(self._validity, read_clocks()):
                        self._validity = later(self._validity, outcome["validity"])
            elif outcome.get("lost", True):
                self._end(outcome.get("reason", outcome["kind"]))
            elif outcome["kind"] == "denied":
                renewing = False  # An operator asked for it: valid until its end.

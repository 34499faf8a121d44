"""Checks the vectors of this folder with a second implementation: Python 3.8+, standard library only.

Written from README.md, not from the TypeScript sources. It is slow and not hardened against timing; it is for
checking, not for use. `python3 docs/vectors/check.py` prints what it compared and fails on the first difference.
"""
import base64
import hashlib
import json
import pathlib
import re
from fractions import Fraction

FOLDER = pathlib.Path(__file__).parent


def u64(number):
    return number.to_bytes(8, "little")


def text(value):
    encoded = value.encode("utf-8")
    return u64(len(encoded)) + encoded


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(value, length):
    """The bytes, or None when the text is not the one canonical spelling of that many bytes."""
    if not re.fullmatch(r"[A-Za-z0-9_-]*", value):
        return None
    try:
        data = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
    except ValueError:
        return None
    return data if len(data) == length and b64(data) == value else None


# Selection

PREFIX = {"rendezvous-v1": b"solehold:rendezvous-v1:", "product-v1": b"lease_coord_hash_v1:"}


def cost(hash64):
    x = hash64 | 1
    e = x.bit_length() - 1
    m = (x << 51) >> e
    f = 0
    for _ in range(47):
        m = (m * m) >> 51
        f *= 2
        if m >= 1 << 52:
            m >>= 1
            f += 1
    return (64 - e) * 2**47 - f


def claim(algorithm, lease, node):
    digest = hashlib.sha256(PREFIX[algorithm] + text(lease) + text(node)).digest()
    hash64 = int.from_bytes(digest[:8], "little")
    return cost(hash64) if algorithm == "rendezvous-v1" else hash64


def rank(algorithm, lease, candidates):
    def order(candidate):
        own, weight = claim(algorithm, lease, candidate["nodeId"]), int(candidate["weight"])
        measure = Fraction(own, weight) if algorithm == "rendezvous-v1" else -own * weight
        return measure, candidate["nodeId"].encode("utf-8")

    eligible = [candidate for candidate in candidates if int(candidate["weight"]) > 0]
    return [candidate["nodeId"] for candidate in sorted(eligible, key=order)]


# Ed25519 (RFC 8032), extended coordinates

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def root(y, sign):
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x * x % P != square or (x == 0 and sign):
        return None
    return x if x % 2 == sign else P - x


def point(x, y):
    return x, y, 1, x * y % P


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * D * p[3] * q[3] % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(factor, base):
    result = point(0, 1)
    while factor:
        if factor & 1:
            result = add(result, base)
        base = add(base, base)
        factor >>= 1
    return result


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = point(root(BASE_Y, 0), BASE_Y)


def pack(p):
    inverse = pow(p[2], P - 2, P)
    return (p[1] * inverse % P | (p[0] * inverse % P & 1) << 255).to_bytes(32, "little")


def public_key(seed):
    h = int.from_bytes(hashlib.sha512(seed).digest()[:32], "little")
    return pack(times(h & (2**254 - 8) | 2**254, BASE))


def verifies(key, message, signature):
    number = int.from_bytes(key, "little")
    y, sign = number & (2**255 - 1), number >> 255
    x = root(y, sign) if y < P else None
    s = int.from_bytes(signature[32:], "little")
    if x is None or s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    return pack(add(times(s, BASE), times(k, point(P - x, y)))) == signature[:32]


# Approvals and quorums

def signed_bytes(p):
    fields = [text(p[name]) for name in ("tenant", "key", "holder", "purpose", "tier", "action")]
    fields += [u64(p["ttlMs"]), text(p["nonce"]), u64(p["notBeforeMs"]), u64(p["notAfterMs"])]
    return b"solehold:approval-v1:" + b"".join(fields)


def approval_id(payload, signer):
    return b64(hashlib.sha256(b"solehold:approval-id-v1:" + text(signer) + signed_bytes(payload)).digest())


KINDS = ["UnknownSigner", "InvalidSignature", "KeyNotValid", "ApprovalNotYetValid", "ApprovalExpired", "ApprovalReplayed"]


def judge(case, approval):
    """The kind of failure, or the id of an approval that counts."""
    now, signer = case["nowMs"], approval["signerId"]
    signers = {entry["signerId"]: entry["keys"] for entry in case["quorum"]["signers"]}
    if signer not in signers:
        return "UnknownSigner", None
    signature = unb64(approval["signature"], 64)
    payload = dict(case["request"], notBeforeMs=approval["notBeforeMs"], notAfterMs=approval["notAfterMs"])
    keys = [] if signature is None else [
        key for key in signers[signer] if verifies(unb64(key["publicKey"], 32), signed_bytes(payload), signature)
    ]
    if not keys:
        return "InvalidSignature", None
    if not keys[0].get("notBeforeMs", 0) <= now < keys[0].get("notAfterMs", 2**63):
        return "KeyNotValid", None
    if now < approval["notBeforeMs"]:
        return "ApprovalNotYetValid", None
    if now >= approval["notAfterMs"]:
        return "ApprovalExpired", None
    name = approval_id(payload, signer)
    return ("ApprovalReplayed", None) if name in case["consumedIds"] else (None, name)


def verify_quorum(case):
    tier = case["request"]["tier"]
    tier = tier if tier in ("Standard", "Risky", "Dangerous") else "Dangerous"
    required = max(1, case["quorum"]["thresholds"][tier.lower()])
    distinct = {json.dumps(approval, sort_keys=True): approval for approval in case["approvals"]}
    verdicts = [(approval["signerId"],) + judge(case, approval) for approval in distinct.values()]
    received = len({signer for signer, failure, _ in verdicts if failure is None})
    found = {(KINDS.index(failure), signer.encode()) for signer, failure, _ in verdicts if failure}
    room = 256 if received >= required else 255
    failures = [(KINDS[kind], signer.decode()) for kind, signer in sorted(found)][:room]
    if received < required:
        failures.append(("BelowQuorum", None))
    return {
        "tier": tier,
        "required": required,
        "received": received,
        "passed": received >= required and (case["quorum"]["mode"] == "lenient" or not failures),
        "failures": failures,
        "omitted": max(0, len(found) - room),
        "accepted": sorted(name for _, failure, name in verdicts if failure is None),
    }


def same(what, ours, theirs):
    if ours != theirs:
        raise SystemExit(f"{what}: computed {ours!r}, the vector says {theirs!r}")


def main():
    selection, approvals, quorum = (
        json.loads((FOLDER / name).read_text("utf-8"))
        for name in ("coordinator-selection.json", "approvals.json", "quorum.json")
    )
    for row in selection["costs"]:
        same(f"cost of {row['hash']}", str(cost(int(row["hash"]))), row["cost"])
    for row in selection["claims"]:
        same(f"claim {row}", str(claim(row["algorithm"], row["leaseId"], row["nodeId"])), row["claim"])
    for row in selection["selections"]:
        same(f"ranking for {row['leaseId']}", rank(row["algorithm"], row["leaseId"], row["candidates"]), row["ranked"])
        same(f"selection for {row['leaseId']}", row["ranked"][0], row["selected"])
    keys = {}
    for row in approvals["signers"]:
        seed = hashlib.sha256(row["seedText"].encode()).digest()
        same("seed", seed.hex(), row["seedHex"])
        same("public key", b64(public_key(seed)), row["publicKey"])
        keys[row["signerId"]] = unb64(row["publicKey"], 32)
    for row in approvals["approvals"]:
        message = signed_bytes(row["payload"])
        same("signed bytes", message.hex(), row["signedBytesHex"])
        same("approval id", approval_id(row["payload"], row["signerId"]), row["approvalId"])
        same("signature", verifies(keys[row["signerId"]], message, unb64(row["signature"], 64)), True)
    for case in quorum["cases"]:
        expected = case["expected"]
        same(case["name"], verify_quorum(case), {
            **{name: expected[name] for name in ("tier", "required", "received", "passed")},
            "failures": [(failure["kind"], failure.get("signerId")) for failure in expected["failures"]],
            "omitted": expected["failuresOmitted"],
            "accepted": sorted(entry["approvalId"] for entry in expected["accepted"]),
        })
    print(f"{len(selection['costs'])} costs, {len(selection['claims'])} claims, {len(selection['selections'])} selections,")
    print(f"{len(approvals['approvals'])} approvals and {len(quorum['cases'])} quorum cases agree.")


if __name__ == "__main__":
    main()

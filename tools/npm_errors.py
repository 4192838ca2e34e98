"""What npm's words mean for whoever starts camserver: an exit code of the set-up and the next step.

npm names its failures by codes such as ENOTFOUND or EINTEGRITY. Words that are not known here are the affair of the
caller, who knows what npm was asked to do. Standard library only.
"""

import re
from collections.abc import Sequence

from project_venv import Exit

# The first that matches counts: a disk that filled up also breaks downloads.
_CAUSES = (
    (Exit.NO_SPACE, r"ENOSPC|EDQUOT"),
    (Exit.HASH_MISMATCH, r"EINTEGRITY"),
    (
        Exit.NETWORK,
        r"ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|ERR_SOCKET_TIMEOUT|SELF_SIGNED_CERT"
        r"|UNABLE_TO_(?:GET|VERIFY)|\bE(?:401|403|407|5\d\d)\b",
    ),
    (Exit.NOT_INSTALLABLE, r"\bE404\b|ETARGET|ENOVERSIONS"),
)
NEXT_STEPS = {
    Exit.NO_SPACE: "The disk filled up. Free some space and run the same command again.",
    Exit.HASH_MISMATCH: "What was downloaded is not what the registry announced or the lock names. Run `npm cache "
    "clean --force` and try again; if it happens again, do not use that registry and report it.",
    Exit.NETWORK: "The npm registry was not reachable. Check the network, the proxy variables and `npm config list`, "
    "then run the same command again.",
    Exit.NOT_INSTALLABLE: "The npm registry does not have it. Check with `npm config list` which registry is asked, "
    "then run the same command again.",
}


def cause_of(lines: Sequence[str]) -> Exit | None:
    """Why npm failed, by what it printed; None when it says nothing of the kind."""
    text = "\n".join(lines)
    return next((code for code, pattern in _CAUSES if re.search(pattern, text)), None)

"""What a process loads that it may never need."""

import subprocess
import sys


def test_a_server_does_not_load_what_only_conversions_need() -> None:
    code = (
        "import sys\n"
        "import camserver.services.control.service, camserver.services.dispatcher.service, "
        "camserver.services.web.service\n"
        "print(sorted({'av'} & sys.modules.keys()))"
    )
    asked = [sys.executable, "-c", code]
    done = subprocess.run(asked, check=True, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[]"

"""Google Sheets as far as camserver uses it: sign-in, tabs, values; busy, refusing or cut off on demand, with people
who sort, insert, type and protect meanwhile.

async with FakeSheets([["", "", "text"], ...]) as google:
    google.fail("update", Answer(429), Unheard())
    google.before("update", lambda: google.sort(5))
    ... google.url, google.key_file, google.address, google.cells ...
"""

from tests.fakes.drive.faults import Answer, Cut, Unheard, Wait
from tests.fakes.sheets.server import FakeSheets, Formula

__all__ = ["Answer", "Cut", "FakeSheets", "Formula", "Unheard", "Wait"]

"""A PATH on which some programs are not to be found and everything else is, however they were installed.

A folder of PATH that holds one of them is replaced by a folder of links to the rest of it, since what is to be hidden
often lies beside Python, make and git. Programs that are called by their full path are found as ever.
Standard library only.
"""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

# What brings or runs Node, under every name that distributions and installers give it.
NODE_PROGRAMS = frozenset({"node", "nodejs", "npm", "npx", "corepack", "yarn", "yarnpkg", "pnpm", "pnpx"})


def path_without(programs: Iterable[str], path: str, links: Path) -> str:
    """`path` without `programs`; `links` is an empty folder for what has to be linked, which others may read."""
    hidden = frozenset(programs)
    links.chmod(0o755)  # database servers run as users of their own
    made: dict[str, str] = {}
    for entry in path.split(os.pathsep):
        place = os.path.realpath(entry)
        # A relative entry means another folder in every folder; /bin is often /usr/bin again.
        if os.path.isabs(entry) and place not in made and os.path.isdir(place):
            made[place] = entry if not _holds(place, hidden) else str(_linked(Path(place), hidden, links))
    result = os.pathsep.join(made.values())
    left = sorted(name for name in hidden if shutil.which(name, path=result))
    if left:
        raise RuntimeError(f"{', '.join(left)} can't be hidden from PATH {result}")
    return result


def _holds(folder: str, programs: frozenset[str]) -> bool:
    return any(os.path.lexists(os.path.join(folder, name)) for name in programs)


def _linked(folder: Path, hidden: frozenset[str], links: Path) -> Path:
    made = links / str(len(list(links.iterdir())))
    made.mkdir(mode=0o755)
    made.chmod(0o755)
    for program in folder.iterdir():
        if program.name not in hidden:
            (made / program.name).symlink_to(program)
    return made

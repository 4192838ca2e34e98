"""Imports: cameras from a CSV file or from a configuration of Frigate. Run again, it adds only what is missing."""

import asyncio
import threading
from collections.abc import Collection, Mapping, Sequence

import yaml
from pydantic import ValidationError

from camserver.base.errors import CamError, Conflict, NotFound, Reject, Unavailable
from camserver.domain.import_frigate import read_frigate
from camserver.domain.imports import Imported, Problem, WantedCamera, read_csv
from camserver.domain.people import Permission
from camserver.domain.phrases import Phrase
from camserver.services.web import plain_yaml
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.camera_values import preset_of
from camserver.services.web.messages import message_for
from camserver.services.web.routes.cameras import add_camera, permitted
from camserver.services.web.routing import Routes
from camserver.services.web.sources import one_login, parse_source
from camserver.store import cameras, tenants
from camserver.store.cameras import CameraSummary
from camserver.wire import api, onboarding

routes = Routes()

# Files that one process reads at once: each takes a core for a second.
READING_MAX = 2
_READING = threading.BoundedSemaphore(READING_MAX)


@routes.post("/api/imports", Permission.MANAGE_CAMERAS)
async def import_cameras(call: TheCall, asked: onboarding.ImportAsked) -> onboarding.ImportAnswer:
    """Adds the cameras of a file. While something is wrong in it nothing is added, unless skip_bad is set."""
    # A large file takes a while to read; the loop has others to serve.
    wanted, problems, notes = await asyncio.to_thread(_wanted, call, asked)
    missing = await _missing_sites(call, {one.site for _, one in wanted if one.site is not None})
    problems += [Problem(camera.where, missing[one.site]) for camera, one in wanted if one.site in missing]
    wanted = [(camera, one) for camera, one in wanted if one.site not in missing]
    only_look = asked.dry_run or (bool(problems) and not asked.skip_bad)
    done = [await _done(call, camera, request, only_look) for camera, request in wanted]
    return onboarding.ImportAnswer(cameras=done, problems=_shown(call, problems), notes=_shown(call, notes))


def _wanted(
    call: Call, asked: onboarding.ImportAsked
) -> tuple[list[tuple[WantedCamera, api.CameraAsked]], list[Problem], Sequence[Problem]]:
    """The cameras of the file, what is wrong in it and what is worth knowing. Unavailable when others read theirs."""
    if not _READING.acquire(blocking=False):
        raise Unavailable(
            "too many lists of cameras are imported at this moment; try again in a few seconds",
            reason="imports_full",
            retry_after_sec=5,
        )
    try:
        imported = _read(asked)
        problems = list(imported.problems)
        wanted: list[tuple[WantedCamera, api.CameraAsked]] = []
        for camera in imported.cameras:
            made = _camera_asked(call, camera, asked.site)
            if isinstance(made, Problem):
                problems.append(made)
            else:
                wanted.append((camera, made))
        return wanted, problems, imported.notes
    finally:
        _READING.release()


def _read(asked: onboarding.ImportAsked) -> Imported:
    if asked.format == "csv":
        return read_csv(asked.text)
    try:
        document = plain_yaml.read(asked.text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (None, None) if mark is None else (mark.line + 1, str(mark.column + 1))
        where = "file" if line is None else f"line {line}, column {column}"
        said = Phrase("YAMLとして読めません。", "This can't be read as YAML.")
        return Imported((), (Problem(where, said, line, column),))
    except plain_yaml.TooLarge:
        said = Phrase(
            "YAMLの内容が多すぎるか、入れ子が深すぎます（別名 * で繰り返したものも数えます）。分けてください。",
            "The YAML says too much, or is nested too deeply (what an alias * repeats counts too); split it.",
        )
        return Imported((), (Problem("file", said),))
    except yaml.YAMLError:
        return Imported((), (Problem("file", Phrase("YAMLとして読めません。", "This can't be read as YAML.")),))
    return read_frigate(document, asked.environment, asked.zones)


def _camera_asked(call: Call, camera: WantedCamera, site: str | None) -> api.CameraAsked | Problem:
    """The request that adding it by hand would be, checked as that is."""
    body: dict[str, object] = {
        "camera_id": camera.camera_id,
        "name": camera.name,
        "site": camera.site or site,
        "source": {"url": camera.url, "user": camera.user, "password": camera.password},
        **camera.values,
    }
    if camera.sub_url is not None:
        body["sub"] = {"url": camera.sub_url}
    try:
        made = api.CameraAsked.model_validate(body)
        source = permitted(call, made.source)
        one_login(source, None if made.sub is None else permitted(call, made.sub))
        return made
    except ValidationError as error:
        # Names of fields only: the values may hold a password.
        fields = sorted({".".join(map(str, one["loc"])) for one in error.errors(include_input=False)})
        named = ", ".join(fields)
        return Problem(camera.where, Phrase(f"値が正しくありません: {named}", f"These values are wrong: {named}"))
    except CamError as error:
        return Problem(camera.where, _said(error))


async def _missing_sites(call: Call, sites: Collection[str]) -> dict[str | None, Phrase]:
    """Those of these sites that are not within the caller's reach, with what is said of each."""
    missing: dict[str | None, Phrase] = {}
    for site in sites:
        try:
            await call.store.read(tenants.find_site, site)
        except NotFound as error:
            missing[site] = _said(error)
    return missing


def _said(error: CamError) -> Phrase:
    return Phrase(message_for(error, "ja"), message_for(error, "en"))


async def _done(
    call: Call, camera: WantedCamera, asked: api.CameraAsked, only_look: bool
) -> onboarding.ImportedCamera:
    there = await _existing(call, camera.camera_id)
    if there is not None:
        differing = _differing(there, asked)
        message = ", ".join(differing)
        return _imported(camera, "differs" if differing else "same", message)
    if only_look:
        return _imported(camera, "add", "")
    try:
        await add_camera(call, asked)
    except (Reject, Conflict) as error:
        return _imported(camera, "failed", message_for(error, call.language))
    return _imported(camera, "added", "")


async def _existing(call: Call, camera_id: str) -> CameraSummary | None:
    try:
        return await call.store.read(cameras.get, camera_id)
    except NotFound:
        return None


def _differing(there: CameraSummary, asked: api.CameraAsked) -> list[str]:
    """In what a camera is not as the file has it. Passwords are not compared: they are sealed."""
    source, sub = _plain(asked.source), None if asked.sub is None else _plain(asked.sub)
    pairs: Mapping[str, tuple[object, object]] = {
        "name": (there.name, asked.name),
        "site": (there.site, there.site if asked.site is None else asked.site),
        "url": (there.main.url, source),
        "sub_url": (None if there.sub is None else there.sub.url, sub),
        "polling_interval_sec": (there.own.polling_interval_sec, asked.polling_interval_sec),
        "transport": (there.own.transport, asked.transport),
        "rotation": (there.own.rotation, asked.rotation),
        "suggest_weight": (there.own.suggest_weight, asked.suggest_weight),
        "preset": (preset_of(there.own), None if asked.hints is None else asked.hints.preset),
    }
    return [name for name, (is_there, is_asked) in pairs.items() if is_there != is_asked]


def _plain(asked: api.SourceAsked) -> str:
    return parse_source(asked).url


def _imported(camera: WantedCamera, action: str, message: str) -> onboarding.ImportedCamera:
    return onboarding.ImportedCamera.model_validate(
        {"camera_id": camera.camera_id, "where": camera.where, "action": action, "message": message}
    )


def _shown(call: Call, problems: Sequence[Problem]) -> list[onboarding.ImportProblem]:
    return [
        onboarding.ImportProblem(
            where=problem.where,
            line=problem.line,
            column=problem.column,
            message=problem.said.ja if call.language == "ja" else problem.said.en,
        )
        for problem in problems
    ]

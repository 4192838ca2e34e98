"""`camserver models`: what the analyzer that comes with camserver sees with."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from camserver.base.errors import BadInput, CheckFailed, NotFound
from camserver.commands.native_output import without_notes
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import Language, reader_language, table
from camserver.domain.phrases import Phrase

if TYPE_CHECKING:
    from camserver.config import Settings
    from camserver.services.analyzer.detector import Detector
    from camserver.services.analyzer.models.checking import Shown
    from camserver.services.analyzer.models.installed import Pointer

_HEADS: Mapping[str, tuple[str, ...]] = {
    "en": ("NAME", "VERSION", "RUNTIME", "LICENCE", "SIGNED BY", "IN USE", "STATE"),
    "ja": ("名前", "バージョン", "実行環境", "ライセンス", "署名", "使用中", "状態"),
}
_WORDS: Mapping[str, Phrase] = {
    "fine": Phrase("正常", "fine"),
    "chosen": Phrase("選択済み・使用不可", "chosen, unusable"),
    "installed": Phrase(
        "{title} をインストールしました。使うには: camserver models use {name}",
        "{title} is installed; take it into use with `camserver models use {name}`",
    ),
    "used": Phrase(
        "{title} を使用します。動作中の解析サービスは数秒以内に切り替わります",
        "{title} is in use; a running analyzer changes over within seconds",
    ),
    "packed": Phrase(
        "{title} のバンドルができました（{files} ファイル）。署名: {signed}",
        "{title} is a bundle of {files} files now; signed by: {signed}",
    ),
    "removed": Phrase("{title} を削除しました", "{title} is removed"),
    "shipped": Phrase("付属のモデル", "the model that comes with camserver"),
    "blind": Phrase(
        "注意: このモデルのラベルに人・動物・乗り物・危険を表すものがないため、何も検出されません。"
        "docs/guide/models.md の名前で labels を書いてください",
        "Note: none of this model's labels is a person, an animal, a vehicle or a hazard, so nothing will be seen "
        "with it; write labels by the names in docs/guide/models.md",
    ),
    "by_setting": Phrase(
        "注意: analyzer.model_path が {path} を指定しているため、ここでの選択は使われません",
        "Note: analyzer.model_path names {path}, so what is chosen here is not used",
    ),
    "by_remote": Phrase(
        "注意: 解析は {url} に転送されるため、ここでの選択は使われません",
        "Note: analyses are passed on to {url}, so what is chosen here is not used",
    ),
    "unchanged": Phrase("新しいモデルはありません", "there is no newer model"),
    "update_installed": Phrase(
        "{title} をインストールしました。別のモデルが選ばれているため、切り替えていません",
        "{title} is installed; another model was chosen by hand and stays in use",
    ),
}


def _say(word: str, **values: object) -> str:
    template: str = getattr(_WORDS[word], reader_language())
    return template.format(**values)


@click.group()
def models() -> None:
    """Install, check and choose what the analyzer sees with."""


@models.command("list")
@json_option
@pass_chosen
def models_list(chosen: Chosen, as_json: bool) -> None:
    """List the models that are installed, and which is in use.

    Their files and signatures are checked; `camserver models check` also tries each. "default" is the model that
    comes with camserver.

    \b
    Examples:
      camserver models list
      camserver models list --json
    """
    from camserver.services.analyzer.models.checking import list_models

    settings = chosen.settings()
    _show(list_models(settings), as_json)
    if not as_json:
        _note_settings(settings)


@models.command("check")
@click.argument("name", required=False)
@json_option
@pass_chosen
def models_check(chosen: Chosen, name: str | None, as_json: bool) -> None:
    """Check the models: files, signatures, and whether they see.

    Every model, or those of NAME, is loaded and shown a picture.

    \b
    Examples:
      camserver models check
      camserver models check yard-yolo
    """
    from camserver.services.analyzer.models.checking import check_models

    with without_notes():
        shown = check_models(chosen.settings(), name)
    if not shown:
        raise NotFound(f"no model is called {name}; `camserver models list` shows which there are")
    _show(shown, as_json)
    wrong = [one for one in shown if one.problem is not None]
    if wrong and as_json:
        click.get_current_context().exit(_check_failed())
    if wrong:
        raise CheckFailed(f"{len(wrong)} of {len(shown)} models can't be used; see above")


@models.command("install")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--use", "use_it", is_flag=True, help="Take it into use at once.")
@json_option
@pass_chosen
def models_install(chosen: Chosen, path: Path, use_it: bool, as_json: bool) -> None:
    """Install a model bundle from a folder or a zip.

    PATH holds a model.toml and the files that it lists; docs/guide/models.md describes it. The hashes are checked,
    the signature where analyzer.model_keys is set, and the model is shown a picture before it is installed.

    \b
    Examples:
      camserver models install yard-yolo-1.2.0.zip
      camserver models install ./yard-yolo --use
    """
    from camserver.services.analyzer.models.bundle import read_bundle
    from camserver.services.analyzer.models.loading import installed_models, load_bundle

    settings = chosen.settings()
    bundle = read_bundle(path, settings.analyzer.bundle_max_bytes, settings.analyzer.model_keys)
    with without_notes():
        (detector,) = load_bundle(bundle, 1)
    pointer = installed_models(settings).add(bundle)
    if use_it:
        _use(settings, pointer, as_json)
    else:
        _tell("installed", pointer, as_json)
    _note_labels(detector, as_json)


@models.command("pack")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--key", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="File of the private key (Ed25519, PEM) that signs it.", show_default="not signed")  # fmt: skip
@json_option
@pass_chosen
def models_pack(chosen: Chosen, folder: Path, key: Path | None, as_json: bool) -> None:
    """Make a bundle of a folder: hashes and a signature.

    FOLDER holds a model.toml and the files of the model; the table [files] in it is written anew. The public half of
    the key, for analyzer.model_keys, is told. Zip the folder to pass it on.

    \b
    Examples:
      camserver models pack ./yard-yolo
      camserver models pack ./yard-yolo --key model.key
    """
    from camserver.base.signing import private_key_of, public_key
    from camserver.services.analyzer.models.packing import pack

    try:
        private = None if key is None else private_key_of(key.read_bytes())
    except BadInput as error:
        raise BadInput(f"{key} can't be used: {error.message}") from None
    except OSError as error:
        raise BadInput(f"{key} can't be read: {error.strerror}") from None
    bundle = pack(folder, private, chosen.settings().analyzer.bundle_max_bytes)
    manifest, public = bundle.manifest, None if private is None else public_key(private)
    if as_json:
        told = {"result": "packed", "name": manifest.name, "version": manifest.version, "files": manifest.files}
        click.echo(json.dumps({**told, "public_key": public}))
    else:
        click.echo(_say("packed", title=bundle.title, files=len(manifest.files), signed=public or "-"))


@models.command("use")
@click.argument("name")
@click.argument("version", required=False)
@json_option
@pass_chosen
def models_use(chosen: Chosen, name: str, version: str | None, as_json: bool) -> None:
    """Choose the model that the analyzer sees with.

    The newest installed VERSION of NAME, unless one is given; "default" is the model that comes with camserver. A
    running analyzer changes over within seconds, and no picture is lost by that.

    \b
    Examples:
      camserver models use yard-yolo
      camserver models use yard-yolo 1.1.0
      camserver models use default
    """
    from camserver.services.analyzer.models.loading import load_installed
    from camserver.services.analyzer.models.manifest import SHIPPED

    settings = chosen.settings()
    if name == SHIPPED:
        if version is not None:
            raise BadInput(f"{SHIPPED} has no versions; leave {version} out")
        _use(settings, None, as_json)
        return
    pointer = _find(settings, name, version)
    (detector,) = load_installed(settings, pointer, 1)
    _use(settings, pointer, as_json)
    _note_labels(detector, as_json)


@models.command("remove")
@click.argument("name")
@click.argument("version")
@json_option
@pass_chosen
def models_remove(chosen: Chosen, name: str, version: str, as_json: bool) -> None:
    """Remove an installed model that is not in use.

    \b
    Example:
      camserver models remove yard-yolo 1.1.0
    """
    from camserver.services.analyzer.models.loading import installed_models

    settings = chosen.settings()
    pointer = _find(settings, name, version)
    installed_models(settings).remove(pointer)
    _tell("removed", pointer, as_json)


@models.command("update")
@json_option
@pass_chosen
def models_update(chosen: Chosen, as_json: bool) -> None:
    """Look now for a newer bundle at analyzer.bundle_url.

    A running analyzer does the same every analyzer.bundle_check_hours.

    \b
    Example:
      camserver models update
    """
    from camserver.base.clock import StoreClock
    from camserver.services.analyzer.models.updating import Outcome, Updating

    update = asyncio.run(Updating(chosen.settings(), StoreClock()).look())
    words = {Outcome.UNCHANGED: "unchanged", Outcome.INSTALLED: "update_installed", Outcome.IN_USE: "used"}
    _tell(words[update.outcome], update.pointer, as_json)


def _find(settings: "Settings", name: str, version: str | None) -> "Pointer":
    """The newest of that name, or the one of that version."""
    from camserver.services.analyzer.models.loading import installed_models

    for pointer in installed_models(settings).all():
        if pointer.name == name and version in (None, pointer.version):
            return pointer
    raise NotFound(
        f"the model {name} {version or ''}".rstrip() + " is not installed; `camserver models list` shows which are"
    )


def _use(settings: "Settings", pointer: "Pointer | None", as_json: bool) -> None:
    from camserver.services.analyzer.models.loading import installed_models

    installed_models(settings).use(pointer)
    _tell("used", pointer, as_json)
    if not as_json:
        _note_settings(settings)


def _tell(word: str, pointer: "Pointer | None", as_json: bool) -> None:
    """What was done, with which model; none: the one that comes with camserver."""
    if as_json:
        name, version = (None, None) if pointer is None else (pointer.name, pointer.version)
        click.echo(json.dumps({"result": word, "name": name, "version": version}))
    else:
        click.echo(_say(word, title=pointer or _say("shipped"), name=pointer.name if pointer else ""))


def _note_settings(settings: "Settings") -> None:
    """Settings that go before what is chosen here."""
    analyzer = settings.analyzer
    if analyzer.detector == "remote":
        click.echo(_say("by_remote", url=analyzer.remote_url))
    elif analyzer.model_path is not None:
        click.echo(_say("by_setting", path=analyzer.model_path))


def _note_labels(detector: "Detector", as_json: bool) -> None:
    if detector.model.is_blind and not as_json:
        click.echo(_say("blind"))


def _show(shown: "Sequence[Shown]", as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([asdict(one) for one in shown], ensure_ascii=False))
    else:
        click.echo(described(shown, reader_language()))


def described(shown: "Sequence[Shown]", language: Language) -> str:
    fine: str = getattr(_WORDS["fine"], language)
    chosen: str = getattr(_WORDS["chosen"], language)
    rows = [
        (
            one.name,
            one.version,
            one.runtime,
            one.licence,
            one.signed_by or "-",
            "*" if one.in_use else chosen if one.chosen else "",
            one.problem or fine,
        )
        for one in shown
    ]
    return table(_HEADS[language], rows)


def _check_failed() -> int:
    from camserver.base.exits import Exit

    return Exit.CHECK_FAILED.value

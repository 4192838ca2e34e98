"""Files that belong to camserver and come neither with its source nor with its packages: a model, footage.

The set-up of a checkout (assets.toml, tools/project_assets.py) fetches them into `.assets`; without a checkout an
operator puts them into the folder `assets` of the data folder, which is looked at first.
"""

from pathlib import Path
from typing import Final

MODEL: Final = "efficientdet-lite1.tflite"
# As in assets.toml; a file that is not this one is not run.
MODEL_SHA256: Final = "183afa66aad648b0dc16519ae1f55646d9cd38d2b544b917a9ab1da320ebed75"
FOOTAGE: Final = "bikes.mp4"

_CHECKOUT: Final = Path(__file__).parents[3]


def find(name: str, data_dir: Path) -> Path | None:
    """The file of that name, if it is there."""
    places = (data_dir / "assets" / name, _CHECKOUT / ".assets" / name)
    return next((place.absolute() for place in places if place.is_file()), None)


def models_folder(data_dir: Path) -> Path:
    """Where models that people installed are kept (`camserver models`)."""
    return data_dir / "models"


def active_model_file(data_dir: Path) -> Path:
    """Names the installed model that is in use; not there while the one that comes with camserver is."""
    return models_folder(data_dir) / "active.json"


def has_model(data_dir: Path) -> bool:
    """Whether there is any model to start with: one in use, or the one that comes with camserver."""
    return active_model_file(data_dir).is_file() or find(MODEL, data_dir) is not None


def no_model(data_dir: Path) -> str:
    """What to tell somebody without a model: the thing, the cause, the next step."""
    return (
        f"the analyzer's model {MODEL} is not there. In a checkout `make setup` fetches it; else put it into "
        f"{data_dir / 'assets'}, install another with `camserver models install`, name one with analyzer.model_path, "
        "or use another analyzer with analyzer.url"
    )

"""Files that belong to camserver and come neither with its source nor with its packages: a model, footage.

The set-up of a checkout (assets.toml, tools/project_assets.py) fetches them into `.assets`; without a checkout an
operator puts them into the folder `assets` of the data folder, which is looked at first.
"""

from pathlib import Path
from typing import Final

MODEL: Final = "efficientdet-lite1.tflite"
FOOTAGE: Final = "bikes.mp4"

_CHECKOUT: Final = Path(__file__).parents[3]


def find(name: str, data_dir: Path) -> Path | None:
    """The file of that name, if it is there."""
    places = (data_dir / "assets" / name, _CHECKOUT / ".assets" / name)
    return next((place.absolute() for place in places if place.is_file()), None)


def no_model(data_dir: Path) -> str:
    """What to tell somebody without a model: the thing, the cause, the next step."""
    return (
        f"the analyzer's model {MODEL} is not there. In a checkout `make setup` fetches it; else put it into "
        f"{data_dir / 'assets'}, name another with analyzer.model_path, or use another analyzer with analyzer.url"
    )

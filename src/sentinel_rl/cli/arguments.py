"""Arguments and options that several sub-commands take."""

from pathlib import Path
from typing import Annotated

import typer

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder that `sentinel train --out` was given.")]
PolicyArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="The folder of a run, or the file or name of a saved policy.")
]
RecalibrateOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Correct the laws by the map that `sentinel calibrate` wrote.")
]
TrustOption = Annotated[
    bool, typer.Option("--trust", help="Import the code that the run names, such as wrappers: only if it is yours.")
]

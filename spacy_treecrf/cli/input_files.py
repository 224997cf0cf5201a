"""Which files a command reads, and where it writes what it makes of them."""

from pathlib import Path

from spacy_treecrf.data.records import stem
from spacy_treecrf.data.text_files import read_lines
from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import ConversionError


def plan_outputs(
    suffixes: tuple[str, ...],
    inputs: list[Path],
    output: Path,
    only: Path | None = None,
) -> dict[Path, list[Path]]:
    """Which input files go into which output file.

    suffixes (tuple[str, ...]): Endings of the files that are read from a folder.
    inputs (list[Path]): Files and folders.
    output (Path): A `.spacy` file for all, or a folder for one file each.
    only (Path | None): File that names the files to take, endings do not matter.
    RETURNS (dict[Path, list[Path]]): Input files by output file.
    RAISES (ConversionError): If an input is missing, a folder holds no file of the
        format, or two inputs would be written to the same file.
    """
    paths = find_files(suffixes, inputs, only)
    if output.suffix == ".spacy":
        return {output: paths}
    if output.is_file():
        raise ConversionError(Errors.T047.format(path=output))
    plan: dict[Path, list[Path]] = {}
    for path in paths:
        target = output / f"{stem(path)}.spacy"
        if target in plan:
            raise ConversionError(
                Errors.T048.format(first=plan[target][0], second=path, target=target)
            )
        plan[target] = [path]
    return plan


def plan_splits(
    suffixes: tuple[str, ...],
    inputs: list[Path],
    output: Path,
    split: str,
    only: Path | None = None,
) -> list[Path]:
    """Which input files go into train, dev and test.

    suffixes (tuple[str, ...]): Endings of the files that are read from a folder.
    inputs (list[Path]): Files and folders.
    output (Path): The folder for the splits.
    split (str): The shares, for messages.
    only (Path | None): File that names the files to take, endings do not matter.
    RETURNS (list[Path]): The input files.
    RAISES (ConversionError): If an input is missing, a folder holds no file of the
        format, or the output is no folder.
    """
    if output.suffix == ".spacy" or output.is_file():
        reason = f"expected OUT to be a folder for three files, received {output}"
        raise ConversionError(Errors.T124.format(split=split, reason=reason))
    return find_files(suffixes, inputs, only)


def find_files(
    suffixes: tuple[str, ...], inputs: list[Path], only: Path | None = None
) -> list[Path]:
    """The files that are named, and those of the folders that are named.

    suffixes (tuple[str, ...]): Endings of the files that are read from a folder.
    inputs (list[Path]): Files and folders.
    only (Path | None): File that names the files to take, endings do not matter.
    RETURNS (list[Path]): The files.
    RAISES (ConversionError): If one is missing, or a folder holds no such file.
    """
    paths: list[Path] = []
    for path in inputs:
        if path.is_dir():
            found = sorted(p for p in path.iterdir() if p.name.endswith(suffixes))
            if not found:
                raise ConversionError(
                    Errors.T046.format(path=path, suffixes=" or ".join(suffixes))
                )
            paths.extend(found)
        elif path.exists():
            paths.append(path)
        else:
            raise ConversionError(Errors.T040.format(path=path, reason="no such file"))
    if only is not None:
        paths = select_files(paths, only)
    return paths


def select_files(paths: list[Path], only: Path) -> list[Path]:
    """The files that a list names, in its order.

    paths (list[Path]): The files to choose from.
    only (Path): A text file with one name a line; folder and endings are ignored, so
        that one list serves several formats of a corpus.
    RETURNS (list[Path]): The named files.
    RAISES (ConversionError): If a name is not among them, or there are no names.
    """
    by_stem = {stem(path): path for path in paths}
    names = [line.strip() for _, line in read_lines(only) if line.strip()]
    for name in names:
        if stem(Path(name)) not in by_stem:
            raise ConversionError(Errors.T054.format(path=only, name=name))
    if not names:
        raise ConversionError(Errors.T049.format(path=only))
    return [by_stem[stem(Path(name))] for name in names]

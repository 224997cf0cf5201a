"""Public corpora: which files hold train, dev and test, here or as published.

A local copy is a folder that `SPACY_TREECRF_CORPORA` names, with `NAME/SPLIT.jsonl.gz` in
the uniform format. Otherwise the files are read that their authors publish, under their
own names, from a folder of assets; archives are unpacked beside themselves.
"""

import csv
import io
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import ConversionError

from .records import stem
from .text_files import read_lines

SPLITS = ("train", "dev", "test")
VARIABLE = "SPACY_TREECRF_CORPORA"
# GUM's table of splits: "## dev", then "* GUM_news_nasa" a line.
GUM_HEADING = re.compile(r"##\s+(\S+)")
GUM_DOCUMENT = re.compile(r"\s*\*\s+(\S+)")
# The public files have underscores in place of the words of these documents.
GUM_WITHOUT_WORDS = "_reddit_"
GMB_TABLE = "ner_dataset.csv"
# The published names of the splits of CoNLL-2002.
CONLL2002 = {"train": "train", "dev": "testa", "test": "testb"}
# The flat corpora keep the order of their texts, but not the borders between them.
NEIGHBOURS = 40

Column = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class PublicCorpus:
    """A corpus that a workflow trains on.

    name (str): Name of the workflow and of the folder of assets.
    folder (str): Its folder in a local copy.
    lang (str): Language code.
    format (str): Format of the original files, a name of `treecrf convert`.
    originals (Callable): From the folder of its assets to the files of each split.
    is_flat (bool): Whether its entities never nest; so many neighbouring sentences
        (`NEIGHBOURS`) are then taken for a document.
    """

    name: str
    folder: str
    lang: str
    format: str
    originals: Callable[[Path], dict[str, list[Path]]]
    is_flat: bool = False


@dataclass(frozen=True)
class Source:
    """Where a corpus was found.

    format (str): Format of the files.
    splits (dict[str, list[Path]]): Files of each split.
    description (str): For the user: which source this is.
    """

    format: str
    splits: dict[str, list[Path]]
    description: str


def find_source(
    corpus: PublicCorpus, assets: Path, environ: Mapping[str, str] = os.environ
) -> Source:
    """Find the files of a corpus.

    corpus (PublicCorpus): The corpus.
    assets (Path): Folder of fetched original files, one folder a corpus.
    environ (Mapping[str, str]): Environment variables.
    RETURNS (Source): The local copy if the variable names one, else the originals.
    RAISES (ConversionError): If there is neither, or one of its files is missing.
    """
    copy = environ.get(VARIABLE)
    if copy:
        folder = _copy_of(corpus, Path(copy))
        splits = {split: [folder / f"{split}.jsonl.gz"] for split in SPLITS}
        for (path,) in splits.values():
            if not path.exists():
                raise ConversionError(
                    Errors.T111.format(path=path, variable=VARIABLE, assets=assets)
                )
        return Source("jsonl", splits, f"{folder} (from {VARIABLE})")
    folder = assets / corpus.name
    try:
        splits = corpus.originals(folder)
    except FileNotFoundError as error:
        raise ConversionError(
            Errors.T110.format(path=error.filename, variable=VARIABLE)
        ) from error
    return Source(corpus.format, splits, f"original files in {folder}")


def _copy_of(corpus: PublicCorpus, copy: Path) -> Path:
    """The folder of a corpus in a local copy, at its top or in a folder of some kind."""
    top = copy / corpus.folder
    found = [] if top.exists() else sorted(copy.glob(f"*/{corpus.folder}"))
    # What lies beside other originals need not be in the uniform format.
    found = [path for path in found if (path / "train.jsonl.gz").exists()]
    return found[0] if found else top


def _litbank(folder: Path) -> dict[str, list[Path]]:
    """The columns of entities, by the published lists of documents."""
    lists = {split: _existing(folder / f"{split}.ids") for split in SPLITS}
    paths = _unpack(folder / "litbank.zip", r"/entities/tsv/[^/]+\.tsv")
    return {split: _listed(paths, path) for split, path in lists.items()}


def _germeval(folder: Path) -> dict[str, list[Path]]:
    """Two columns of IOB tags in an archive."""
    archive = folder / "GermEval2014.zip"
    paths = _unpack(archive, r"/germ\.(train|dev|test)\.iob2")
    return {split: [_member(paths, f"germ.{split}", archive)] for split in SPLITS}


def _genia(folder: Path) -> dict[str, list[Path]]:
    """Columns of IOB tags, one file a split."""
    return {split: [_existing(folder / f"genia.{split}.iob2")] for split in SPLITS}


def _gum(folder: Path) -> dict[str, list[Path]]:
    """Dependency trees with entities, by the table of splits, where words are given."""
    archive = folder / "gum.zip"
    paths = _unpack(archive, r"/(splits\.md|dep/[^/]+\.conllu)")
    table = _member(paths, "splits", archive)
    names = _gum_splits(table)
    return {
        split: [
            _member(paths, name, table)
            for name in names[split]
            if GUM_WITHOUT_WORDS not in name
        ]
        for split in SPLITS
    }


def _gum_splits(table: Path) -> dict[str, list[str]]:
    splits: dict[str, list[str]] = {split: [] for split in SPLITS}
    heading = ""
    for _, line in read_lines(table):
        if match := GUM_HEADING.match(line):
            heading = match[1]
        elif match := GUM_DOCUMENT.match(line):
            splits.setdefault(heading, []).append(match[1])
    for split in SPLITS:
        if not splits[split]:
            raise ConversionError(
                Errors.T112.format(
                    path=table, reason=f"no documents under '## {split}'"
                )
            )
    return splits


def _gmb(folder: Path) -> dict[str, list[Path]]:
    """One table of words and tags; the splits are 80/10/10% of its sentences in order."""
    archive = folder / f"{GMB_TABLE}.zip"
    table = _member(_unpack(archive, rf"/{GMB_TABLE}$"), stem(Path(GMB_TABLE)), archive)
    sentences: list[list[tuple[str, str]]] = []
    # Words may hold a carriage return or a quoted line end.
    text = io.StringIO(table.read_bytes().decode("latin-1"), newline="")
    for row in csv.DictReader(text):
        if row["Sentence #"]:
            sentences.append([])
        if word := row["Word"].strip(" "):
            sentences[-1].append((word, row["Tag"]))
    sentences = [rows for rows in sentences if rows]
    first, second = (len(sentences) * tenths // 10 for tenths in (8, 9))
    parts = (sentences[:first], sentences[first:second], sentences[second:])
    return {
        split: [_write_columns(table.with_name(f"{split}.tsv"), part)]
        for split, part in zip(SPLITS, parts, strict=True)
    }


def _conll2002_es(folder: Path) -> dict[str, list[Path]]:
    """Columns of words, parts of speech and IOB tags in an archive, of which one goes."""
    archive = folder / "conll2002.zip"
    splits = {}
    for split, part in CONLL2002.items():
        (path,) = _unpack(archive, rf"/esp\.{part}$").values()
        blocks: list[list[tuple[str, str]]] = [[]]
        for _, line in read_lines(path):
            columns = line.split()
            if columns:
                blocks[-1].append((columns[0], columns[-1]))
            elif blocks[-1]:
                blocks.append([])
        splits[split] = [_write_columns(path.with_name(f"{split}.tsv"), blocks)]
    return splits


def _write_columns(path: Path, sentences: Iterable[Column]) -> Path:
    """Write sentences as columns of words and tags."""
    blocks = ("".join(f"{word}\t{tag}\n" for word, tag in rows) for rows in sentences)
    path.write_text("\n".join(blocks), encoding="utf8")
    return path


def _existing(path: Path) -> Path:
    if not path.exists():
        raise FileNotFoundError(2, "No such file", str(path))
    return path


def _unpack(archive: Path, wanted: str) -> dict[str, Path]:
    """Unpack some members of an archive beside it; RETURNS (dict): Paths by stem."""
    pattern = re.compile(wanted)
    paths: dict[str, Path] = {}
    try:
        with zipfile.ZipFile(_existing(archive)) as file:
            for name in file.namelist():
                if not pattern.search(f"/{name}") or name.endswith("/"):
                    continue
                # Folders inside the archive do not matter, and might lead elsewhere.
                path = archive.with_suffix("") / Path(name).name
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(file.read(name))
                paths[stem(path)] = path
    except zipfile.BadZipFile as error:
        raise ConversionError(
            Errors.T112.format(path=archive, reason=str(error))
        ) from error
    if not paths:
        raise ConversionError(
            Errors.T112.format(path=archive, reason=f"no member matches {wanted}")
        )
    return paths


def _member(paths: dict[str, Path], name: str, named_by: Path) -> Path:
    if name not in paths:
        raise ConversionError(
            Errors.T112.format(path=named_by, reason=f"no file for {name!r}")
        )
    return paths[name]


def _listed(paths: dict[str, Path], names: Path) -> list[Path]:
    return [
        _member(paths, stem(Path(line.strip())), names)
        for _, line in read_lines(names)
        if line.strip()
    ]


CORPORA = {
    corpus.name: corpus
    for corpus in (
        PublicCorpus("litbank", "litbank", "en", "iob-layers", _litbank),
        PublicCorpus("germeval", "germeval2014", "de", "iob-layers", _germeval),
        PublicCorpus("genia", "genia", "en", "iob-layers", _genia),
        PublicCorpus("gum", "gum", "en", "conllu", _gum),
        PublicCorpus("gmb", "gmb", "en", "iob-layers", _gmb, is_flat=True),
        PublicCorpus(
            "conll2002_es",
            "conll2002_es",
            "es",
            "iob-layers",
            _conll2002_es,
            is_flat=True,
        ),
    )
}

"""Write public word lists as JSON, to measure list-membership features.

    pip install babel faker
    python benchmarks/word_lists.py es lists_es.json

Territories, months and days from Babel (Unicode CLDR); first and last names from Faker.
"""

import argparse
import importlib
import json
from pathlib import Path

# Faker's locales with names that are usual in newswire of the language.
LOCALES = {"en": ("en_US", "en_GB"), "es": ("es_ES", "es_MX", "en_US")}


def names(locale: str, *attributes: str) -> set[str]:
    """All names that a locale of Faker has under some attributes."""
    provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
    return {name for a in attributes for name in getattr(provider, a, ())}


def main() -> None:
    """Write the lists of one language."""
    from babel import Locale

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lang", choices=sorted(LOCALES))
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    locale = Locale(args.lang)
    first: set[str] = set()
    last: set[str] = set()
    for name in LOCALES[args.lang]:
        first |= names(name, "first_names", "first_names_male", "first_names_female")
        last |= names(name, "last_names")
    lists = {
        "territory": sorted(set(locale.territories.values())),
        "time": [
            *locale.months["format"]["wide"].values(),
            *locale.days["format"]["wide"].values(),
        ],
        "first name": sorted(first),
        "last name": sorted(last - first),
    }
    args.out.write_text(json.dumps(lists, ensure_ascii=False, indent=1) + "\n")
    print({name: len(entries) for name, entries in lists.items()})


if __name__ == "__main__":
    main()

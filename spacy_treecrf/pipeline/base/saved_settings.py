"""Which value of a setting holds: what was saved with a model, or what is configured.

What only concerns prediction, or further training, is obeyed wherever it is set: in the
config that a model is loaded with, in an edited `config.cfg`, in `pipe.cfg`. What shaped
the weights, or was learnt, can't be changed any more, and a change is refused.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from spacy_treecrf.errors import Errors

# In a saved `cfg`: the settings as the pipe's config had them then. A configured value that
# differs from it was edited later; one that does not gives way to what was saved, which
# the program may have set in `pipe.cfg`.
CONFIGURED = "configured"
_OWN = ("labels", CONFIGURED)


def reconcile(
    name: str,
    configured: dict[str, Any],
    saved: dict[str, Any],
    free: Collection[str],
    exclude: Iterable[str],
    earlier: Mapping[str, tuple[Any, Any]] = MappingProxyType({}),
) -> dict[str, Any]:
    """The settings of a pipe that has been loaded.

    name (str): Name of the pipe.
    configured (dict[str, Any]): Its settings as its config has them.
    saved (dict[str, Any]): What was saved, with what was configured then.
    free (Collection[str]): Settings that may differ from those of training.
    exclude (Iterable[str]): What is not loaded. A pipeline, whose config comes with its
        pipes, loads them without "vocab". Where a pipe is loaded by itself, there is no
        such config, and what was saved holds, as for spaCy's own pipes.
    earlier (Mapping[str, tuple[Any, Any]]): Settings that models were saved without once:
        their default now, and what such a model does.
    RETURNS (dict[str, Any]): For each configured setting the value that holds.
    RAISES (ValueError): If another setting was changed in the config.
    """
    for setting, (default, before_it) in earlier.items():
        if setting not in saved and _same(configured[setting], default):
            configured = {**configured, setting: before_it}
    if "vocab" not in exclude:
        return {key: saved.get(key, value) for key, value in configured.items()}
    before = saved.get(CONFIGURED, {})
    result = {}
    for setting, value in configured.items():
        own = saved.get(setting, value)
        edited = not _same(value, before.get(setting, own))
        if edited and not _same(value, own) and setting not in free:
            raise ValueError(
                Errors.T008.format(
                    setting=setting, name=name, configured=value, saved=own
                )
            )
        result[setting] = value if edited else own
    return result


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal, floats but for what JSON does to the last digit."""
    numbers = (int, float)
    if isinstance(one, numbers) and isinstance(other, numbers):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


def learnt_settings(cfg: dict[str, Any], free: Collection[str]) -> dict[str, Any]:
    """The settings, of those of a pipe that has learnt, that can't be changed any more."""
    kept = (key for key in cfg if key not in free and key != CONFIGURED)
    return {key: cfg[key] for key in kept}


def check_unchanged(name: str, cfg: dict[str, Any], learnt: dict[str, Any]) -> None:
    """Refuse a change in `pipe.cfg` of what was learnt.

    RAISES (ValueError): If a setting differs.
    """
    for setting, value in learnt.items():
        if cfg[setting] != value:
            raise ValueError(
                Errors.T009.format(
                    setting=setting, name=name, now=cfg[setting], learnt=value
                )
            )


def configured_settings(cfg: dict[str, Any]) -> dict[str, Any]:
    """The settings of a `cfg`, without what the pipe itself keeps there."""
    return {key: value for key, value in cfg.items() if key not in _OWN}


class FixedSettings:
    """What a pipe's settings may be, before and after it has learnt.

    free_settings (frozenset[str]): Those that may differ from those of training.
    earlier_settings (dict[str, tuple[Any, Any]]): See `reconcile`.
    """

    free_settings: ClassVar[frozenset[str]]
    earlier_settings: ClassVar[dict[str, tuple[Any, Any]]] = {}
    name: str
    cfg: dict[str, Any]
    _learnt: dict[str, Any]

    def _check_ranges(self) -> None:
        """Check each setting by itself."""
        raise NotImplementedError

    def _forget_settings(self) -> None:
        """Let all settings be changed: the pipe is new, or about to learn anew."""
        self._learnt = {}
        self._check_ranges()

    def _fix_settings(self) -> None:
        """From here on the settings that shape what was learnt are fixed."""
        self._learnt = learnt_settings(self.cfg, self.free_settings)

    def _check_settings(self) -> None:
        """Check what may have been set in `cfg` since."""
        check_unchanged(self.name, self.cfg, self._learnt)
        self._check_ranges()

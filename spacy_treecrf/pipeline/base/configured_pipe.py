"""What a trainable pipe does about settings that are changed after training."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spacy.pipeline.trainable_pipe import TrainablePipe

from spacy_treecrf.errors import Errors

from .saved_settings import (
    CONFIGURED,
    FixedSettings,
    configured_settings,
    reconcile,
)

# How Thinc's errors begin where a saved model has other layers, or other widths.
OTHER_MODEL = ("Cannot deserialize model", "Attempt to change dimension")


class ConfiguredPipe(FixedSettings, TrainablePipe):
    """A trainable pipe whose settings are obeyed, or refused, wherever they are set."""

    def _start_settings(self) -> None:
        """Check the settings of a new pipe, and keep what its config has."""
        self._forget_settings()
        self.cfg[CONFIGURED] = configured_settings(self.cfg)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialise the pipe; RAISES (ValueError): If a setting can't be as it is."""
        self._check_settings()
        return bytes(super().to_bytes(exclude=exclude))

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the pipe; RAISES (ValueError): If a setting can't be as it is."""
        self._check_settings()
        super().to_disk(path, exclude=exclude)

    def from_bytes(
        self, bytes_data: bytes, *, exclude: Iterable[str] = ()
    ) -> "ConfiguredPipe":
        """Load what `to_bytes` wrote.

        RAISES (ValueError): If the config has another value of what was learnt.
        """
        with self._loading(exclude):
            super().from_bytes(bytes_data, exclude=exclude)
        return self

    def from_disk(
        self, path: str | Path, *, exclude: Iterable[str] = ()
    ) -> "ConfiguredPipe":
        """Load what `to_disk` wrote.

        RAISES (ValueError): If the config has another value of what was learnt.
        """
        with self._loading(exclude):
            super().from_disk(path, exclude=exclude)
        return self

    @contextmanager
    def _loading(self, exclude: Iterable[str]) -> Iterator[None]:
        """Settle which settings hold, when cfg and model have been read."""
        from spacy_treecrf.ml.biaffine import SettingMismatch

        # Models of the first versions do not say what was configured.
        configured = self.cfg.pop(CONFIGURED)
        # What a model does not say is not to be mistaken for what it says.
        exclude = list(exclude)
        unsaid = [] if "cfg" in exclude else [*self.earlier_settings]
        before = {setting: self.cfg.pop(setting) for setting in unsaid}
        try:
            yield
            settings = reconcile(
                self.name,
                configured,
                self.cfg,
                self.free_settings,
                exclude,
                self.earlier_settings,
            )
        except SettingMismatch as error:
            raise ValueError(
                Errors.T008.format(
                    setting=f"model.span_scorer.{error.setting}",
                    name=self.name,
                    configured=error.configured,
                    saved=error.saved,
                )
            ) from error
        except ValueError as error:
            # Thinc's words for layers or widths that differ name no pipe.
            if str(error).startswith(OTHER_MODEL):
                message = Errors.T013.format(name=self.name, reason=error)
                raise ValueError(message) from error
            raise
        finally:
            self.cfg = {**before, **self.cfg, CONFIGURED: configured}
        self.cfg.update(settings)
        self._fix_settings()

"""What the pipes share: settings, storage, encoders."""

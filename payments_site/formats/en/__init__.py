"""As people read them in English."""

"""What templates need beside what Django has."""

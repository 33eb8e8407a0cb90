"""The Django project: settings, URLs and the WSGI entry point. It contains no payment logic."""

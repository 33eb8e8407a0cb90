"""Sign-in at an OpenID provider, and a second factor for passwords.

Only modules of this package import django-allauth, and only if a setting needs them.
"""

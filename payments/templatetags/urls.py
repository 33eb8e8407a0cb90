"""Template filters for URLs that a merchant has chosen."""

from urllib.parse import urlsplit

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.filter
def linked(url: str) -> str | SafeString:
    """Return a link for an http or https URL. Other URLs, which may start an app, stay text."""
    if urlsplit(url).scheme not in {"http", "https"}:
        return url
    return format_html('<a href="{0}" rel="noopener noreferrer">{0}</a>', url)

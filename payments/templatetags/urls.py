"""Template filters for URLs that a merchant has chosen."""

from urllib.parse import urlsplit

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from payments.templatetags.texts import isolated

register = template.Library()


@register.filter
def linked(url: str) -> SafeString:
    """Return a link for an http or https URL. Other URLs, which may start an app, stay text."""
    if urlsplit(url).scheme not in {"http", "https"}:
        return isolated(url)
    return format_html('<a href="{}" rel="noopener noreferrer">{}</a>', url, isolated(url))

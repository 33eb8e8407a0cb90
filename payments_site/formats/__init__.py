"""Date and time formats. They replace Django's formats for each language."""

"""The change feed: its speed, the plans of its pages, its size, and its growth under updates.

report     all tables of figures, one after the other
serving    the feed over HTTP, from its beginning, and polls at its end
variants   databases with the same payments and other changes
positions  positions in the feed
pages      plans, buffers and milliseconds of pages
sizes      bytes per payment of the feed's parts
updates    growth while imports update all payments again and again
"""

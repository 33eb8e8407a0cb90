"""The admin: staff view payments, name organizations, add and revoke API keys. Only users and groups can be deleted.

site, login      the admin site and its login form; how a session began: with a password, a second factor, or at an
                 OpenID provider
sign_in          sign-in at an OpenID provider, and the second factor; only it imports django-allauth
overview         the start page and its form, with figures (overview_figures), statistics and charts
periods          periods of days, and form fields that select one
payments         the views of the payment list, of a payment and of exports
payment_list     the list: a page (search_listing), its totals (list_totals) and its columns; the previous and the next
                 payment
search           the list's form: an access_form (organization and mode) with filters (filter_fields)
search_text      reads the search box, with named values, into a meaning (search_meaning)
list_query       the query string of the list, and filters that a click removes

list_actions     the forms of the list that change something: saved filters and columns
preferences      the organization, mode and columns that a user selected last

display          a payment prepared for templates, with its timeline
downloads        exports as CSV and JSON Lines, part by part
organizations, keys
payment_reads    records of payments that staff read
accounts         users and groups, on Django's pages
base             the base of all model admins: refuses lookups, searches and keys that no page sends; model admins that
                 cannot delete, change or add
"""

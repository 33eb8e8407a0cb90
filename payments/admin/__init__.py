"""The admin: staff view payments, name organizations, add and revoke API keys. Only users and groups can be deleted.

site, login      the admin site and its login form
sessions         how a session began: with a password, a second factor, or at an OpenID provider
sign_in          sign-in at an OpenID provider, and the second factor
overview         the start page: figures of the last 30 days, from statistics, drawn by charts
payments         the payment list, a payment's page and the exports
search           the list's search form, an access_form (organization and mode) with filters
search_text      the meaning of a search text: words, amounts, cards, dates
search_listing   the list with a search
display          a payment prepared for templates
downloads        exports as CSV and JSON Lines, part by part
organizations, keys
payment_reads    records of which staff read which payments
form_ids         one-time IDs, so that a form that is sent twice adds one key
accounts         users and groups, on Django's pages
base             model admins that cannot delete, change or add
strict           the base of all model admins: refuses lookups, searches and keys that no page sends
"""

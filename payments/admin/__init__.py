"""The admin: staff view payments, name organizations, add and revoke API keys. Nothing can be deleted.

site, login      the admin site and its login form
overview         the start page: figures of the last 30 days, from statistics, drawn by charts
payments         the payment list, a payment's page and the exports
search           the list's search form, an access_form (organization and mode) with filters
display          a payment prepared for templates
downloads        exports as CSV and JSON Lines, part by part
organizations, keys
base             model admins that cannot delete, change or add
"""

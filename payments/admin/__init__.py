"""The admin: staff view payments, name organizations, manage API keys and users. Nothing can be deleted.

payments/        the list of payments, its search and exports, and the page of a payment: its `views` show a page of the
                 `list`, its `totals` and columns. The `form` has filters and the `search_box`; `search` finds the
                 payments, `marks` show why they match, `nothing_found` why none do; `query` is the list's query string;
                 `actions` save filters and columns; `reads` record which payments staff read
overview/        the start page: its `views`, `figures`, `tables` and `charts`; the `totals` of a period
sign_in/         sign-in at an OpenID provider, and the second factor; only it imports django-allauth

site, login      our admin site and its login form; how a session began
report           the report of a month, as a page and as files
forms            the organization, the mode and the period of a page; `preferences` has what a user selected last
switcher         the menu of the header, which selects the organization and the mode
periods          periods of days: presets, the period before, and texts
imports          the list of imports
scope, grants    the organizations that a user sees; the roles and organizations that a user may grant
organizations, keys, accounts with account_forms
base             the base of all model admins: refuses lookups, searches and keys that no page sends; model admins that
                 cannot delete, change or add; lists of records, page by page
"""

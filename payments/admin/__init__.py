"""The admin: payments to look into, organizations to name, keys to make and revoke. What has come in stays as it came.

kept            who may do what: nothing is deleted, payments are only read
payments        the list of payments, a payment's page, what is exported
search          what is asked of the list, by a form                         (payments.admin.scope: of whose payments)
shown           a payment as the list and its page show it
export          what was found, as CSV or JSON Lines, part by part
organizations, keys
"""

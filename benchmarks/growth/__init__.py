"""How the table grows: what it takes and what a page of it reads, whole and in partitions; what its settings are worth.

dataset     payments of two years, most of one organization, the others of a thousand
tables      the payments' table, and the same in partitions
sizes       bytes a payment, and the levels of indexes
reading     buffers and milliseconds, statement by statement
importing   CPU and write-ahead log a payment
ranges      what BRIN finds, and how large it is
updates     room left on pages, and what an update finds there
vacuuming   what a vacuum gives, and what it takes
"""

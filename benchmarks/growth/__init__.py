"""Size and speed of the payments table, whole and in partitions, and the effect of PostgreSQL's settings.

report       all tables of figures, one after the other
dataset      payments of two years: most belong to one organization, the others to a thousand
tables       the payments table, and copies in partitions
sizes        bytes per payment, and levels of indexes
reading      buffers and milliseconds of each statement
ranges       BRIN indexes: their size, and the buffers that they spare
importing    processor time and write-ahead log (WAL) per payment
maintenance  VACUUM and REINDEX
updates      fillfactor, and the effect of updates
"""

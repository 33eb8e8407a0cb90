"""A setting of Citus, the extension for distributed tables (docs/citus.md)."""

# Citus changes the shards of a server one after the other, through one connection. In a transaction that has changed
# shards in parallel, it refuses to write reference tables and to add foreign keys to them. Without Citus, PostgreSQL
# ignores settings with this prefix.
SEQUENTIAL = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"

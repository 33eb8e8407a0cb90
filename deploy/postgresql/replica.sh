#!/bin/sh
# Starts a replica of the server that PGHOST names. If the replica has no data yet, copies the server's data first.
# If the replica was disconnected for longer than the server keeps its log, remove its volume to copy the data again.
set -eu

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    rm -rf "$PGDATA.new"
    # pg_basebackup stores the connection parameters, including PGPASSWORD, in the copy's settings.
    pg_basebackup --pgdata "$PGDATA.new" --username replication --slot replica --wal-method stream --checkpoint fast \
        --write-recovery-conf
    mv -T "$PGDATA.new" "$PGDATA"
fi
unset PGHOST PGPORT PGPASSWORD
exec "$@"

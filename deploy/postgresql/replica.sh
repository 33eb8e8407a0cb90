#!/bin/sh
# Begins a replica of the server that PGHOST names: where there is no data yet, all of that server's is copied first.
# One that was away for longer than the server keeps its log is made anew: remove its volume.
set -eu

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    rm -rf "$PGDATA.new"
    # What it connects with, PGPASSWORD too, is kept in the copy's own settings.
    pg_basebackup --pgdata "$PGDATA.new" --username replication --slot replica --wal-method stream --checkpoint fast \
        --write-recovery-conf
    mv -T "$PGDATA.new" "$PGDATA"
fi
unset PGHOST PGPORT PGPASSWORD
exec "$@"

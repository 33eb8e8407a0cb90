#!/bin/sh
# Creates the service's role and database, and the role and slot of the replica. The PostgreSQL image runs this script
# once, after it created an empty database.
set -eu

# Passwords come from the environment, so that no command line contains them.
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
\getenv payments_password PAYMENTS_PASSWORD
\getenv replication_password REPLICATION_PASSWORD
CREATE ROLE payments LOGIN PASSWORD :'payments_password';
CREATE ROLE replication LOGIN REPLICATION PASSWORD :'replication_password';
CREATE DATABASE payments OWNER payments;
SELECT FROM pg_create_physical_replication_slot('replica');
SQL

echo "host replication replication all scram-sha-256" >>"$PGDATA/pg_hba.conf"

# Makes the database $NAME if it is missing. libpq reads the rest from the environment.
set -eu
tries=0
until pg_isready --quiet; do
    tries=$((tries + 1))
    [ "$tries" -lt 120 ] || exit 1
    sleep 1
done
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --set name="$NAME" --dbname postgres <<'SQL'
SELECT format('CREATE DATABASE %I', :'name')
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'name') \gexec
SQL

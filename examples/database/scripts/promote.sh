# Has the standby that $PGHOST leads to be the primary, once.
set -eu
tries=0
until pg_isready --quiet; do
    tries=$((tries + 1))
    [ "$tries" -lt 60 ] || exit 1
    sleep 1
done
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --dbname postgres <<'SQL'
SELECT pg_promote(true, 60) WHERE pg_is_in_recovery() \g /dev/null
SELECT 1 / (NOT pg_is_in_recovery())::int \g /dev/null
SQL

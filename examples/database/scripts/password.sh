# Beside the server: its password is what the Secret says, whoever changed it. Through the socket no
# password is asked for; a standby gets it from its primary.
set -eu
trap 'exit 0' TERM INT
# A statement that fails would be in the server's log.
export PGOPTIONS='-c log_min_error_statement=panic -c log_statement=none -c log_min_duration_statement=-1'
known=
while :; do
    sleep 5 &
    wait "$!"
    now=$(cat /credentials/password)
    [ "$now" != "$known" ] || continue
    [ "$(psql --no-psqlrc -tA --dbname postgres --command 'SELECT pg_is_in_recovery()')" = f ] || continue
    psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --dbname postgres <<'SQL' && known=$now
\set password `cat /credentials/password`
SELECT format('ALTER ROLE %I PASSWORD %L', current_user, :'password') \gexec
SQL
done

# Of the standbys $CANDIDATES (name=address ...) the one that has heard the most of the primary, to $REPORT.
# Nothing is changed here. One that does not answer might be the one: then there is no answer yet.
set -eu
best='' most=-1
for candidate in $CANDIDATES; do
    heard=$(PGHOST=${candidate#*=} PGCONNECT_TIMEOUT=5 psql --no-psqlrc -tA --set ON_ERROR_STOP=1 --dbname postgres \
        --command "SELECT greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn")
    if [ "${heard:-0}" -gt "$most" ]; then
        best=${candidate%%=*} most=$heard
    fi
done
printf '{"primary":"%s"}' "$best" >"$REPORT"

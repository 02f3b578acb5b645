# Before the server starts: the first pod is the primary, all others begin as copies of it and follow.
set -eu
case $POD in *-0) exit 0 ;; esac
[ ! -s "$PGDATA/PG_VERSION" ] || exit 0
until pg_isready --quiet; do sleep 1; done
rm -rf "$PGDATA.part"
pg_basebackup --pgdata="$PGDATA.part" --wal-method=stream --checkpoint=fast --write-recovery-conf
mv "$PGDATA.part" "$PGDATA"

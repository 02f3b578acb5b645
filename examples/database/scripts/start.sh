# Before the server starts. The pod $PRIMARY is the one that is written to; it begins with nothing only if
# $NEW is yes. All others begin as copies of whoever $PGHOST leads to, and follow.
set -eu
trap 'exit 1' TERM INT
here=${PGDATA%/*} number=${PGDATA##*/}
if [ "$POD" = "$PRIMARY" ]; then
    [ ! -s "$PGDATA/PG_VERSION" ] || exit 0
    if [ "$NEW" != yes ]; then
        echo "the data of the primary is gone: an empty database does not take its place" | tee "$REPORT" >&2
        exit 1
    fi
    # The data of before the last upgrade stays, older data does not.
    for old in "$here"/[0-9]*; do
        [ ! -d "$old" ] || [ "${old##*/}" -ge "$((number - 1))" ] 2>/dev/null || rm -rf "$old"
    done
    rm -rf "$PGDATA.part"
    initdb --pgdata="$PGDATA.part" --username="$PGUSER" --pwfile=/credentials/password --encoding=UTF8 \
        --auth-local=trust --auth-host=scram-sha-256 --data-checksums
    mv "$PGDATA.part" "$PGDATA"
    exit 0
fi
[ ! -f "$PGDATA/standby.signal" ] || exit 0
until pg_isready --quiet; do
    sleep 1 &
    wait "$!"
done
rm -rf "$PGDATA.part"
pg_basebackup --pgdata="$PGDATA.part" --wal-method=stream --checkpoint=fast
touch "$PGDATA.part/standby.signal"
# Whoever was the primary before another one took over goes back to what that one has.
rm -rf "$PGDATA"
mv "$PGDATA.part" "$PGDATA"

# Writes the database $NAME to a file in $FOLDER, told by the time and by $WHY, and deletes all but the
# last $KEEP that were written for the same reason. What came of it goes to $REPORT.
set -eu
# What somebody writes from here on would not be in the dump: alone is who saw nobody come for a while.
calm=0
while [ "${ALONE:-}" = yes ] && [ "$calm" -lt 3 ]; do
    others=$(
        psql --no-psqlrc -tA --set ON_ERROR_STOP=1 --set name="$NAME" --dbname postgres <<'SQL'
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = :'name'
SQL
    )
    if [ "$others" = 0 ]; then calm=$((calm + 1)); else calm=0; fi
    sleep 1
done
file=$(date -u +%Y%m%dT%H%M%SZ)-$WHY.dump
# In the environment, as an argument may be read as more than a name.
PGDATABASE=$NAME pg_dump --format=custom --file="$FOLDER/$file.part"
pg_restore --list "$FOLDER/$file.part" >/dev/null
mv "$FOLDER/$file.part" "$FOLDER/$file"
sync
if [ -n "${KEEP:-}" ]; then
    find "$FOLDER" -name "*-$WHY.dump" | sort -r | tail -n "+$((KEEP + 1))" | while read -r old; do
        rm -f "$old"
    done
fi
printf '{"file":"%s","bytes":%d}' "$file" "$(wc -c <"$FOLDER/$file")" >"$REPORT"

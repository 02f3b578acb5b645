# Makes the database $NAME what $BACKUP holds: a file in $FOLDER, or "latest", of those for the reason $WHY
# if that is set. All of it, or nothing.
set -eu
case $BACKUP in
latest) file=$(find "$FOLDER" -name "*${WHY:+-$WHY}.dump" | sort | tail -n 1) ;;
*/*) file= ;;
*) file=$FOLDER/$BACKUP ;;
esac
if [ -z "$file" ] || ! [ -f "$file" ]; then
    printf '{"error":"there is no such backup"}' >"$REPORT"
    exit 1
fi
quoted=$(printf %s "$NAME" | sed "s/[\\\\']/\\\\&/g")
pg_restore --clean --if-exists --exit-on-error --single-transaction --dbname="dbname='$quoted'" "$file"
printf '{"file":"%s","bytes":%d}' "$(basename "$file")" "$(wc -c <"$file")" >"$REPORT"

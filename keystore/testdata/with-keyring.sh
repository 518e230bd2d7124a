#!/bin/sh
# with-keyring.sh STATE CMD...: runs CMD on a session bus of its own, with a Secret Service in the given state:
#   open     a keyring that is made and unlocked
#   locked   a keyring that was made in an earlier session and is locked now, with no display to ask on
#   wrong    the same, after an attempt to unlock it with another password
#   stopped  as open, but the daemon has been stopped and answers nothing
#   unmade   a daemon, and no keyring was ever made
#   nohome   a daemon whose HOME does not exist
#   bare     a bus on which nobody offers the service
# Nothing outside two folders of its own is read or written. Needs dbus-daemon, gnome-keyring and libsecret-tools.
set -eu
state=$1
shift
box=$(mktemp -d "${TMPDIR:-/tmp}/keyring.XXXXXX")
# The path of a socket has at most 107 bytes; one below TMPDIR may be longer.
run=$(mktemp -d /tmp/keyring.XXXXXX)
trap 'rm -rf "$box" "$run"' EXIT
mkdir -m 700 "$box/home" "$box/data"
unset DISPLAY WAYLAND_DISPLAY DBUS_SESSION_BUS_ADDRESS
export HOME="$box/home" XDG_DATA_HOME="$box/data" XDG_RUNTIME_DIR="$run"

# in_session COMMANDS ARGS...: shell commands on a new bus. What daemons say goes to a file, and is shown on failure.
in_session() {
	script=$1
	shift
	dbus-run-session -- sh -euc "$script" sh "$@" 2>"$box/said" || {
		code=$?
		cat "$box/said" >&2
		exit $code
	}
}

# The daemon answers 0 to a wrong password too, so an item is stored and read to see that the keyring is open.
# printf writes no line end: it would be part of the password.
# shellcheck disable=SC2016
open='printf secret | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1
printf there | timeout 10 secret-tool store --label=check check yes
test "$(timeout 10 secret-tool lookup check yes)" = there
secret-tool clear check yes
'
# shellcheck disable=SC2016
stop='pid=$(dbus-send --session --print-reply=literal --dest=org.freedesktop.DBus / \
	org.freedesktop.DBus.GetConnectionUnixProcessID string:org.freedesktop.secrets | sed "s/.* //")
kill -STOP "$pid"
code=0
"$@" || code=$?
kill -KILL "$pid"
exit $code'

case $state in
open) in_session "$open"'"$@"' "$@" ;;
locked)
	in_session "$open"
	in_session '"$@"' "$@"
	;;
wrong)
	in_session "$open"
	in_session 'printf other | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1
"$@"' "$@"
	;;
stopped) in_session "$open$stop" "$@" ;;
unmade) in_session '"$@"' "$@" ;;
nohome)
	export HOME="$box/gone" XDG_DATA_HOME="$box/gone/data"
	in_session '"$@"' "$@"
	;;
bare)
	cat >"$box/bus.conf" <<-END
		<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
		 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
		<busconfig><type>session</type><listen>unix:dir=$run</listen><auth>EXTERNAL</auth>
		<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
		</busconfig>
	END
	dbus-run-session --config-file="$box/bus.conf" -- "$@"
	;;
*)
	echo "no such state: $state" >&2
	exit 2
	;;
esac

#!/bin/sh
# Installs what `make test` needs and this machine lacks: beanstalkd, and a C
# compiler, without which Go has no race detector. Uses apt-get, apk or brew.
set -eu

missing=
command -v beanstalkd >/dev/null 2>&1 || missing="$missing beanstalkd"
command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 || command -v cc >/dev/null 2>&1 || missing="$missing gcc"
[ -n "$missing" ] || exit 0

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"
	elif command -v sudo >/dev/null 2>&1; then sudo "$@"
	else
		echo "installing$missing needs root, and there is no sudo: run as root: $*" >&2
		exit 1
	fi
}

echo "installing:$missing" >&2
if command -v apt-get >/dev/null 2>&1; then
	packages=$(echo "$missing" | sed 's/gcc/gcc libc6-dev/')
	as_root apt-get update -qq
	# beanstalkd's package would start a service on port 11300; the tests start servers of their own.
	# shellcheck disable=SC2086
	as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends $packages >&2
elif command -v apk >/dev/null 2>&1; then
	packages=$(echo "$missing" | sed 's/gcc/gcc musl-dev/')
	# shellcheck disable=SC2086
	as_root apk add --no-progress $packages >&2
elif command -v brew >/dev/null 2>&1; then
	# shellcheck disable=SC2086
	brew install $missing >&2
else
	echo "cannot install$missing: neither apt-get, apk nor brew is here. Install them by hand (beanstalkd: https://beanstalkd.github.io) and run again." >&2
	exit 1
fi

command -v beanstalkd >/dev/null 2>&1 || PATH=$PATH:/usr/sbin:/usr/local/sbin command -v beanstalkd >/dev/null 2>&1 || {
	echo "beanstalkd was installed but is not on PATH: add its folder to PATH and run again" >&2
	exit 1
}

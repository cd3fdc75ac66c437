# What install.sh, install_deb.sh and install_wheel.sh begin with, in the minimal Debian of each.
set -euo pipefail
cd /h5cow
fail() {
    echo "install: $*" >&2
    exit 1
}
quietly() {
    "$@" >/tmp/log 2>&1 || {
        tail -n 40 /tmp/log
        fail "this failed: $*"
    }
}

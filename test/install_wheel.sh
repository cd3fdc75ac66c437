# Runs inside of the minimal Debian 12 that ./dev wheel --install makes; dist/ and README.md are in /h5cow. What README's section on
# Python prints has to work there, in a fresh virtual environment.
. /h5cow/test/install_begin.sh

# lines LANGUAGE: the first block of that language in the section.
lines() {
    awk -v begin="\`\`\`$1" '/^## /{on = $0 == "## Python"} /^```$/ && block {exit} block {print} on && $0 == begin {block = 1}' README.md
}

quietly apt-get update
quietly apt-get install -y --no-install-recommends python3-venv
started=$SECONDS
echo "+ python3 -m venv /tmp/venv"
python3 -m venv /tmp/venv
PATH=/tmp/venv/bin:$PATH
install=$(lines '' | grep '^pip install ') || fail "README.md does not say how to install"
echo "+ $install"
quietly sh -c "$install"
[ "$(lines python | wc -l)" = 10 ] || fail "README.md has no ten lines of Python"
echo "+ README's ten lines for Python"
said=$(cd /tmp && python3 -c "$(cd /h5cow && lines python)")
echo "$said"
[ "$(echo "$said" | grep -c -e '^1 .* first run$' -e '^calibrated .* sensor 1 was off$' -e '^\[21.5 20.9\]$')" = 3 ] || fail "they say something else"
h5cow verify /tmp/t.h5
echo "  in $((SECONDS - started)) seconds"

# Runs inside of the minimal Debian that ./dev deb --install makes; dist/ and debian/ are in /h5cow. apt installs the package,
# and what it needs with it; then programs that know nothing of versions have to get them.
. /h5cow/test/install_begin.sh

# no manual and no other documents are thrown away, as some minimal systems do
! grep -rq path-exclude /etc/dpkg || fail "this Debian drops documents"
quietly apt-get update
echo "+ apt install $(echo dist/h5cow_*.deb)"
started=$SECONDS
quietly apt-get install -y --no-install-recommends ./dist/h5cow_*.deb
echo "  in $((SECONDS - started)) seconds"
dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' >/tmp/installed
! grep -E '^ii +(python3|gcc|hdf5-tools|.*-dev)$' /tmp/installed || fail "more came along than is needed"
grep -qE '^ii +libhdf5-[0-9]' /tmp/installed || fail "no libhdf5 came along"
h5cow --version
(cd /tmp && h5cow doctor) || fail "h5cow alone is not well"
installed=$(dpkg -L h5cow | while read -r file; do [ -d "$file" ] || echo "$file"; done)
plugin=$(grep /libh5cow.so <<<"$installed")

quietly apt-get install -y --no-install-recommends python3-h5py hdf5-tools bash-completion zsh fish pkgconf man-db gcc libhdf5-dev
echo "+ debian/tests/versions"
sh debian/tests/versions || fail "debian/tests/versions fails"

# README's ten lines: what stands behind "$", but for the shell that has what is not installed.
cat >/tmp/lines.awk <<'END'
/^## /{on = $0 == "## Ten lines"}
!on || /^```/{next}
/^\$ \.\/dev/{next}
/^\$ cat > /{if (open) print "END"; print substr($0, 3) " <<\"END\""; open = 1; next}
# h5diff answers 1 where files differ, as these do
/^\$ /{if (open) print "END"; open = 0; print substr($0, 3) (/h5diff/ ? " || [ $? = 1 ]" : ""); next}
open {print}
END
echo "+ README's ten lines"
awk -f /tmp/lines.awk README.md >/tmp/lines.sh
[ "$(grep -c '^h5' /tmp/lines.sh)" -ge 6 ] || fail "README.md has no such lines"
started=$SECONDS
(mkdir /tmp/ten && cd /tmp/ten && bash -e /tmp/lines.sh) || fail "README's ten lines do not work"
echo "  in $((SECONDS - started)) seconds"

[ "$(pkg-config --variable=plugindir h5cow)" = "${plugin%/*}" ] || fail "h5cow.pc does not say where the plugin is"
[ "$(pkg-config --variable=PluginDir hdf5)" = "${plugin%/*}" ] || fail "the plugin is not where libhdf5 looks"
[ "$(pkg-config --modversion h5cow)" = "$(h5cow --version | cut -d' ' -f2)" ] || fail "h5cow.pc has another version"

for verb in '' -run -log -ls -show -diff -blame -bisect -hash -stat -report -import -export -cp -copy -verify -recover -doctor; do
    MANWIDTH=80 man "h5cow$verb" 2>/tmp/log | grep -q SYNOPSIS || fail "no man page h5cow$verb"
    [ ! -s /tmp/log ] || fail "man page h5cow$verb: $(cat /tmp/log)"
done
[ "$(bash -c '. /usr/share/bash-completion/bash_completion; _comp_load h5cow || _completion_loader h5cow
    COMP_WORDS=(h5cow ver) COMP_CWORD=1; _h5cow; echo "${COMPREPLY[*]}"')" = verify ] || fail "bash does not complete"
[ "$(fish -c 'complete -C "h5cow log --js"' | cut -f1)" = --json ] || fail "fish does not complete"
zsh -f -c 'autoload -Uz compinit; compinit -u -d /tmp/dump; [[ ${_comps[h5cow]} = _h5cow ]]' || fail "zsh does not complete"

echo "+ apt purge h5cow"
quietly apt-get purge -y h5cow
for file in $installed; do
    [ ! -e "$file" ] || fail "$file is left behind"
done

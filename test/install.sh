# Runs inside of the minimal Debian that ./dev test --install makes; the sources are in /h5cow. What README.md prints under
# "Installing" is run as it stands there; then a program is compiled, and has to have history.
. /h5cow/test/install_begin.sh

# The first N blocks of code below the heading.
blocks() {
    awk -v wanted="$1" '/^## /{on = $0 == "## Installing"} on && /^```/{inside = !inside; blocks += inside; next}
        on && inside && blocks <= wanted' /h5cow/README.md
}

blocks 1 >/tmp/lines
echo "+ the lines of README.md:"
cat /tmp/lines
[ "$(wc -l </tmp/lines)" -ge 4 ] || fail "README.md has no such lines"
bash -e /tmp/lines >/tmp/log 2>&1 || {
    tail -n 40 /tmp/log
    fail "they fail"
}
if dpkg-query -W libcmocka-dev valgrind >/dev/null 2>&1; then fail "more was installed than is needed"; fi

cd /tmp
cat >program.c <<'END'
#include <hdf5.h>
int main(void)
{
    int values[] = {1, 2, 3};
    hsize_t three = 3;
    hid_t file = H5Fcreate("made.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, &three, NULL);
    hid_t set = H5Dcreate2(file, "x", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    return H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0 || H5Dclose(set) < 0 ||
           H5Sclose(space) < 0 || H5Fclose(file) < 0;
}
END
read -ra flags <<<"$(pkg-config --cflags --libs hdf5)"
gcc -o program program.c "${flags[@]}"

h5cow run -m 'by run' -- ./program
h5cow log made.h5 | grep 'by run' || fail "no history by h5cow run"
rm made.h5
# the second block: chosen for a whole session, and found without HDF5_PLUGIN_PATH
blocks 2 | tail -n +$(($(wc -l <lines) + 1)) >session
echo "+ for a session:"
cat session
! grep -q PLUGIN_PATH session || fail "the plugin is not where libhdf5 looks"
bash -e -c '. ./session; ./program; h5cow log made.h5; h5cow doctor'
[ "$(ls "$(pkg-config --variable=PluginDir hdf5)")" = libh5cow.so ] || fail "the plugin is not in HDF5's folder"

for verb in '' -run -log -stat -import -export -copy -verify -recover -doctor; do
    [ -s "/usr/local/share/man/man1/h5cow$verb.1" ] || fail "no man page h5cow$verb"
done
[ "$(pkg-config --variable=plugindir h5cow)" = "$(pkg-config --variable=PluginDir hdf5)" ] || fail "h5cow.pc names another folder"
for file in README.md docs/api.md docs/install.md docs/command.md docs/options.md docs/python.md; do
    [ -s "/usr/local/share/doc/h5cow/$file" ] || fail "no $file"
done
[ -s /usr/local/include/h5cow.f90 ] || fail "no Fortran module"
printf '#include <h5cow.h>\nint main(void) { return h5cow_has_history(-1) != 0; }\n' >knows.c
gcc -o knows knows.c "${flags[@]}" && ./knows || fail "h5cow.h cannot be used"
bash -c '. /usr/local/share/bash-completion/completions/h5cow.bash; COMP_WORDS=(h5cow ver) COMP_CWORD=1; _h5cow
    [ "${COMPREPLY[*]}" = verify ]' || fail "no completion"
for file in fish/vendor_completions.d/h5cow.fish zsh/site-functions/_h5cow; do
    [ -s "/usr/local/share/$file" ] || fail "no $file"
done
echo "+ installed, used and documented"

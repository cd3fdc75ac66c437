#!/usr/bin/env bash
# The main job on real data: programs that know nothing of versions make, correct and extend a climate file, and every
# state of it stays readable, with the connector and without it. Called by ./dev demo in an environment where h5cow and
# the connector are found; the argument is a folder to work in. Each step runs a second time without the connector on a
# plain file, which is copied away: what those copies cost is what history costs without h5cow, and each version must
# equal its copy.
set -euo pipefail

demo=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
work=$1
data=/usr/share/ferret-vis/data
climate=(python3 "$demo/climate.py")
steps=0

title() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
show() {
    printf '$ %s\n' "$*"
    "$@"
}
bytes() { stat -c %s "$1"; }
trap 'printf "\ndemo: this step failed; the files are in %s\n" "$work" >&2' ERR

# step MESSAGE COMMAND...: with history in versioned/, without in plain/.
step() {
    local message=$1
    shift
    printf '$ h5cow run -m "%s" -- %s\n' "$message" "${*//$demo\//}"
    (cd "$work/versioned" && h5cow run -m "$message" -- "$@")
    (cd "$work/plain" && "$@")
    steps=$((steps + 1))
    cp "$work/plain/climate.nc" "$work/plain/copy-$steps.nc"
}

rm -rf "$work"
mkdir -p "$work/versioned" "$work/plain"
nccopy -k nc4 -d 4 -s "$data/levitus_climatology.cdf" "$work/levitus.nc"

title "Programs that were never changed make and change a file; each run that changes it makes a version"
step "COADS climatology as delivered" \
    nccopy -k nc4 -d 4 -s -c TIME/1,COADSY/45,COADSX/90 "$data/coads_climatology.cdf" climate.nc
step "bucket correction, North Atlantic" "${climate[@]}" correct climate.nc 0.3
step "second year appended" "${climate[@]}" extend climate.nc
step "temperatures of the Levitus atlas added" \
    ncks -h -A -v TEMP "$work/levitus.nc" climate.nc
step "zonal means" "${climate[@]}" summarise climate.nc
step "correction revised" "${climate[@]}" correct climate.nc -0.1
echo '$ h5cow run -- python3 climate.py rewrite climate.nc        # the same values again: no version'
(cd "$work/versioned" && h5cow run -- "${climate[@]}" rewrite climate.nc)

title "A program that writes its output anew, with mode 'w', loses nothing: each run is a version"
cp "$work/plain/climate.nc" "$work/plain/input.nc"
before=0
for run in 1 2 3; do
    (cd "$work/versioned" && h5cow run -m "run $run" -- "${climate[@]}" product "$work/plain/input.nc" product.nc "0.$run")
    now=$(bytes "$work/versioned/product.nc")
    echo "\$ climate.py product input.nc product.nc 0.$run        # the file grew by $((now - before)) bytes"
    before=$now
done
(cd "$work/versioned" && show h5cow log product.nc && show h5cow verify product.nc)

cd "$work/versioned"
title "The history, and what each version added"
show h5cow log climate.nc

title "Sea surface temperature at 43 N, 47 W in February, by h5dump: versions 1, 2 and 6"
point=(-d /SST -s "1,66,146" -c "1,1,4")
for version in 1 2 6; do
    echo "-- version $version, through the connector"
    show h5cow run -- h5dump -A 0 "${point[@]}" "climate.nc@$version" | sed -n '/^\$/p; /DATA {/,/}/p'
    echo "-- version $version, without the connector: any HDF5 program, no plugin"
    show h5dump -A 0 -d "/_versioned_data/versions/$version/SST" -s 1,66,146 -c 1,1,4 climate.nc |
        sed -n '/^\$/p; /DATA {/,/}/p'
done

title "What the first correction changed, by h5diff"
changed=0
show h5cow run -- h5diff -r climate.nc@1 climate.nc@2 /SST >"$work/diff.txt" || changed=$?
[ "$changed" = 1 ]
sed -n '1,8p; $p' "$work/diff.txt"

title "Each version against the plain copy that was kept at that time"
for version in $(seq "$steps"); do
    h5cow run -- h5diff "climate.nc@$version" "../plain/copy-$version.nc" ||
        { echo "version $version differs from its copy" && exit 1; }
    echo "version $version: h5diff finds no difference"
done

title "What it costs"
copies=0
for version in $(seq "$steps"); do
    copies=$((copies + $(bytes "../plain/copy-$version.nc")))
done
stored=$(bytes climate.nc)
printf '%-52s %12s bytes\n' "one plain file, newest state only" "$(bytes ../plain/climate.nc)" \
    "the same history as $steps plain copies" "$copies" "climate.nc with all $steps versions" "$stored"
awk -v a="$copies" -v b="$stored" 'BEGIN { printf "%.1f times smaller than copies\n", a / b }'
[ "$stored" -lt "$copies" ]

title "What changed, and back to it: no data is copied"
changed=0
show h5cow diff --stat climate.nc@5 climate.nc@6 || changed=$?
[ "$changed" = 1 ]
show h5cow restore climate.nc@2
h5cow run -- h5diff climate.nc ../plain/copy-2.nc
echo "h5diff finds no difference to the plain copy of version 2"
show h5cow undo climate.nc
h5cow run -- h5diff climate.nc "../plain/copy-$steps.nc"
echo "h5diff finds no difference to the newest plain copy"
show h5cow tag climate.nc@2 submitted
show h5cow log --oneline climate.nc

title "What if only the newest three versions stayed, and the one with a tag? Little is saved: versions share the rest"
show h5cow forget --keep-last=3 --dry-run climate.nc
h5cow forget --keep-last=3 climate.nc >/dev/null
show h5cow gc climate.nc
stored=$(bytes climate.nc)
show h5cow gc --compact climate.nc
compact=$(bytes climate.nc)
echo "climate.nc: $((stored - compact)) bytes of $stored less"
[ "$compact" -lt "$stored" ]
h5cow run -- h5diff climate.nc@submitted ../plain/copy-2.nc
h5cow run -- h5diff climate.nc "../plain/copy-$steps.nc"
echo "version 2 and the newest state: h5diff finds no difference to the plain copies"
show h5cow log --oneline --all climate.nc

title "Every stored chunk hashed again, every index and view checked"
show h5cow verify climate.nc
title "One page about it all, for a browser"
show h5cow report climate.nc
title "A plain file gets a history: what is in it becomes version 1"
cp ../plain/copy-1.nc imported.nc
show h5cow import -m "as delivered" imported.nc
h5cow run -m "a correction" -- "${climate[@]}" correct imported.nc 0.3
show h5cow log imported.nc
h5cow run -- h5diff imported.nc@1 ../plain/copy-1.nc
echo "version 1: h5diff finds no difference"

printf '\nThe files are in %s\n' "$work"

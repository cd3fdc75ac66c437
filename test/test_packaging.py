"""What packages are made from says one thing: the same version, the same libraries, the same files. ./dev deb builds the Debian
package, packaging/conda/check.py the conda package; here is what can go wrong while neither is run."""

import os
import pathlib
import re
import subprocess
import sys
import types

import pytest
from conftest import H5COW, STOCK

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("H5COW_BUILD", TOP / "build/release"))
# What meson.build asks for -> its package of Debian, conda-forge, Spack.
LIBRARIES = {
    "hdf5": ("libhdf5-dev", "hdf5", "hdf5"),
    "libxxhash": ("libxxhash-dev", "xxhash", "xxhash"),
    "libcrypto": ("libssl-dev", "openssl", "openssl"),
    "blosc": ("libblosc-dev", "blosc", "c-blosc"),
    "zlib": ("zlib1g-dev", "zlib", "zlib-api"),
    "libdeflate": ("libdeflate-dev", "libdeflate", "libdeflate"),
    "json-c": ("libjson-c-dev", "json-c", "json-c"),
}
VERBS = ("run", "log", "ls", "show", "diff", "blame", "bisect", "hash", "stat", "report", "import", "export", "cp", "restore", "undo", "redo", "tag", "rename", "describe", "copy", "verify", "recover", "doctor")


def text(path):
    return (TOP / path).read_text()


def found(pattern, path):
    return re.search(pattern, text(path), re.M)[1]


def spack():
    """What packaging/spack/package.py declares: its class, and the words of each directive, by directive."""
    said, module = {}, types.ModuleType("spack.package")
    for name in ("license", "version", "depends_on", "requires", "run_after"):
        def directive(*words, _name=name, **more):
            said.setdefault(_name, []).append((words, more))
            return lambda function: function
        setattr(module, name, directive)
    module.Executable = None
    meson = types.ModuleType("spack_repo.builtin.build_systems.meson")
    meson.MesonPackage = type("MesonPackage", (), {})
    names = ["spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"]
    known = {**{name: types.ModuleType(name) for name in names}, module.__name__: module, meson.__name__: meson}
    before = {name: sys.modules.get(name) for name in known}
    sys.modules.update(known)
    try:
        namespace = {"__file__": str(TOP / "packaging/spack/package.py")}
        exec(compile(text("packaging/spack/package.py"), "package.py", "exec"), namespace)
    finally:
        for name, old in before.items():
            sys.modules.pop(name)
            if old is not None:
                sys.modules[name] = old
    return namespace["H5cow"], said


def test_the_version_is_the_same_everywhere():
    version = found(r"^  version: '(.*)'", "meson.build")
    assert found(r"^h5cow \((.*)\)", "debian/changelog") == version
    assert found(r'^  version: "(.*)"', "packaging/conda/recipe.yaml") == version
    said = subprocess.run([H5COW, "--version"], capture_output=True, text=True, check=True, env=STOCK).stdout
    assert said == f"h5cow {version}\n"


def test_every_library_is_asked_for_by_every_package():
    asked = set(re.findall(r"dependency\('([^']+)'", text("meson.build"))) - {"threads", "hdf5-serial"}  # Debian's other name
    assert asked == set(LIBRARIES), "give the new library its names, and the packages their lines"
    debian = re.search(r"^Build-Depends:\n((?: .*\n)+)", text("debian/control"), re.M)[1]
    readme = re.search(r"^apt install -y (.*)$", text("README.md"), re.M)[1].split()
    conda = re.search(r"^  host:\n((?:    - .*\n)+)", text("packaging/conda/recipe.yaml"), re.M)[1]
    _, said = spack()
    spacks = {words[0].split("@")[0].split()[0] for words, _ in said["depends_on"]}
    for name, (deb, forge, spack_name) in LIBRARIES.items():
        assert re.search(rf"^ {deb}\b", debian, re.M), name
        assert deb in readme, name
        assert re.search(rf"^    - {forge}\b", conda, re.M), name
        assert spack_name in spacks, name


def test_the_spack_package_names_this_checkout_and_options_that_there_are():
    package, said = spack()
    assert package.git == f"file://{TOP}" and said["license"] == [(("BSD-3-Clause",), {})]
    options = set(re.findall(r"^option\('(\w+)'", text("meson_options.txt"), re.M)) | {"werror"}
    for path, words in (("spack", package().meson_args()),
                        ("conda", re.findall(r"-D\w+=\S+", text("packaging/conda/recipe.yaml"))),
                        ("debian", re.findall(r"-D\w+=\S+", text("debian/rules")))):
        assert words and {re.match(r"-D(\w+)=", word)[1] for word in words} <= options, path


def test_the_licence_of_the_debian_package_is_the_licence():
    plain = re.sub(r"^ \.?", "", text("debian/copyright").split("\nLicense: BSD-3-Clause\n")[2], flags=re.M)
    licence = text("LICENSE")
    assert plain.split() == licence[licence.index("Redistribution"):].split()
    assert re.search(r"^Copyright: 2026 The h5cow authors$", text("debian/copyright"), re.M)
    assert "Copyright (c) 2026, The h5cow authors\n" in licence


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    root = tmp_path_factory.mktemp("installed")
    done = subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--destdir", str(root)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return root


def test_meson_installs_command_plugin_manual_completions_and_documents(installed):
    files = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    share = "usr/local/share/"
    expected = {"usr/local/bin/h5cow", share + "fish/vendor_completions.d/h5cow.fish", share + "zsh/site-functions/_h5cow",
                share + "bash-completion/completions/h5cow.bash", share + "doc/h5cow/README.md"}
    expected |= {share + f"man/man1/h5cow{verb}.1" for verb in ["", *("-" + verb for verb in VERBS)]}
    expected |= {share + f"doc/h5cow/docs/{page.name}" for page in (TOP / "docs").glob("*.md")}
    assert expected <= files, expected - files
    assert len([file for file in files if file.endswith("/libh5cow.so")]) == 1


def test_pkg_config_finds_the_folder_of_the_plugin(installed):
    described, = installed.rglob("h5cow.pc")
    plugin, = installed.rglob("libh5cow.so")
    env = {**os.environ, "PKG_CONFIG_PATH": str(described.parent)}

    def ask(*words):
        return subprocess.run(["pkg-config", *words, "h5cow"], capture_output=True, text=True, check=True, env=env).stdout.strip()

    assert ask("--variable=plugindir") == "/" + str(plugin.parent.relative_to(installed))
    assert ask("--modversion") == found(r"^  version: '(.*)'", "meson.build")
    assert ask("--libs") == ""


def test_the_plugin_has_no_soname_and_nothing_of_the_folder_it_was_built_in():
    for file in BUILD / "connector/libh5cow.so", BUILD / "cli/h5cow":
        assert os.fsencode(TOP) not in file.read_bytes(), f"{file} has the folder's name in it"
    said = subprocess.run(["readelf", "-d", BUILD / "connector/libh5cow.so"], capture_output=True, text=True, check=True).stdout
    assert "(NEEDED)" in said and "(SONAME)" not in said

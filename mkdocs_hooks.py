"""Hooks of mkdocs.yml: README.md becomes the front page of the site."""

import pathlib
import re

from markdown.extensions.toc import slugify
from mkdocs.structure.files import File

TOP = pathlib.Path(__file__).resolve().parent


def slug(text, separator):
    """The theme's script finds no heading whose name begins with a digit."""
    return re.sub(r"^(?=\d)", "n", slugify(text, separator))


def on_config(config):
    config.mdx_configs["toc"]["slugify"] = slug
    return config


def on_files(files, config):
    text = re.sub(r"\]\(docs/([\w-]+\.(?:md|py))", r"](\1", (TOP / "README.md").read_text())
    files.append(File.generated(config, "index.md", content=text.replace("](LICENSE)", "](LICENSE.txt)")))
    files.append(File.generated(config, "LICENSE.txt", content=(TOP / "LICENSE").read_text()))
    return files


def on_page_markdown(markdown, page, config, files):
    return markdown.replace("](../README.md", "](index.md")


def on_post_page(output, page, config):
    """The theme's switch between light and dark looks for these, which only pages with highlight.js from elsewhere have."""
    return output.replace("</head>", '<style id="hljs-light"></style><style id="hljs-dark"></style></head>')

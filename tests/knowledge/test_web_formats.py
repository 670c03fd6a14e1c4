"""HTML, reStructuredText, notebooks, code: structure and identifiers kept, what surrounds the text is not."""

from __future__ import annotations

import json

import pytest

from kernel_scientist.knowledge.chunking import chunk
from kernel_scientist.knowledge.loaders import LoadedDocument, LoadError, parse

HTML = """<!DOCTYPE html><html><head><title>Guide - ROCm</title>
<meta name="citation_author" content="A. One">
<meta name="citation_publication_date" content="2024/05/01"></head>
<body><nav><a href="/">Home</a></nav><header>Site</header><main>
<h1>HIP guide<a class="headerlink" href="#x">¶</a></h1>
<p>Use <code>__builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8</code>,
   <em>v_mfma</em>_f32, or ds_read_b128 * 2.</p>
<ul><li>one</li><li><p>two</p></li></ul>
<h2>Code</h2>
<pre><span>int a_b;</span>

  for (x_y)</pre>
<table><thead><tr><th>Instruction</th><th>Passes</th></tr></thead>
<tr><td>v_add_f32</td><td>a|b</td></tr></table>
<dl class="cpp function"><dt class="sig"><span class="sig-name descname">hipMalloc</span>(void **ptr)</dt>
<dd><p>Allocates memory.</p></dd></dl>
<p>After it.</p><div class="sidebar">Buy now</div></main>
<footer>Imprint</footer><script>x()</script></body></html>"""


def test_html_is_read_as_sections_with_code_tables_and_definitions() -> None:
    document = parse(HTML.encode(), "a.html")

    assert (document.title, document.authors, document.year) == ("HIP guide", ("A. One",), 2024)
    assert [(s.path, s.text) for s in document.sections] == [
        (
            (),
            "Use __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8, v_mfma_f32, or ds_read_b128 * 2."
            "\n\n- one\n- two",
        ),
        (
            ("Code",),
            "```\nint a_b;\n\n  for (x_y)\n```\n\n| Instruction | Passes |\n|---|---|\n| v_add_f32 | a\\|b |",
        ),
        (("Code", "hipMalloc"), "hipMalloc(void **ptr)\n\nAllocates memory."),
        (("Code",), "After it."),
    ]


@pytest.mark.parametrize(
    "raw",
    [
        '<meta charset="windows-1252"><p>Köln</p>'.encode("cp1252"),
        "<p>Köln</p>".encode(),
        "<p>Köln</p>".encode("utf-16"),
        '<?xml version="1.0" encoding="utf-8"?><html><p>Köln</p></html>'.encode(),
        b"<p>K&ouml;ln<p><b>unclosed",
    ],
)
def test_html_of_any_encoding_and_care_is_read(raw: bytes) -> None:
    assert parse(raw, "a.html").sections[0].text.startswith("Köln")


def test_deeply_nested_html_is_read_or_refused_but_never_crashes() -> None:
    assert "end" in parse(b"<div>" * 100 + b"<p>end</p>", "a.html").sections[0].text
    with pytest.raises(LoadError, match="nested too deep"):
        parse(b"<div>" * 50_000 + b"<p>end</p>", "a.html")


RST = """
.. _label:

=========
HIP guide
=========

Intro with :ref:`link text <label>`, :cpp:func:`~hipMalloc`, ``ds_read_b128`` and foo\\_bar.

Part
----

.. code-block:: cpp
   :caption: A kernel

   int a;

     int b;

.. note::

   Be careful.

.. list-table:: Rates
   :header-rows: 1

   * - Instruction
     - Passes
   * - v_mfma
     - 16

Example::

   x = 1

Sub
~~~

======  ====
a       b
======  ====

.. unknown-directive:: argument

   Its text stays.

.. a comment

.. toctree::

   other
"""


def test_restructuredtext_is_read_with_directives_opened_and_none_lost() -> None:
    document = parse(RST.encode(), "a.rst")

    assert document.title == "HIP guide"
    texts = {section.path: section.text for section in document.sections}
    assert texts[()] == "Intro with link text, hipMalloc, `ds_read_b128` and foo_bar."
    assert "A kernel\n\n```\nint a;\n\n  int b;\n```" in texts["Part",]
    assert "| Instruction | Passes |\n|---|---|\n| v_mfma | 16 |" in texts["Part",]
    assert "Be careful." in texts["Part",] and "```\nx = 1\n```" in texts["Part",]
    sub = texts["Part", "Sub"]
    assert "a       b" in sub and "argument" in sub and "Its text stays." in sub
    assert "comment" not in sub and "other" not in sub


def notebook(*cells: object) -> LoadedDocument:
    return parse(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}).encode(), "n.ipynb")


def test_a_notebook_is_read_with_code_and_what_it_printed_below_its_headings() -> None:
    document = notebook(
        {"cell_type": "markdown", "source": ["# Tuning\n", "\n", "## Tiles\n", "Text."]},
        {
            "cell_type": "code",
            "source": "# no heading\nx = 1",
            "outputs": [
                {"output_type": "stream", "text": ["3.2 us\n"]},
                {"data": {"text/plain": "7", "image/png": "AAAA"}},
            ],
        },
        {"cell_type": "markdown", "source": "## Next\n```\nopen"},
        {"cell_type": "markdown", "source": "## Last\nEnd."},
    )

    assert document.title == "Tuning"
    assert [section.path for section in document.sections] == [("Tiles",), ("Next",), ("Last",)]
    assert "```python\n# no heading\nx = 1\n```" in document.sections[0].text
    assert "3.2 us" in document.sections[0].text and "AAAA" not in document.sections[0].text


@pytest.mark.parametrize("cell", [7, {}, {"cell_type": "heading", "level": "x"}, {"source": {"a": 1}}])
def test_a_notebook_with_odd_cells_is_read_or_refused(cell: object) -> None:
    assert "End" in notebook(cell, {"cell_type": "markdown", "source": "End \ud800."}).sections[-1].text


def test_a_cell_that_opens_with_a_rule_is_no_front_matter() -> None:
    assert "+++" in notebook({"cell_type": "markdown", "source": "+++\nx"}).sections[0].text


CPP = """\
#include <hip/hip_runtime.h>
#define OPEN(x) if (x) {
namespace ck {
// Adds.
template <int N>
__global__ void __launch_bounds__(256) add(float* a) {
  const char* s = "}}"; // }
  if (a) { a[0] = 1; }
}
__device__ int two(int x)
{
  return x;
}

struct Tile {
  int rows;
};

__kernel void three(__global float* p) { p[0] = 1; }
}  // namespace ck
"""


def test_functions_inside_namespaces_and_beside_macros_are_sections() -> None:
    document = parse(CPP.encode(), "a.cl")

    assert [section.path for section in document.sections] == [("add",), ("two",), ("Tile",), ("three",)]
    assert document.sections[0].text.startswith("#include") and "// Adds." in document.sections[0].text
    assert "".join("".join(s.text.split()) for s in document.sections) == "".join(CPP.split())


def test_triton_kernels_keep_their_decorators_and_long_classes_are_cut_into_methods() -> None:
    methods = "".join(f"    def method_{n}(self):\n        return {n}\n\n" for n in range(30))
    source = (
        "import triton\n\n\n# Adds.\n@triton.jit\ndef add_kernel(x_ptr, BLOCK: tl.constexpr):\n    pass\n\n\n"
        f"class Long:\n{methods}"
    )

    document = parse(source.encode(), "k.py")

    assert document.sections[0].path == ("add_kernel",)
    assert "# Adds.\n@triton.jit\ndef add_kernel" in document.sections[0].text
    assert document.sections[-1].path == ("Long", "method_29")
    assert "".join("".join(s.text.split()) for s in document.sections) == "".join(source.split())


def test_python_that_does_not_parse_is_still_read() -> None:
    assert "print 1" in parse(b"def f():\n    print 1\n", "old.py").sections[0].text


def test_each_function_is_one_passage() -> None:
    assert [piece.section for piece in chunk(parse(CPP.encode(), "a.hip"))] == ["add", "two", "Tile", "three"]

"""PDF: reading order, sections, tables, code and pages are kept; what cannot be read says why."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from reportlab.pdfgen import canvas

from kernel_scientist.knowledge import KnowledgeBase
from kernel_scientist.knowledge.chunking import chunk
from kernel_scientist.knowledge.loaders import LoadError, parse

from . import pdfs

Write = Callable[[str, str | bytes], Path]


@pytest.fixture(scope="module")
def paper() -> bytes:
    return pdfs.paper(sections=6)


@pytest.fixture(scope="module")
def manual() -> bytes:
    return pdfs.manual()


def test_a_paper_in_two_columns_is_read_column_by_column(paper: bytes) -> None:
    document = parse(paper, "paper.pdf")

    assert document.title == "Wavefront Scheduling for Matrix Kernels"
    assert [s.path for s in document.sections] == [(), *((f"{n} Part number {n}",) for n in range(1, 7))]
    text = "\n".join(section.text for section in document.sections)
    marks = re.findall(r"(Begin|End) (\d+)\.", text)
    assert marks == [(word, str(n)) for n in range(1, 31) for word in ("Begin", "End")]
    assert text.count("v_mfma_f32_32x32x16_fp8_fp8") == 120 == text.count("ds_read_b128") - 1
    assert "Proceedings" not in text and "Page" not in text


def test_paragraphs_of_a_paper_are_whole_and_its_table_and_code_are_kept(paper: bytes) -> None:
    sections = {section.path[-1]: section.text for section in parse(paper, "p.pdf").sections if section.path}

    whole = f"Begin 1. {pdfs.SENTENCE * 4}End 1."
    assert whole in sections["1 Part number 1"].split("\n\n")
    assert (
        "| Instruction | Passes |\n|---|---|\n| v_add_f32 | 4 |\n| ds_read_b128 | 12 |"
        in sections["2 Part number 2"]
    )
    assert (
        "```\n__global__ void k(float* a) {\n  for (int i = 0; i < 8; ++i) {\n    a[i] += 1;\n  }\n}\n```"
        in sections["3 Part number 3"]
    )


def test_columns_that_the_file_interleaves_are_read_in_order() -> None:
    left = [f"left {n} of the running text that fills a column" for n in range(20)]
    right = [f"right {n} of the running text that fills a column" for n in range(20)]

    text = parse(pdfs.two_columns_row_by_row(left, right), "p.pdf").sections[0].text

    assert " ".join(text.split()) == " ".join([*left, *right])


def test_a_manual_has_a_section_for_each_instruction_with_its_page(manual: bytes) -> None:
    document = parse(manual, "isa.pdf")

    assert (document.title, document.pages) == ("ISA Manual", 6)
    assert [(s.path, s.page) for s in document.sections] == [
        ((f"Chapter {n // 6 + 1}", f"v_test_op_{n}_f32"), n // 2 + 1) for n in range(12)
    ]
    assert [(c.section, c.page) for c in chunk(document)] == [
        (" > ".join(s.path), s.page) for s in document.sections
    ]


def test_an_instruction_keeps_its_words_identifiers_table_and_code(manual: bytes) -> None:
    text = parse(manual, "isa.pdf").sections[7].text

    assert text == (
        "Computes result 7 of a multiplication of wave-wide rows. The operand is named v_src_7_lo.\n\n"
        "| Field | Bits | Meaning |\n|---|---|---|\n| OP | 24:17 | opcode 7 |\n| SRC | 8:0 | source |\n\n"
        "```\nif (exec) {\n    d = a * 7;\n}\n```"
    )


def test_a_long_section_over_several_pages_is_cut_between_them(paper: bytes) -> None:
    document = parse(paper, "p.pdf")
    chunks = chunk(document)

    pages = [piece.page for piece in chunks]
    assert pages == sorted(pages, key=lambda page: page or 0) and pages[-1] == document.pages
    assert "".join("".join(c.text.split()) for c in chunks) == "".join(
        "".join(s.text.split()) for s in document.sections
    )


def test_pages_that_are_shown_turned_are_read_along_their_lines(manual: bytes) -> None:
    from pypdf import PdfReader, PdfWriter, Transformation

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(manual)))
    for page in writer.pages:
        page.add_transformation(Transformation().rotate(90).translate(tx=792))
        page.mediabox.upper_right = (792, 612)
        page.rotate(90)
    buffer = io.BytesIO()
    writer.write(buffer)

    assert "\n| SRC | 8:0 | source |" in parse(buffer.getvalue(), "t.pdf").sections[0].text


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda raw: pdfs.encrypted(raw, "opensesame"), "it is encrypted; save a copy without the password"),
        (lambda raw: pdfs.encrypted(raw, "opensesame", "RC4-128"), "it is encrypted"),
        (lambda raw: pdfs.scan(), "probably a scan; run OCR on it first"),
        (lambda raw: raw[: len(raw) // 2], "cut off"),
        (lambda raw: b"", "the file is empty"),
        (lambda raw: b"<html>not found</html>", "does not begin like one"),
        (lambda raw: b"%PDF-1.7\nnothing of use\n%%EOF", "not a readable PDF"),
        (lambda raw: raw.replace(b"/Kids", b"/Kods"), "not a readable PDF"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(
    manual: bytes, make: Callable[[bytes], bytes], complaint: str
) -> None:
    with pytest.raises(LoadError, match=re.escape(complaint)):
        parse(make(manual), "a.pdf")


def test_a_pdf_that_only_forbids_changes_is_read(manual: bytes) -> None:
    assert parse(pdfs.encrypted(manual, ""), "a.pdf").title == "ISA Manual"


def test_a_folder_of_broken_documents_stops_nothing(base: KnowledgeBase, write: Write, manual: bytes) -> None:
    folder = write("good.pdf", manual).parent
    write("secret.pdf", pdfs.encrypted(manual, "opensesame"))
    write("scan.pdf", pdfs.scan())
    write("cut.pdf", manual[: len(manual) // 2])
    write("empty.pdf", b"")
    write("half.pdf", _with_a_blank_page(manual))

    report = base.add(folder)

    found = {Path(item.source).stem: item for item in report.items}
    assert {stem for stem, item in found.items() if item.status == "failed"} == {
        "secret",
        "scan",
        "cut",
        "empty",
    }
    assert (found["good"].chunks, found["good"].pages) == (12, 6)
    assert found["half"].reason == "1 of 7 pages hold no text"
    assert base.search("v_test_op_7_f32", limit=1)[0].citation.page == 4


def _with_a_blank_page(raw: bytes) -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(raw)))
    writer.add_blank_page()
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def test_underscores_that_are_drawn_as_lines_are_read_and_other_lines_are_not() -> None:
    """As TeX sets ``asn1_read_value`` in roman type; beside it a fraction, a field, an underline."""
    file = io.BytesIO()
    page = canvas.Canvas(file, pagesize=(400, 200), invariant=1)
    page.setFont("Times-Roman", 11)

    def words(y: float, parts: list[str], width: float, height: float, rise: float) -> None:
        x = 40.0
        for i, part in enumerate(parts):
            if i:
                page.rect(x + 0.6, y + rise, width, height, stroke=0, fill=1)
                x += width + 1.2
            page.drawString(x, y, part)
            x += page.stringWidth(part, "Times-Roman", 11)

    words(160, ["int hip", "read", "value (const hip", "node * root)"], 4.2, 0.9, -1.2)
    words(130, ["over", "half"], 4.2, 0.5, 3.5)
    words(100, ["name", "date"], 60.0, 0.5, -1.2)
    page.drawString(40, 70, "under lined")
    page.rect(40, 68, 50, 0.5, stroke=0, fill=1)
    page.save()

    text = "\n".join(section.text for section in parse(file.getvalue(), "x.pdf").sections)

    assert "int hip_read_value (const hip_node * root)" in text
    assert text.count("_") == 3 and "over half" in text and "under lined" in text


def test_functions_that_stand_out_below_an_outline_s_section_are_sections_of_their_own() -> None:
    file = io.BytesIO()
    page = canvas.Canvas(file, pagesize=(400, 300), invariant=1)
    page.bookmarkPage("functions")
    page.addOutlineEntry("Functions", "functions", 0)
    for y, font, text in (
        (260, "Times-Bold", "Functions"),
        (230, "Times-Bold", "hip_open_device"),
        (210, "Times-Roman", "Opens a device and says which one it is, as hip_list_devices does."),
        (180, "Times-Bold", "Important"),
        (160, "Times-Bold", "hip_close_device"),
        (140, "Times-Roman", "Closes it again."),
    ):
        page.setFont(font, 11)
        page.drawString(40, y, text)
    page.save()

    sections = parse(file.getvalue(), "x.pdf").sections

    assert [section.path for section in sections] == [
        ("Functions", "hip_open_device"),
        ("Functions", "hip_close_device"),
    ]
    assert "Important" in sections[0].text

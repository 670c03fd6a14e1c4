"""PDFs as people have them, made on the spot: papers in two columns, manuals with an outline, bad ones."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

__all__ = ["encrypted", "manual", "paper", "scan", "two_columns_row_by_row"]

SENTENCE = (
    "The instruction v_mfma_f32_32x32x16_fp8_fp8 reads registers while ds_read_b128 loads from the LDS. "
)


def _canvas(buffer: io.BytesIO) -> Any:
    from reportlab.pdfgen.canvas import Canvas

    return Canvas(buffer, pagesize=(612, 792), invariant=True)


def paper(sections: int = 4, paragraphs: int = 5) -> bytes:
    """A paper: title and abstract across, then two justified columns, headings, a table, code, headers."""
    from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
    from reportlab.platypus import (
        BaseDocTemplate,
        Frame,
        FrameBreak,
        NextPageTemplate,
        PageTemplate,
        Paragraph,
        Preformatted,
        Table,
    )

    def furniture(canvas: Any, document: Any) -> None:
        canvas.setFont("Helvetica", 8)
        canvas.drawString(60, 770, "Proceedings of Kernels 2025")
        canvas.drawCentredString(306, 30, f"Page {document.page}")

    buffer = io.BytesIO()
    document = BaseDocTemplate(buffer, pagesize=(612, 792), invariant=True)
    top = Frame(60, 600, 492, 150)
    columns = [[Frame(x, 50, 225, height) for x in (60, 327)] for height in (540, 700)]
    document.addPageTemplates(
        [
            PageTemplate("first", [top, *columns[0]], onPage=furniture),
            PageTemplate("later", columns[1], onPage=furniture),
        ]
    )
    styles: Any = getSampleStyleSheet()
    body = ParagraphStyle("own", fontName="Times-Roman", fontSize=9.5, leading=11, spaceAfter=6, alignment=4)
    heading = ParagraphStyle("heading", fontName="Times-Bold", fontSize=11.5, leading=14, spaceAfter=6)
    story: list[Any] = [
        NextPageTemplate("later"),
        Paragraph("Wavefront Scheduling for Matrix Kernels", styles["Title"]),
        Paragraph("Abstract. " + "We study what spans the page. " * 8, body),
        FrameBreak(),
    ]
    number = 0
    for section in range(1, sections + 1):
        story.append(Paragraph(f"{section} Part number {section}", heading))
        for _ in range(paragraphs):
            number += 1
            story.append(Paragraph(f"Begin {number}. {SENTENCE * 4}End {number}.", body))
        if section == 2:
            rows = [["Instruction", "Passes"], ["v_add_f32", "4"], ["ds_read_b128", "12"]]
            story.append(Table(rows, colWidths=[110, 60]))
        if section == 3:
            code = "__global__ void k(float* a) {\n  for (int i = 0; i < 8; ++i) {\n    a[i] += 1;\n  }\n}"
            story.append(Preformatted(code, styles["Code"]))
    document.build(story)
    return buffer.getvalue()


def two_columns_row_by_row(left: Sequence[str], right: Sequence[str]) -> bytes:
    """A page whose file stores the two columns interleaved, as some converters do."""
    buffer = io.BytesIO()
    canvas = _canvas(buffer)
    canvas.setFont("Times-Roman", 10)
    for row, (one, other) in enumerate(zip(left, right, strict=True)):
        canvas.drawString(60, 700 - 12 * row, one)
        canvas.drawString(320, 700 - 12 * row, other)
    canvas.save()
    return buffer.getvalue()


def manual(instructions: int = 12, *, title: str = "ISA Manual") -> bytes:
    """A manual: chapters, and two instructions to a page, each with outline entry, table and code."""
    buffer = io.BytesIO()
    canvas = _canvas(buffer)
    canvas.setTitle(title)
    for number in range(instructions):
        if number % 2 == 0:
            if number:
                canvas.showPage()
            canvas.setFont("Helvetica", 8)
            canvas.drawString(72, 765, f"{title}, revision 3")
            canvas.drawRightString(540, 30, str(number // 2 + 1))
        if number % 6 == 0:
            canvas.bookmarkPage(f"c{number}")
            canvas.addOutlineEntry(f"Chapter {number // 6 + 1}", f"c{number}", level=0)
        _instruction(canvas, number, 720 - 330 * (number % 2))
    canvas.save()
    return buffer.getvalue()


def _instruction(canvas: Any, number: int, y: float) -> None:
    name = f"v_test_op_{number}_f32"
    canvas.bookmarkHorizontal(f"i{number}", 0, y + 14)
    canvas.addOutlineEntry(name, f"i{number}", level=1)
    canvas.setFont("Helvetica-Bold", 12)
    canvas.drawString(72, y, name)
    canvas.setFont("Helvetica", 10)
    text = (
        f"Computes result {number} of a multipli-",
        "cation of wave-wide rows. The operand is named v_src_",
        f"{number}_lo.",
    )
    for row, line in enumerate(text):
        canvas.drawString(72, y - 20 - 12 * row, line)
    for row, cells in enumerate(
        (("Field", "Bits", "Meaning"), ("OP", "24:17", f"opcode {number}"), ("SRC", "8:0", "source"))
    ):
        for cell, x in zip(cells, (90, 160, 230), strict=True):
            canvas.drawString(x, y - 70 - 16 * row, cell)
    canvas.setFont("Courier", 9)
    for row, line in enumerate(("if (exec) {", f"    d = a * {number};", "}")):
        canvas.drawString(90, y - 130 - 11 * row, line)


def scan(pages: int = 2) -> bytes:
    """Pages that are pictures only."""
    from PIL import Image
    from reportlab.lib.utils import ImageReader

    buffer = io.BytesIO()
    canvas = _canvas(buffer)
    for _ in range(pages):
        canvas.drawImage(ImageReader(Image.new("L", (60, 80), 200)), 0, 0, 612, 792)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def encrypted(raw: bytes, password: str, algorithm: str = "AES-256") -> bytes:
    """The same PDF, to be opened with `password` only."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(raw)))
    writer.encrypt(password, "the owner's", algorithm=algorithm)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()

# SPDX-License-Identifier: Apache-2.0
"""SVG by hand: boxes, arrows, text, and sequences of messages."""
from xml.sax.saxutils import escape

LINE = 17  # between lines of text
PLAIN, BLUE, GREEN, AMBER, GREY = "#ffffff", "#dbe9fb", "#dcf1df", "#fcefcf", "#eeeeee"


class Canvas:
    def __init__(self, title, width, height):
        self.title, self.width, self.height, self.parts = title, width, height, []

    def text(self, x, y, words, anchor="middle", bold=False, size=13):
        """Lines of text, the first at y."""
        for number, line in enumerate(words.split("\n")):
            weight = ' font-weight="bold"' if bold else ""
            self.parts.append(f'<text x="{x}" y="{y + number * LINE}" text-anchor="{anchor}" font-size="{size}"{weight}>{escape(line)}</text>')

    def box(self, x, y, width, height, words, fill=PLAIN, bold=False, dashed=False):
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{fill}" stroke="#555"{dash}/>')
        lines = words.count("\n")
        self.text(x + width / 2, y + height / 2 + 4.5 - lines * LINE / 2, words, bold=bold)

    def line(self, x1, y1, x2, y2, arrow=True, dashed=False, color="#333"):
        end = ' marker-end="url(#arrow)"' if arrow else ""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{color}" stroke-width="1.3"{dash}{end}/>')

    def svg(self):
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
            ' font-family="DejaVu Sans, Verdana, Arial, sans-serif" fill="#222">',
            "<!-- SPDX-License-Identifier: Apache-2.0. Written by scripts/drawings. -->",
            f"<title>{escape(self.title)}</title>",
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0 L8 4 L0 8 z" fill="#333"/></marker></defs>',
            f'<rect width="{self.width}" height="{self.height}" fill="#fff"/>', *self.parts, "</svg>", ""])


def sequence(title, actors, steps, apart=230):
    """actors: names, left to right. A step is (from, to, words), with "lost" behind it for what does not arrive; or
    (actor, words) for what an actor does; or words alone, which hold for all."""
    left, top = 100, 62
    width = 2 * left + apart * (len(actors) - 1)
    rows, y = [], top + 24
    for step in steps:
        words = step if isinstance(step, str) else step[2] if len(step) > 2 else step[1]
        lines = words.count("\n") + 1
        rows.append((y, lines, step))
        y += LINE * lines + (27 if isinstance(step, tuple) and len(step) > 2 else 24)
    canvas = Canvas(title, width, y + 6)
    at = [left + apart * number for number in range(len(actors))]
    for x, name in zip(at, actors):
        canvas.line(x, top - 8, x, y, arrow=False, color="#999")
        canvas.box(x - 95, 12, 190, 42, name, BLUE, bold=True)
    for y, lines, step in rows:
        if isinstance(step, str):
            canvas.box(12, y - 10, width - 24, LINE * lines + 8, step, GREY)
        elif len(step) == 2:
            x = at[step[0]]
            wide = 7.3 * max(map(len, step[1].split("\n"))) + 16
            begin = min(max(4, x - wide / 2), width - wide - 4)
            canvas.box(round(begin), y - 10, round(wide), LINE * lines + 8, step[1], AMBER)
        else:
            begin, end = at[step[0]], at[step[1]]
            way = 1 if end > begin else -1
            canvas.text((begin + end) / 2, y + 2, step[2])
            below = y + LINE * lines - 6
            lost = len(step) > 3
            canvas.line(begin, below, (begin + end) / 2 + way * 40 if lost else end - way * 2, below, dashed=lost)
            if lost:
                canvas.text((begin + end) / 2 + way * 55, below + 5, "✕", bold=True)
    return canvas.svg()

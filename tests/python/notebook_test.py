"""docs/notebook.ipynb: its cells run in order, and print what stands below them.

SYNCLINE_UPDATE_GOLDEN=1 writes that anew; notebook_test.py --picture FILE draws the notebook with
its figures by a browser.
"""

import ast
import contextlib
import html
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest

import syncline
from answers_test import WellFormed

NOTEBOOK = pathlib.Path("docs/notebook.ipynb")


def shown(source, names):
    """Runs a cell as a notebook does: what it printed, and its last expression's value."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return printed.getvalue(), value


def outputs_of(printed, value, count):
    outputs = []
    if printed:
        outputs.append({"name": "stdout", "output_type": "stream",
                        "text": printed.splitlines(keepends=True)})
    if value is not None:
        outputs.append({"data": {"text/plain": [repr(value)]}, "execution_count": count,
                        "metadata": {}, "output_type": "execute_result"})
    return outputs


class Notebook(unittest.TestCase):
    maxDiff = None

    def test_its_cells_print_what_stands_below_them(self):
        notebook = json.loads(NOTEBOOK.read_text())
        names, count, figures = {}, 0, 0
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            count += 1
            printed, value = shown("".join(cell["source"]), names)
            outputs = outputs_of(printed, value, count)
            if isinstance(value, syncline.Answer):
                page = WellFormed()
                page.feed(value._repr_html_())
                figures += len(page.frames)
            if "SYNCLINE_UPDATE_GOLDEN" in os.environ:
                cell["outputs"], cell["execution_count"] = outputs, count
            self.assertEqual(cell["outputs"], outputs)
        self.assertEqual((count, figures), (6, 1))
        if "SYNCLINE_UPDATE_GOLDEN" in os.environ:
            NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


STYLE = """body{font:15px/1.5 sans-serif;max-width:1000px;margin:16px auto;color:#1a1a1a}
pre{margin:0;padding:8px;font-size:13px;white-space:pre-wrap}
.code{background:#f4f5f7;border:1px solid #ddd;margin-top:12px}"""


def drawn():
    """A page as a notebook shows it, as far as this one has need of it."""
    parts, names = [f"<style>{STYLE}</style>"], {}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            for line in source.splitlines():
                tag = "h2" if line.startswith("# ") else "p"
                if not line.startswith("!"):
                    parts.append(f"<{tag}>{html.escape(line.removeprefix('# '))}</{tag}>")
            continue
        parts.append(f'<div class="code"><pre>{html.escape(source)}</pre></div>')
        printed, value = shown(source, names)
        parts.append(f"<pre>{html.escape(printed)}</pre>")
        parts.append(value._repr_html_() if value is not None else "")
    return "<!DOCTYPE html><meta charset=utf-8>" + "\n".join(parts)


def draw(picture):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--hide-scrollbars"):
        options.add_argument(word)
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "notebook.html")
        page.write_text(drawn())
        driver.get(page.as_uri())
        for high in ("900", "document.body.scrollHeight + 32"):  # at that width
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                "width": 1060, "height": driver.execute_script(f"return {high}"),
                "deviceScaleFactor": 1, "mobile": False})
        driver.save_screenshot(picture)
    driver.quit()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--picture"]:
        draw(sys.argv[2])
    else:
        unittest.main()

#!/usr/bin/env python3
"""The pages of --html in a real browser: that they load without an error, show what the JSON says,
and that hover, zoom and links work.

  pages.py SYNCLINE SOURCES FOLDER [--shots]

Pages go into FOLDER, with --shots also pictures of them, light and dark, wide and narrow. Exit 0:
all is well; 77: there is no browser here; 1: a fault, which is printed.
"""

import json
import pathlib
import subprocess
import sys
import time

kNoBrowser = 77

try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
except ImportError:
    print("python3-selenium is not installed")
    sys.exit(kNoBrowser)


def browser():
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--hide-scrollbars", "--window-size=1280,900"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    try:
        return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    except WebDriverException as error:
        print(f"no browser: {error.msg}")
        sys.exit(kNoBrowser)


def big_scenario(folder):
    """200 strategies at 50 sweep points."""
    workload = {"name": "big", "batch": 32, "forward_ms": 20,
                "tensors": [{"name": f"layer{i}.weight", "shape": [256, 256], "backward_us": 500}
                            for i in range(40)]}
    cluster = {"name": "net", "nodes": 4, "gpus_per_node": 1,
               "inter": {"latency_us": 20, "bandwidth_gbps": 10}}
    strategies = [{"name": f"at most {0.05 * (i + 1):.2f} MB", "fusion":
                   {"rule": "size", "size_mb": round(0.05 * (i + 1), 2)}} for i in range(200)]
    path = folder / "big.json"
    path.write_text(json.dumps({
        "name": "big", "workload": workload, "cluster": cluster, "strategies": strategies,
        "sweep": {"cluster.inter.bandwidth_gbps": [round(1.15 ** i, 4) for i in range(50)]}}))
    return str(path)


class Pages:
    def __init__(self, syncline, sources, folder):
        self.syncline = syncline
        self.sources = pathlib.Path(sources)
        self.folder = pathlib.Path(folder)
        self.driver = browser()
        self.answers = {}

    def make(self, name, *words):
        """Runs the program with --html; remembers its JSON."""
        page = self.folder / f"{name}.html"
        ran = subprocess.run([self.syncline, *words, "--format", "json", "--html", str(page)],
                             cwd=self.sources, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, f"{words}: {ran.stderr}"
        self.answers[name] = json.loads(ran.stdout)
        assert page.stat().st_size < 2_000_000, f"{name}: {page.stat().st_size} bytes"
        return page

    def load(self, page):
        begin = time.monotonic()
        self.driver.get(page.as_uri())
        print(f"{page.name}: {page.stat().st_size} bytes, loaded in "
              f"{time.monotonic() - begin:.2f} s")
        faults = [entry for entry in self.driver.get_log("browser")]
        assert not faults, f"{page.name}: {faults}"
        self.check_nothing_is_cut(page.name)

    def check_nothing_is_cut(self, name):
        """Wide and narrow: every text of a figure lies inside it, and only figures and tables
        scroll sideways."""
        for width in (1280, 400):
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
            cut, wide = self.run("""
                const cut = [];
                for (const svg of document.querySelectorAll('svg.chart')) {
                  const room = svg.getBoundingClientRect();
                  for (const text of svg.querySelectorAll('text')) {
                    const box = text.getBoundingClientRect();
                    if (box.width > 0 && (box.left < room.left - 1 || box.right > room.right + 1 ||
                        box.top < room.top - 1 || box.bottom > room.bottom + 1)) {
                      cut.push(text.textContent);
                    }
                  }
                }
                return [cut, document.documentElement.scrollWidth];""")
            assert not cut, f"{name}, {width} wide: cut {cut}"
            assert wide <= width, f"{name}: {wide} wide on a screen of {width}"
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def points(self, figure):
        """{series name: [[x, y], ...]} as the figure has them."""
        return self.run("""
            const all = {};
            for (const group of document.querySelectorAll(`#${arguments[0]} .series`)) {
              all[group.dataset.name] =
                  group.dataset.points.split(' ').map((p) => p.split(',').map(Number));
            }
            return all;""", figure)

    def boxes(self, figure):
        """[[lane, from, to]], a lane by its place on the page."""
        return self.run("""
            return [...document.querySelectorAll(`#${arguments[0]} .box`)].map((box) =>
                [Math.floor(Number(box.getAttribute('y')) / 22), Number(box.dataset.from),
                 Number(box.dataset.to)]);""", figure)

    def embedded(self):
        return json.loads(self.run("return document.querySelector('script.data').textContent"))

    def check_run(self):
        page = self.make("run", "run", "scenarios/first.json")
        self.load(page)
        answer = self.answers["run"]
        assert self.embedded() == answer, "the page's data are not the answer's"
        point = answer["rows"][0]["sweep"]
        rows = sorted((row for row in answer["rows"] if row["sweep"] == point),
                      key=lambda row: row["step_time_s"])
        ends = {}
        for lane, _, end in self.boxes("s-bars"):
            ends[lane] = max(ends.get(lane, 0), end)
        for lane, row in enumerate(rows):
            assert abs(ends[lane] - row["step_time_s"]) < 1e-12, (lane, row)
        ends = self.run("""
            return [...document.querySelectorAll('#s-bars .end')].map((end) =>
                [Number(end.dataset.low), Number(end.dataset.high)]);""")
        assert ends == [[row["step_time_low_s"], row["step_time_high_s"]] for row in rows], ends
        star = f"\u2605 {rows[0]['strategy']}"
        marked = self.run("""
            return [document.querySelector('#s-bars .best').textContent,
                    [...document.querySelectorAll('tr.best td')].map((cell) => cell.textContent)
                        .find((text) => text.startsWith('\u2605'))];""")
        assert marked == [star, star], marked
        for figure in self.run("return [...document.querySelectorAll('section')].map(s => s.id)"):
            if not figure.startswith("s-curve"):
                continue
            drawn = sorted(y for points in self.points(figure).values() for _, y in points)
            known = {row["step_time_s"] for row in answer["rows"]}
            assert drawn and set(drawn) <= known, figure

    def check_hover(self):
        box = self.driver.find_element(By.CSS_SELECTOR, "#s-bars .box")
        self.run("arguments[0].scrollIntoView({block: 'center'})", box)
        ActionChains(self.driver).move_to_element(box).perform()
        tip = self.driver.find_element(By.ID, "tip")
        assert tip.is_displayed(), "nothing is said of the bar under the pointer"
        assert tip.text == box.get_dom_attribute("data-name"), tip.text

    def check_zoom(self):
        section = self.driver.find_element(By.ID, "s-gantt")
        plot = section.find_element(By.CSS_SELECTOR, ".plot")
        self.run("arguments[0].scrollIntoView({block: 'center'})", plot)
        whole = plot.get_dom_attribute("viewBox")
        below = section.find_element(By.CSS_SELECTOR, ".below")
        ticks = self.run("return arguments[0].textContent", below)
        section.find_element(By.CSS_SELECTOR, ".zoom .in").click()
        near = plot.get_dom_attribute("viewBox")
        assert float(near.split()[2]) * 2 == float(whole.split()[2]), (whole, near)
        assert self.run("return arguments[0].textContent", below) != ticks, "the axis stays"
        actions = ActionChains(self.driver)
        actions.move_to_element_with_offset(plot, -100, 0).click_and_hold()
        actions.move_by_offset(60, 0).move_by_offset(60, 0).release().perform()
        dragged = plot.get_dom_attribute("viewBox")
        assert float(dragged.split()[2]) < float(near.split()[2]) / 2, (near, dragged)
        section.find_element(By.CSS_SELECTOR, ".zoom .all").click()
        assert float(plot.get_dom_attribute("viewBox").split()[2]) == float(whole.split()[2])
        assert self.run("return arguments[0].textContent", below) == ticks, "other ticks than before"

    def check_link(self):
        link = self.driver.find_element(By.CSS_SELECTOR, "#s-gantt a[href]")
        self.run("arguments[0].querySelector('rect').dispatchEvent("
                 "new MouseEvent('click', {bubbles: true, cancelable: true}))", link)
        target = link.get_dom_attribute("href")
        row = self.driver.find_element(By.ID, target.split("#")[1])
        assert row.is_displayed(), "the bucket's line stays folded"

    def check_tune(self):
        self.load(self.make("tune", "tune", "scenarios/tune_resnet50.json", "--budget", "60"))
        answer = self.answers["tune"]
        curve = self.points("s-size")["the best's other knobs fixed"]
        assert curve == [[p["bytes"], p["step_time_s"]] for p in answer["curve"]]
        self.load(self.make("tune", "tune", "scenarios/resnet50_ddp.json", "--budget", "60"))
        own = self.points("s-size")["DDP's own, over bucket_cap_mb"]
        assert own == [[p["bytes"], p["step_time_s"]] for p in self.answers["tune"]["ddp_curve"]]

    def check_calibrate(self, log):
        self.load(self.make("calibrate", "calibrate", "logs", log))
        rows = self.answers["calibrate"]["fitted"][0]["rows"]
        drawn = sorted(p for points in self.points("s-time").values() for p in points)
        wanted = sorted([row["bytes"], row[key]] for row in rows
                        for key in ("measured_s", "predicted_s"))
        assert drawn == wanted, "times"
        dots = sorted(p for points in self.points("s-residuals").values() for p in points)
        wanted = sorted([row["bytes"], row["error_percent"]] for row in rows)
        assert len(dots) == len(wanted)
        for got, want in zip(dots, wanted):
            assert abs(got[1] - want[1]) < 1e-9, "errors"

    def check_others(self):
        self.load(self.make("explain", "explain", "scenarios/first.json"))
        self.load(self.make("fidelity", "fidelity", "--set", "documents"))
        for page in self.answers:
            assert self.answers[page]["verb"] == page

    def check_long_names(self):
        """Names of all lengths, a strategy far slower than the others, and wide letters."""
        scenario = json.loads((self.sources / "scenarios/first.json").read_text())
        for key in ("workload", "cluster"):
            if isinstance(scenario[key], str):
                scenario[key] = str(self.sources / "scenarios" / scenario[key])
        names = ["W" * 60, "a strategy whose name tells all of its knobs, one after the other, and "
                 "goes on until nobody reads it any more", "one"]
        scenario["strategies"] += [{"name": name, "fusion": {"rule": "size", "size_mb": i + 1}}
                                   for i, name in enumerate(names)]
        path = self.folder / "long.json"
        path.write_text(json.dumps(scenario))
        self.load(self.make("long", "run", str(path)))
        text = "".join(self.run("""
            return [...document.querySelectorAll('#s-bars text')].map(
                (text) => text.textContent);"""))
        for name in names:
            assert name.replace(" ", "") in text.replace(" ", ""), name

    def check_big(self):
        """Drawn, hovered over and zoomed: what it takes is printed."""
        self.load(self.make("big", "run", big_scenario(self.folder)))
        assert self.embedded()["left_out"]["rows"] > 0
        taken = self.run("""
            const plot = document.querySelector('#s-curve-0 .plot');
            const box = plot.getBoundingClientRect();
            const begin = performance.now();
            for (let i = 0; i < 50; ++i) {
              plot.dispatchEvent(new PointerEvent('pointermove', {bubbles: true,
                  clientX: box.left + box.width * i / 50, clientY: box.top + box.height / 2}));
            }
            const moved = performance.now();
            const zoom = document.querySelector('#s-curve-0 .zoom .in');
            for (let i = 0; i < 10; ++i) zoom.click();
            plot.getBoundingClientRect();
            return [(moved - begin) / 50, (performance.now() - moved) / 10];""")
        print(f"200 strategies at 50 points: {taken[0]:.2f} ms a move of the pointer, "
              f"{taken[1]:.2f} ms a zoom")

    def shots(self):
        for page in sorted(self.folder.glob("*.html")):
            for theme in ("light", "dark"):
                for width in (1280, 400):
                    self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
                        "features": [{"name": "prefers-color-scheme", "value": theme}]})
                    self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                        "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
                    self.driver.get(page.as_uri())
                    high = min(4000, self.run("return document.body.scrollHeight"))
                    self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                        "width": width, "height": high, "deviceScaleFactor": 1, "mobile": False})
                    self.driver.save_screenshot(
                        str(page.with_name(f"{page.stem}-{theme}-{width}.png")))


def main():
    syncline, sources, folder = sys.argv[1:4]
    pages = Pages(syncline, sources, folder)
    try:
        pages.check_run()
        pages.check_hover()
        pages.check_zoom()
        pages.check_link()
        pages.check_tune()
        log = sorted((pathlib.Path(sources) / "scenarios/measured/nccl-tests").rglob("*.txt"))[0]
        pages.check_calibrate(str(log))
        pages.check_others()
        pages.check_long_names()
        pages.check_big()
        if "--shots" in sys.argv:
            pages.shots()
    except AssertionError as fault:
        print(f"fault: {fault!r}")
        return 1
    finally:
        pages.driver.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Times of several ways to do the same, taken in turns.

Each candidate is captured as a CUDA graph of several calls over rotating data, so that launch cost
and a warm L2 cache stay out of the kernel's time; what cannot be captured is timed call by call,
and the row says so. Host time of eager calls is measured apart.
"""
import math
import time

import torch

SECONDS = 0.3  # for each candidate
REPEATS = 50
WARM = 5
GRAPH_SECONDS = 1e-3  # least length of one captured graph
SHORT_NODES = 50      # at least, where a call takes less than 20 us


class Candidate:
    def __init__(self, name, call, note=""):
        """`call(i)` does the work once on data set i."""
        self.name, self.call, self.note = name, call, note
        self.calls = 1
        self.graph = None
        self.times = []
        self.eager = None

    def prepare(self, sets):
        for i in range(max(WARM, sets)):
            self.call(i % sets)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for i in range(20):
            self.call(i % sets)
        torch.cuda.synchronize()
        self.eager = (time.perf_counter() - begin) / 20
        self.calls = max(sets, min(200, math.ceil(GRAPH_SECONDS / max(self.eager, 1e-6))))
        if self.eager < 20e-6:
            self.calls = max(self.calls, SHORT_NODES)
        self.calls = sets * math.ceil(self.calls / sets)
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for i in range(self.calls):
                    self.call(i % sets)
            graph.replay()
            torch.cuda.synchronize()
            self.graph = graph
        except Exception as error:  # a peer that waits for the host, say
            torch.cuda.synchronize()
            self._say("timed call by call, for it cannot be captured: " + first_line(error))
        self._sets = sets

    def _say(self, sentence):
        self.note = (self.note + "; " if self.note else "") + sentence

    def run(self):
        if self.graph is not None:
            self.graph.replay()
        else:
            for i in range(self.calls):
                self.call(i % self._sets)

    def time_once(self):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        self.run()
        end.record()
        return begin, end


def first_line(error):
    text = str(error).strip()
    return "%s: %s" % (type(error).__name__, text.splitlines()[0][:160] if text else "no text")


def in_turns(ours, peers, sets):
    """Gives (ours' times, ours' second series, [(name, times or None, note)], eager seconds)."""
    ours.prepare(sets)
    running, answers = [], {}
    for peer in peers:
        try:
            peer.prepare(sets)
            running.append(peer)
        except Exception as error:
            torch.cuda.synchronize()
            answers[peer.name] = (peer.name, None, "did not run: " + first_line(error))
    order = [ours] + [x for peer in running for x in (peer, ours)] + ([] if running else [ours])
    series = [[] for _ in order]
    begin = time.perf_counter()
    repeats = 0
    while repeats < 5 or (repeats < REPEATS and time.perf_counter() - begin < SECONDS * len(order)):
        events = [candidate.time_once() for candidate in order]
        torch.cuda.synchronize()
        for times, candidate, (first, last) in zip(series, order, events):
            times.append(1e-3 * first.elapsed_time(last) / candidate.calls)
        repeats += 1
    for number, peer in enumerate(running):
        answers[peer.name] = (peer.name, series[1 + 2 * number], peer.note)
    return series[0], series[2 if running else 1], [answers[p.name] for p in peers], ours.eager


def seconds_of(call, sets):
    """The median of one candidate alone: for ceilings."""
    import statistics
    first, second, _, _ = in_turns(Candidate("", call), [], sets)
    return statistics.median(first + second)

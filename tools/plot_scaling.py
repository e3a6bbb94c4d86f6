#!/usr/bin/env python3
"""Plots what `h3render bench scaling` measured: time, speed-up and efficiency over ranks, exposed communication, and the
stages of a render.

    tools/plot_scaling.py scaling.json [--output FOLDER] [--evaluations 24] [--format png]

Speed-up and efficiency count from the smallest number of ranks on which a clip was measured, which is the smallest that
holds it. Stages add up `evaluations` steps of the clip, its text and its decoding. Needs matplotlib.
"""
import argparse
import collections
import json
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plot


def by_rows(points, kind):
    """Points of one kind in the order of ranks, by rows."""
    groups = collections.defaultdict(list)
    for point in points:
        if point["kind"] == kind:
            groups[point["rows"]].append(point)
    return {rows: sorted(group, key=lambda p: p["ranks"]) for rows, group in sorted(groups.items())}


def draw_time(axes, strong):
    for rows, group in strong.items():
        ranks = [p["ranks"] for p in group]
        times = [p["median_seconds"] for p in group]
        bars = [[p["median_seconds"] - p["least_seconds"] for p in group],
                [p["most_seconds"] - p["median_seconds"] for p in group]]
        line = axes.errorbar(ranks, times, yerr=bars, marker="o", capsize=3, label=f"{rows} rows")
        axes.plot(ranks, [times[0] * ranks[0] / r for r in ranks], linestyle=":", color=line[0].get_color())
    axes.set(xscale="log", yscale="log", xlabel="ranks", ylabel="seconds a step", title="Strong scaling (dotted: ideal)")


def draw_speed_up(axes, strong):
    most = 1
    for rows, group in strong.items():
        base = group[0]
        ranks = [p["ranks"] for p in group]
        most = max(most, *ranks)
        axes.plot(ranks, [base["ranks"] * base["median_seconds"] / p["median_seconds"] for p in group], marker="o",
                  label=f"{rows} rows")
    axes.plot([1, most], [1, most], linestyle=":", color="gray", label="ideal")
    axes.set(xlabel="ranks", ylabel="speed-up", title="Speed-up")


def draw_efficiency(axes, strong, points):
    for rows, group in strong.items():
        base = group[0]["ranks"] * group[0]["median_seconds"]
        axes.plot([p["ranks"] for p in group], [100 * base / (p["ranks"] * p["median_seconds"]) for p in group],
                  marker="o", label=f"{rows} rows")
    first = min((g[0] for g in strong.values()), key=lambda p: (p["ranks"], p["rows"]), default=None)
    weak = sorted((p for p in points if p["kind"] == "weak"), key=lambda p: p["ranks"])
    if first and weak:
        rate = first["flops"] / first["median_seconds"] / first["ranks"]
        axes.plot([p["ranks"] for p in weak],
                  [100 * p["flops"] / p["median_seconds"] / p["ranks"] / rate for p in weak], marker="s",
                  linestyle="--", label="equal work a rank")
    axes.axhline(100, linestyle=":", color="gray")
    axes.set(xlabel="ranks", ylabel="%", title="Efficiency")
    axes.set_ylim(0, 115)


def draw_exposed(axes, strong):
    for rows, group in strong.items():
        axes.plot([p["ranks"] for p in group], [100 * p["exposed_seconds"] / p["median_seconds"] for p in group],
                  marker="o", label=f"{rows} rows")
    axes.set(xlabel="ranks", ylabel="% of a step", title="Exposed communication")


def draw_stages(axes, points, rows, evaluations):
    ranks = sorted({p["ranks"] for p in points if p["kind"] == "strong" and p["rows"] == rows})
    found = {(p["kind"], p["ranks"]): p["median_seconds"] for p in points
             if p["kind"] in ("text", "decode") or (p["kind"] == "strong" and p["rows"] == rows)}
    bottom = [0.0] * len(ranks)
    for kind, name, times in (("text", "text", 1), ("strong", f"{evaluations} steps of {rows} rows", evaluations),
                              ("decode", "decoding", 1)):
        heights = [times * found.get((kind, r), 0) for r in ranks]
        if any(heights):
            axes.bar([str(r) for r in ranks], heights, bottom=bottom, label=name)
        bottom = [b + h for b, h in zip(bottom, heights)]
    axes.set(xlabel="ranks", ylabel="seconds", title="Stages of a render")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=pathlib.Path, help="JSON file of bench scaling")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."), help="folder for the plots")
    parser.add_argument("--evaluations", type=int, default=24, help="steps of the render whose stages are drawn")
    parser.add_argument("--format", default="png", help="png, svg, pdf")
    options = parser.parse_args()
    record = json.loads(options.record.read_text())
    points = record["points"]
    strong = by_rows(points, "strong")
    if not strong:
        parser.error(f"{options.record} holds no steps of one clip on all ranks")
    options.output.mkdir(parents=True, exist_ok=True)
    drawings = {"time": lambda axes: draw_time(axes, strong), "speed_up": lambda axes: draw_speed_up(axes, strong),
                "efficiency": lambda axes: draw_efficiency(axes, strong, points),
                "exposed": lambda axes: draw_exposed(axes, strong),
                "stages": lambda axes: draw_stages(axes, points, max(strong), options.evaluations)}
    for name, draw in drawings.items():
        figure, axes = plot.subplots(figsize=(6, 4.5), layout="constrained")
        draw(axes)
        if name != "stages":
            ranks = sorted({p["ranks"] for p in points})
            axes.set_xticks(ranks, [str(r) for r in ranks])
            axes.minorticks_off()
        axes.legend()
        figure.suptitle(f"{record['machine']}, {record['precision']}, {record['model']}", fontsize="small")
        file = options.output / f"scaling_{name}.{options.format}"
        figure.savefig(file, dpi=150)
        plot.close(figure)
        print(file)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares a render with the reference pipeline (PyTorch and diffusers, on the CPU), for developers.

    tools/parity.py SCENE --model DIR [--ranks N] [--program FILE] [--keep DIR] [--json] [KEY=VALUE ...]

SCENE is a scene file with one scene, KEY=VALUE overrides its keys as for `h3render render`. The program renders it in
float32 (--precision f32 --vae-profile F --device cpu) and dumps text states, rows of every step, frames and samples;
diffusers' modular pipeline then renders the same request from the same folder, and the distances are printed: text
states and rows as largest difference and relative L2, frames as PSNR, samples as SNR. --min-psnr and --min-snr turn
the result into an exit code (1: further apart).

Needs, in any Python 3.10 or newer (a virtual environment will do; the CUDA libraries that the wheel of torch brings
are large and are not used):

    pip install torch torchvision diffusers==0.42.1 transformers==5.24.0 accelerate safetensors numpy pillow av

Only what the reference pipeline has can be compared: scenes from text, keyframes or references, the Euler sampler,
diffusers' noise and layout, pixels rounded. The reference reads pictures with Pillow, clips and sounds with PyAV. Two
of its constants are set for small models: the shortest duration of 5 s is lifted, and the layer whose text states are
used (50) is taken from the folder's modular_model_index.json where that names one. The model must be a folder of the
diffusers layout; any other (original layout, synthetic:SEED:DIR) is written as one first with `h3render make-model`.
"""
import argparse
import importlib.metadata
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEEDS = {"torch": None, "torchvision": None, "diffusers": "0.42.1", "transformers": "5.24.0", "accelerate": None,
         "safetensors": None, "numpy": None, "pillow": None, "av": None}


def stop(message):
    sys.exit(f"parity.py: {message}")


def check_needs():
    """Says everything that is missing in one message; another version than the one tested is only mentioned."""
    missing, other = [], []
    for package, tested in NEEDS.items():
        try:
            found = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            missing.append(package if tested is None else f"{package}=={tested}")
            continue
        if tested and found != tested:
            other.append(f"{package} {found} (tested with {tested})")
    if missing:
        stop("needs packages that this Python does not have:\n"
             f"  {sys.executable} -m pip install {' '.join(missing)}")
    try:
        import torch  # noqa: F401
        from diffusers.modular_pipelines.minimax_h3 import modular_pipeline  # noqa: F401
    except ImportError as error:
        stop(f"the reference cannot be imported: {error}")
    if other:
        print("parity.py: " + ", ".join(other), file=sys.stderr)


def run_program(words):
    """Runs the program; its own messages are shown, and its errors end this script."""
    result = subprocess.run([str(word) for word in words], stdout=sys.stderr)
    if result.returncode:
        stop(f"{words[0]} ended with exit code {result.returncode}")


def render(options, model, folder):
    """Renders and dumps the scene. Returns (its manifest, its tensors)."""
    from safetensors.numpy import load_file
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        os.environ.setdefault(name, "1")
    launcher = [] if options.ranks == 1 else ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", options.ranks]
    dump = folder / "program.safetensors"
    run_program(launcher + [options.program, "render", options.scene, "--model", model, "--output", folder,
                            "--device", "cpu", "--precision", "f32", "--vae-profile", "F", "--existing", "overwrite",
                            "--resume", "restart", "--checkpoint-steps", 0, "--quiet", "--dump", dump,
                            "output.mp4=false", "output.sheet=false"] + options.overrides)
    manifests = list(folder.glob("*.manifest.json"))
    if len(manifests) != 1:
        stop(f"{folder} holds {len(manifests)} manifests, expected one")
    # Encoded conditions are part of the first rows, where the reference has them too.
    tensors = {name: tensor for name, tensor in load_file(dump).items() if "condition" not in name}
    return json.loads(manifests[0].read_text()), tensors


def check_comparable(scene):
    """The reference pipeline has one sampler, one noise recipe, one layout and one rounding."""
    for key, only in (("sampler", "euler"), ("noise", "diffusers"), ("layout", "diffusers"), ("quantize", "round"),
                      ("reference_size", "full"), ("posterior", "sample42"), ("alpha", "drop")):
        if scene.get(key, only) != only:
            stop(f"{key}={scene[key]}: the reference pipeline has only {only}")
    if scene["frames"] < 22:
        stop(f"frames={scene['frames']}: the reference pipeline decodes no fewer than 22")


def workflow_of(scene):
    if "references" in scene:
        return "ref2va"
    return "fl2va" if "first_frame" in scene or "last_frame" in scene else "t2va"


def accurate_frames(path):
    """The frames of a clip in RGB as h3render has them: chroma interpolated, rounded, the same on every processor."""
    import av
    import numpy as np
    with av.open(path) as container:
        stream, graph = container.streams.video[0], av.filter.Graph()
        graph.link_nodes(graph.add_buffer(template=stream, time_base=stream.time_base),
                         graph.add("scale", "flags=bicubic+accurate_rnd+full_chroma_int+bitexact"),
                         graph.add("format", "rgb24"), graph.add("buffersink")).configure()
        frames = []
        for frame in container.decode(stream):
            graph.push(frame)
            frames.append(graph.pull().to_ndarray())
    return np.stack(frames)


def media_of(scene, accurate_clips):
    """The pictures, clips and sounds of the scene as the reference pipeline's arguments."""
    from diffusers.modular_pipelines import minimax_h3
    from diffusers.utils import load_image
    media = {name: load_image(scene[key]) for key, name in (("first_frame", "image"), ("last_frame", "last_image"))
             if key in scene}
    kinds = {"image": minimax_h3.MiniMaxH3ImageReference, "video": minimax_h3.MiniMaxH3VideoReference,
             "audio": minimax_h3.MiniMaxH3AudioReference}
    references = []
    for reference in scene.get("references", []):
        kind = next(kind for kind in kinds if kind in reference)
        references.append(kinds[kind].from_file(reference[kind]))
        if kind == "video" and accurate_clips:
            references[-1].frames = accurate_frames(reference[kind])
        if not reference.get("soundtrack", True):
            references[-1].audio = references[-1].sample_rate = None
    if references:
        media["references"] = references
    return media


def open_reference(model, workflow):
    """diffusers' pipeline with all components in float32 and the two constants set."""
    import torch
    from diffusers import ModularPipeline
    from diffusers.modular_pipelines.minimax_h3.modular_pipeline import MiniMaxH3ModularPipeline
    from diffusers.utils import logging
    from transformers.utils import logging as transformers_logging
    logging.disable_progress_bar()
    transformers_logging.disable_progress_bar()
    warnings.filterwarnings("ignore", category=FutureWarning)
    index = json.loads((model / "modular_model_index.json").read_text())
    MiniMaxH3ModularPipeline.min_duration = property(lambda self: 0.0)
    if "text_encoder_layer" in index:
        MiniMaxH3ModularPipeline.text_encoder_layer = property(lambda self: index["text_encoder_layer"])
    pipeline = ModularPipeline.from_pretrained(str(model), workflow=workflow)
    # The index of a folder may name a repository; every component comes from the folder itself.
    pipeline.load_components(dtype=torch.float32, pretrained_model_name_or_path=str(model), local_files_only=True)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def set_schedules(pipeline, scene, schedule):
    pipeline.scheduler.set_shift(scene["shift"])
    pipeline.audio_scheduler.set_shift(scene["audio_shift"])
    if "sigmas" not in scene and "audio_sigmas" not in scene:
        return

    # The block asks for a number of points; a scene may give the points themselves.
    def use(scheduler, sigmas):
        take = scheduler.set_timesteps
        scheduler.set_timesteps = lambda count, device=None: take(sigmas=sigmas, device=device)

    use(pipeline.scheduler, schedule["video_sigmas"])
    use(pipeline.audio_scheduler, schedule["audio_sigmas"])


def reference(model, manifest, accurate_clips):
    """The tensors of the program's dump as the reference pipeline makes them."""
    import numpy as np
    import torch
    from diffusers.modular_pipelines.minimax_h3 import denoise
    scene = manifest["scene"]
    tensors, step = {}, 0

    def keep(name, state, past_conditions=False):
        video = state.num_condition_video_rows if past_conditions else 0
        audio = state.num_condition_audio_rows if past_conditions else 0
        tensors[f"rows.{name}.video"] = state.latents[video:].float().numpy().copy()
        tensors[f"rows.{name}.audio"] = state.audio_latents[audio:].float().numpy().copy()

    workflow = workflow_of(scene)
    loop, denoiser = ((denoise.MiniMaxH3Ref2VADenoiseStep, denoise.MiniMaxH3Ref2VALoopDenoiser)
                      if workflow == "ref2va" else (denoise.MiniMaxH3DenoiseStep, denoise.MiniMaxH3LoopDenoiser))

    class RecordingDenoiser(denoiser):
        def __call__(self, components, block_state, i, t):
            if i == 0:
                keep("initial", block_state)
            return super().__call__(components, block_state, i=i, t=t)

    class RecordingUpdate(denoise.MiniMaxH3LoopSchedulerStep):
        def __call__(self, components, block_state, i, t):
            result = super().__call__(components, block_state, i=i, t=t)
            keep(f"step{i + 1}", block_state, past_conditions=True)
            return result

    loop.block_classes = [RecordingDenoiser, RecordingUpdate]
    pipeline = open_reference(model, workflow)
    set_schedules(pipeline, scene, manifest["schedule"])
    state = pipeline(prompt=scene["prompt"], height=scene["height"], width=scene["width"],
                     num_frames=scene["frames"], num_inference_steps=manifest["schedule"]["evaluations"] + 1,
                     generator=torch.Generator().manual_seed(scene["seed"]), output_type="np",
                     **media_of(scene, accurate_clips))
    tensors["text"] = state.get("prompt_embeds")[0].float().numpy()
    tensors["frames"] = np.ascontiguousarray(np.round(np.asarray(state.get("videos")[0]) * 255).astype(np.uint8))
    tensors["pcm"] = state.get("audio")[0].float().numpy()
    return tensors


def distance(ours, theirs):
    """Largest difference and relative L2 of two arrays."""
    import numpy as np
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    return float(np.abs(a - b).max()), float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-300))


def decibel(ratio):
    return math.inf if ratio == 0 else -10 * math.log10(ratio)


def compare(ours, theirs):
    import numpy as np
    if sorted(ours) != sorted(theirs):
        stop(f"different tensors: {sorted(set(ours) ^ set(theirs))}")
    for name in ours:
        if ours[name].shape != theirs[name].shape:
            stop(f"{name}: the program has {ours[name].shape}, the reference {theirs[name].shape}")
    steps = sum(name.startswith("rows.step") and name.endswith(".video") for name in ours)
    rows = ["text"] + [f"rows.{at}.{kind}" for at in ["initial"] + [f"step{k}" for k in range(1, steps + 1)]
                       for kind in ("video", "audio")]
    report = {"tensors": {}}
    for name in rows:
        largest, relative = distance(ours[name], theirs[name])
        report["tensors"][name] = {"largest": largest, "relative_l2": relative,
                                   "equal": ours[name].tobytes() == theirs[name].tobytes()}
    levels = np.abs(ours["frames"].astype(int) - theirs["frames"].astype(int))
    by_frame = [decibel(float((frame.astype(np.float64) ** 2).mean()) / 255**2) for frame in levels]
    report["frames"] = {"psnr": decibel(float((levels.astype(np.float64) ** 2).mean()) / 255**2),
                        "psnr_worst": min(by_frame), "worst": int(np.argmin(by_frame)), "largest": int(levels.max()),
                        "different": float((levels > 0).mean())}
    error = ours["pcm"].astype(np.float64) - theirs["pcm"].astype(np.float64)
    report["pcm"] = {"snr": decibel(float((error**2).sum() / (theirs["pcm"].astype(np.float64) ** 2).sum())),
                     "largest": float(np.abs(error).max())}
    return report


def show(report, manifest):
    scene = manifest["scene"]
    print(f"scene {scene['name']}: {scene['width']}x{scene['height']}, {scene['frames']} frames, seed {scene['seed']}, "
          f"{manifest['schedule']['evaluations']} evaluations\nprompt: {scene['prompt']}")
    print(f"{'':24} {'largest':>12} {'relative L2':>12}")
    for name, d in report["tensors"].items():
        print(f"{name:24} {d['largest']:12.3g} {d['relative_l2']:12.3g}{'  equal bits' if d['equal'] else ''}")
    frames, pcm = report["frames"], report["pcm"]
    print(f"frames: PSNR {frames['psnr']:.2f} dB, worst {frames['psnr_worst']:.2f} dB (frame {frames['worst']}), "
          f"{100 * frames['different']:.4f} % of the values differ, by at most {frames['largest']} of 255")
    print(f"samples: SNR {pcm['snr']:.2f} dB, largest difference {pcm['largest']:.3g}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", help="scene file with one scene")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="overrides of the scene's keys")
    parser.add_argument("--model", required=True, help="model folder")
    parser.add_argument("--program", default=str(ROOT / "build/release/h3render"), help="default: %(default)s")
    parser.add_argument("--ranks", type=int, default=1, help="ranks that render (default 1)")
    parser.add_argument("--threads", type=int, default=0, help="threads of the reference (default: PyTorch's)")
    parser.add_argument("--keep", metavar="DIR", help="leave both sides' tensors in this folder")
    parser.add_argument("--accurate-clips", action="store_true",
                        help="the reference takes clips in the program's conversion to RGB, not in PyAV's quick one")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--min-psnr", type=float, metavar="DB", help="exit code 1 where the frames are further apart")
    parser.add_argument("--min-snr", type=float, metavar="DB", help="exit code 1 where the samples are further apart")
    options = parser.parse_intermixed_args()
    bad = [word for word in options.overrides if "=" not in word]
    if bad:
        parser.error(f"takes one scene; {bad[0]} is no KEY=VALUE")
    return options


def main():
    options = parse_arguments()
    check_needs()
    import torch
    from safetensors.numpy import save_file
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.use_deterministic_algorithms(True)
    if options.threads:
        torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory(prefix="h3render-parity-") as temporary:
        folder = pathlib.Path(options.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        model = pathlib.Path(options.model)
        if not (model / "modular_model_index.json").is_file():
            model = pathlib.Path(temporary) / "model"
            run_program([options.program, "make-model", model, "--model", options.model, "--quiet"])
        manifest, ours = render(options, model, folder)
        check_comparable(manifest["scene"])
        start = time.monotonic()
        theirs = reference(model, manifest, options.accurate_clips)
        print(f"reference: {time.monotonic() - start:.1f} s", file=sys.stderr)
        if options.keep:
            save_file(theirs, folder / "reference.safetensors")
        report = compare(ours, theirs)
    if options.json:
        print(json.dumps({"scene": manifest["scene"], **report}, indent=2))
    else:
        show(report, manifest)
    far = [name for name, found, least in (("frames", report["frames"]["psnr"], options.min_psnr),
                                           ("samples", report["pcm"]["snr"], options.min_snr))
           if least is not None and not found >= least]
    if far:
        print(f"parity.py: further apart than allowed: {', '.join(far)}", file=sys.stderr)
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main())

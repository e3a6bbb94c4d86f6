#!/usr/bin/env python3
"""Compares a transformer of full width and few layers with diffusers' on one GPU, for developers.

    tools/parity_layers.py [--program FILE] [--layers N] [--device cuda] [--keep DIR] [--max-ratio R]

The program writes synthetic weights of a model whose transformer has the released model's width and N layers (everything
else is jobs/nano's), renders a scene of two evaluations in float32 and in bfloat16, and dumps text states and rows.
diffusers' transformer then computes each evaluation from the same files, text states and rows, in both precisions. For
each are printed: largest difference and signal-to-noise ratio of the program's velocities to the reference's of the same
precision, and to float32's beside the reference's own distance of bfloat16 from float32. --max-ratio makes it an exit
code: 1 where the program's bfloat16 is further from float32 than so many times the reference's own distance.

Needs PyTorch with CUDA, diffusers 0.42.1, safetensors and numpy; about 2.5 GB of disk a layer, in --keep or the
temporary folder.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NANO = ROOT / "jobs/nano"
FULL_WIDTH = {"hidden_size": 5376, "num_attention_heads": 56, "attention_head_dim": 128, "ffn_dim": 14336,
              "freq_dim": 256, "time_embed_hidden_dim": 5376, "time_embed_dim": 2688, "rope_freq_dim": 16}
SCENE = {"name": "parity", "prompt": "A red circle moves right.", "width": 512, "height": 288, "frames": 22,
         "evaluations": 2, "seed": 3}


def run(words):
    result = subprocess.run([str(word) for word in words], stdout=sys.stderr)
    if result.returncode:
        sys.exit(f"parity_layers.py: {words[0]} ended with exit code {result.returncode}")


def write_model(folder, program, layers):
    """A model folder with weights, and the scene beside it."""
    config = folder / "config"
    for file in NANO.rglob("*"):
        if file.is_file() and file.suffix != ".safetensors" and not file.name.endswith(".index.json"):
            copy = config / file.relative_to(NANO)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    numbers = json.loads((NANO / "transformer/config.json").read_text())
    numbers.update(FULL_WIDTH, num_layers=layers)
    (config / "transformer/config.json").write_text(json.dumps(numbers, indent=2))
    (folder / "scene.json").write_text(json.dumps(SCENE))
    run([program, "make-model", folder / "model", "--model", f"synthetic:5:{config}", "--quiet"])


def render(folder, program, precision, device):
    """The program's tensors and schedule."""
    from safetensors.torch import load_file
    output = folder / f"render-{precision}"
    dump = folder / f"{precision}.safetensors"
    run([program, "render", folder / "scene.json", "--model", folder / "model", "--output", output, "--device", device,
         "--precision", precision, "--existing", "overwrite", "--resume", "restart", "--checkpoint-steps", 0, "--quiet",
         "--dump", dump, "output.mp4=false", "output.sheet=false"])
    return load_file(dump), json.loads((output / "parity.manifest.json").read_text())["schedule"]


class Reference:
    """diffusers' transformer in one precision."""

    def __init__(self, folder, dtype, device):
        import torch
        from diffusers.models.transformers.transformer_minimax_h3 import MiniMaxH3Transformer3DModel
        self.device = device
        self.dtype = dtype
        self.model = MiniMaxH3Transformer3DModel.from_pretrained(str(folder / "model/transformer"), torch_dtype=dtype,
                                                                 local_files_only=True).to(device).eval()
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

    def velocities(self, text, video, audio, video_time, audio_time):
        import torch
        from diffusers.modular_pipelines.minimax_h3.before_denoise import (MiniMaxH3PrepareLayoutStep,
                                                                           MiniMaxH3SetTimestepsStep)
        height, width = SCENE["height"] // 16, SCENE["width"] // 16
        frames = video.shape[0] // (height // 2 * (width // 2))
        positions, tags, video_rows, audio_rows, text_rows, _, _ = MiniMaxH3PrepareLayoutStep.build_packed_sequence(
            torch.ones(text.shape[0], dtype=torch.long), frames, height, width, audio.shape[0] // 2, (1, 2, 2), 2,
            audio_tag=2, video_tag=0)
        times, classes = MiniMaxH3SetTimestepsStep.build_row_timesteps(
            video_rows, audio_rows, 0, 0, text.shape[0], video_time, audio_time, 1.0, 1.0)
        there = lambda t: t.to(self.device)  # noqa: E731
        with torch.no_grad():
            result = self.model(hidden_states=there(video)[None], audio_hidden_states=there(audio)[None],
                                encoder_hidden_states=there(text)[None].to(self.dtype), timestep=there(times),
                                timestep_indices=there(classes), token_tags=there(tags), position_ids=there(positions),
                                video_indices=there(video_rows), audio_indices=there(audio_rows),
                                text_indices=there(text_rows), return_dict=False)
        return [t[0].float().cpu() for t in result]


def distance(a, b):
    """Largest difference and signal-to-noise ratio in dB."""
    error = (a.double() - b.double())
    noise = float((error ** 2).sum())
    return float(error.abs().max()), math.inf if noise == 0 else 10 * math.log10(float((b.double() ** 2).sum()) / noise)


def both_sides(tensors, schedule, references):
    """Step, medium, the program's velocities and the references' on the same inputs."""
    for step in range(SCENE["evaluations"]):
        before, after = "initial" if step == 0 else f"step{step}", f"step{step + 1}"
        rows = {kind: tensors[f"rows.{before}.{kind}"].float() for kind in ("video", "audio")}
        sigmas = {kind: schedule[f"{kind}_sigmas"][step:step + 2] for kind in rows}
        theirs = {name: reference.velocities(tensors["text"].float(), rows["video"], rows["audio"],
                                             1 - sigmas["video"][0], 1 - sigmas["audio"][0])
                  for name, reference in references.items()}
        for i, (kind, (sigma, following)) in enumerate(sigmas.items()):
            # x' = r x + (1 - r)(x + sigma v) with r = following / sigma
            moved = tensors[f"rows.{after}.{kind}"].double() - rows[kind].double()
            yield step, kind, moved / (sigma - following), {name: media[i] for name, media in theirs.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/h3render"), help="default: %(default)s")
    parser.add_argument("--layers", type=int, default=3, help="blocks of the transformer (default 3)")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="of both sides (default cuda)")
    parser.add_argument("--keep", metavar="DIR", help="leave model and tensors in this folder")
    parser.add_argument("--max-ratio", type=float, metavar="R", help="exit code 1 beyond this ratio")
    options = parser.parse_args()
    import torch
    os.environ["HF_HUB_OFFLINE"] = "1"
    worst = 0
    with tempfile.TemporaryDirectory(prefix="h3render-parity-") as temporary:
        folder = pathlib.Path(options.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        write_model(folder, options.program, options.layers)
        references = {name: Reference(folder, dtype, options.device)
                      for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16))}
        print(f"transformer of width {FULL_WIDTH['hidden_size']}, {options.layers} layers")
        print(f"{'program':8} {'step':4} {'rows':6} {'largest':>10} {'SNR dB':>8} | {'to f32':>10} {'SNR dB':>8} | "
              f"{'bf16-f32':>10} {'SNR dB':>8}")
        for precision in ("f32", "bf16"):
            tensors, schedule = render(folder, options.program, precision, options.device)
            for step, kind, ours, theirs in both_sides(tensors, schedule, references):
                same, exact = distance(ours, theirs[precision]), distance(ours, theirs["f32"])
                own = distance(theirs["bf16"], theirs["f32"])
                print(f"{precision:8} {step + 1:4} {kind:6} {same[0]:10.3g} {same[1]:8.2f} | {exact[0]:10.3g} "
                      f"{exact[1]:8.2f} | {own[0]:10.3g} {own[1]:8.2f}", flush=True)
                worst = max(worst, 10 ** ((own[1] - exact[1]) / 20))
    print(f"the program is at most {worst:.3f} times as far from float32 as the reference's bfloat16")
    return 1 if options.max_ratio is not None and not worst <= options.max_ratio else 0


if __name__ == "__main__":
    sys.exit(main())

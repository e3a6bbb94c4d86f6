#!/usr/bin/env python3
"""The Hopper attention kernel beside cuDNN's (through PyTorch) and, where installed, FlashAttention-3 (PyPI fa3-fwd).

All kernels take turns in one process, several rounds, so that they meet the card in the same state. Per kernel: median
and spread of TFLOP/s, the ratio to cuDNN, SM clock and power while it ran, relative error to float32 on sampled rows.
    tools/attention_bench.py [--rows 38734 74410] [--heads 56 28] [--rounds 3] [--library LIB.so]
Without --library it is built with nvcc from the sources beside this file.
"""
import argparse
import ctypes
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel

HEAD = 128
ROOT = pathlib.Path(__file__).resolve().parent.parent


class Strides(ctypes.Structure):
    _fields_ = [("row", ctypes.c_int64), ("head", ctypes.c_int64)]


class Args(ctypes.Structure):
    """AttentionSm90Args of kernels/attention_sm90.h."""
    _fields_ = ([(name, ctypes.c_void_p) for name in ("q", "k", "v", "o")] +
                [(name, ctypes.c_int) for name in ("rows_q", "rows_k", "heads")] +
                [(name, Strides) for name in ("q_stride", "k_stride", "v_stride", "o_stride")] +
                [("scale", ctypes.c_float)])


def build():
    target = pathlib.Path(tempfile.mkdtemp()) / "libattention_sm90.so"
    subprocess.run(["nvcc", "-std=c++17", "-O3", "--fmad=false", "-shared", "-Xcompiler=-fPIC", f"-I{ROOT}",
                    "-gencode", "arch=compute_90a,code=sm_90a", str(ROOT / "tools/attention_bench.cu"),
                    str(ROOT / "kernels/attention_sm90.cu"), "-o", str(target)], check=True)
    return target


def own_kernel(library):
    def attention(q, k, v, o):
        """Tensors [rows, heads, 128] with any strides between rows and heads."""
        args = Args(q.data_ptr(), k.data_ptr(), v.data_ptr(), o.data_ptr(), q.shape[0], k.shape[0], q.shape[1],
                    *(Strides(x.stride(0), x.stride(1)) for x in (q, k, v, o)), HEAD ** -0.5)
        error = library.h3_attention_sm90_call(ctypes.byref(args),
                                               ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        if error:
            raise RuntimeError(f"h3_attention_sm90: CUDA error {error}")
        return o
    return attention


class Card:
    """Samples SM clock (MHz) and power (W) while the `with` block runs."""

    def __init__(self):
        try:
            import pynvml
            pynvml.nvmlInit()
            self.nvml, self.handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)
        except Exception:
            self.nvml = None

    def __enter__(self):
        self.samples, self.running = [], True
        self.thread = threading.Thread(target=self.sample)
        self.thread.start()
        return self

    def sample(self):
        while self.running and self.nvml:
            self.samples.append((self.nvml.nvmlDeviceGetClockInfo(self.handle, self.nvml.NVML_CLOCK_SM),
                                 self.nvml.nvmlDeviceGetPowerUsage(self.handle) / 1000))
            time.sleep(0.02)

    def __exit__(self, *_):
        self.running = False
        self.thread.join()


def time_runs(run, seconds):
    """Milliseconds of single runs after a warm-up, and (clock, power) samples of their second half."""
    run()
    torch.cuda.synchronize()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    marks[0].record()
    run()
    marks[1].record()
    torch.cuda.synchronize()
    count = max(4, min(40, int(seconds * 1000 / marks[0].elapsed_time(marks[1]))))
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    with Card() as card:
        marks[0].record()
        for mark in marks[1:]:
            run()
            mark.record()
        torch.cuda.synchronize()
    times = [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
    return times[count // 4:], card.samples[len(card.samples) // 2:]


def relative_error(o, q, k, v, rows):
    """Against softmax in float32 over float32 products (TF32 off)."""
    want = torch.stack([((q[rows, h].float() @ k[:, h].float().t()) * HEAD ** -0.5).softmax(-1) @ v[:, h].float()
                        for h in range(min(4, q.shape[1]))], 1)
    got = o[rows, :want.shape[1]].float()
    return float((got - want).norm() / want.norm())


def compare(attention, fa3, rows, heads, rounds, seconds):
    # Fused [rows, heads, 3, 128], as the projection leaves it, for the kernel that takes it; the others get copies.
    fused = torch.randn(rows, heads, 3, HEAD, device="cuda", dtype=torch.bfloat16)
    q, k, v = (fused[:, :, part] for part in range(3))
    copies = [x.contiguous()[None] for x in (q, k, v)]
    o = torch.empty(rows, heads, HEAD, device="cuda", dtype=torch.bfloat16)

    def cudnn():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return functional.scaled_dot_product_attention(*(x.transpose(1, 2) for x in copies)).transpose(1, 2)[0]

    def flash3():
        result = fa3.flash_attn_func(*copies)
        return (result[0] if isinstance(result, tuple) else result)[0]

    kernels = {"cudnn": cudnn, "own": lambda: attention(q, k, v, o),
               "own, packed": lambda: attention(*(x[0] for x in copies), o)}
    if fa3:
        kernels["fa3"] = flash3
    times, samples = {name: [] for name in kernels}, {name: [] for name in kernels}
    for _ in range(rounds):
        for name, run in kernels.items():
            t, s = time_runs(run, seconds)
            times[name] += t
            samples[name] += s
    flops = 4 * rows * rows * heads * HEAD
    base = statistics.median(times["cudnn"])
    sampled = torch.randint(0, rows, (512,), device="cuda")
    print(f"{rows} rows, {heads} heads")
    for name, run in kernels.items():
        rates = sorted(flops / t / 1e9 for t in times[name])
        clock, power = ((statistics.median(x) for x in zip(*samples[name])) if samples[name] else (0, 0))
        error = relative_error(run(), q, k, v, sampled)
        print(f"  {name:12s} {statistics.median(rates):6.1f} TFLOP/s ({rates[0]:.1f} to {rates[-1]:.1f})  "
              f"x {base / statistics.median(times[name]):.3f}  {clock:.0f} MHz {power:.0f} W  error {error:.2e}",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[38734, 74410])
    parser.add_argument("--heads", type=int, nargs="+", default=[56, 28])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="per kernel and round")
    parser.add_argument("--library", type=pathlib.Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    library = ctypes.CDLL(str((options.library or build()).resolve()))
    registers, spilled = ctypes.c_int(), ctypes.c_int()
    library.h3_attention_sm90_resources(ctypes.byref(registers), ctypes.byref(spilled))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}; "
          f"own kernel: {registers.value} registers at launch, {spilled.value} spilled bytes")
    try:
        import fa3_fwd_interface as fa3
    except ImportError:
        fa3 = None
    for rows in options.rows:
        for heads in options.heads:
            compare(own_kernel(library), fa3, rows, heads, options.rounds, options.seconds)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

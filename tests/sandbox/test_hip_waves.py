"""What the 64 lanes of a wave do together, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

LANES = np.arange(64)
both_orders = pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])


def waves(
    device: Any, bodies: list[str], dtype: str = "int32", *, threads: int = 64, reverse: bool = False
) -> Any:
    """What each of `bodies` puts into `r` on each lane; `x` is a number of its own there, `i` the thread."""
    kind = {"int32": "int", "float32": "float", "uint64": "unsigned long long"}[dtype]
    cases = "".join(f"if (blockIdx.x == {number}) {{ {body} }}\n" for number, body in enumerate(bodies))
    source = f"""
    __global__ void kernel({kind}* out) {{
      int i = threadIdx.x;
      {kind} x = ({kind})(3 * i + 5), r = 0;
      {cases}
      out[blockIdx.x * blockDim.x + i] = r;
    }}"""
    out = np.zeros((len(bodies), threads), dtype)
    device.run(source, outputs={"out": out}, grid=(len(bodies), 1, 1), block=(threads, 1, 1), reverse=reverse)
    return out


def wave(device: Any, body: str, dtype: str = "int32", **how: Any) -> Any:
    return waves(device, [body], dtype, **how)[0]


X = 3 * LANES + 5


@pytest.mark.parametrize("dtype", ["int32", "float32", "uint64"])
def test_shuffles_read_the_lane_they_name_within_their_width(device: Any, dtype: str) -> None:
    widths = [64, 32, 16, 4]
    bodies = [
        f"""r = __shfl(x, i * 7 + 1, {width}) + 1000 * __shfl_up(x, 3, {width})
              + 1000000 * (__shfl_down(x, 2, {width}) + __shfl_xor(x, 5, {width}));"""
        for width in widths
    ]
    for width, found in zip(widths, waves(device, bodies, dtype), strict=True):
        base, place = LANES & -width, LANES & (width - 1)
        direct = X[base + (LANES * 7 + 1) % width]
        up = X[np.where(place < 3, LANES, LANES - 3)]
        down = X[np.where(place + 2 >= width, LANES, np.minimum(LANES + 2, 63))]
        crossed = LANES ^ 5
        xor = X[np.where(crossed >= base + width, LANES, crossed)]
        assert (found == (direct + 1000 * up + 1000000 * (down + xor)).astype(dtype)).all(), width


@both_orders
def test_votes_see_every_lane(device: Any, reverse: bool) -> None:
    bodies = [
        "r = __ballot(i % 3 == 1);",
        "r = __any(i == 63) + 10 * __any(i == 64) + 100 * __all(i < 64) + 1000 * __all(i < 63);",
        "r = __activemask();",
    ]
    votes, some, active = waves(device, bodies, "uint64", reverse=reverse)
    assert (votes == sum(1 << int(lane) for lane in LANES if lane % 3 == 1)).all()
    assert (some == 101).all()
    assert (active == 2**64 - 1).all()


@both_orders
def test_a_collective_in_a_branch_has_only_the_lanes_of_the_branch(device: Any, reverse: bool) -> None:
    body = """if (i % 2) r = __ballot(1); else r = __ballot(i < 32);
              r = __ballot(1) == ~0ull ? r : 0;"""
    odd = int("10" * 32, 2)
    expected = np.where(LANES % 2 == 1, odd, odd >> 1 & 0xFFFFFFFF).astype(np.uint64)
    assert (wave(device, body, "uint64", reverse=reverse) == expected).all()


@both_orders
def test_lanes_that_leave_a_loop_earlier_wait_behind_it_for_the_others(device: Any, reverse: bool) -> None:
    body = """int left = 0;
              for (int step = 0; step < i % 4; step++) left += __popcll(__ballot(1));
              r = left * 100 + __popcll(__ballot(1));"""
    sizes = [48, 32, 16]  # lanes with more than 0, 1 and 2 steps
    expected = np.array([sum(sizes[: lane % 4]) for lane in LANES]) * 100 + 64
    assert (wave(device, body, reverse=reverse) == expected).all()


def test_a_partial_last_wave_and_lanes_that_returned_do_not_take_part(device: Any) -> None:
    counts = wave(device, "if (i >= 90) return; r = __popcll(__ballot(1));", threads=100)
    assert (counts[:64] == 64).all()
    assert (counts[64:90] == 26).all()


def test_waves_are_separate(device: Any) -> None:
    out = wave(device, "r = __shfl(x, 0) * 2 + (threadIdx.x / warpSize);", threads=256)
    assert (out == (3 * (np.arange(256) // 64 * 64) + 5) * 2 + np.arange(256) // 64).all()


def test_lane_numbers_and_counts_below_the_lane(device: Any) -> None:
    body = "r = __lane_id() + 100 * __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));"
    assert (wave(device, body) == LANES + 100 * LANES).all()


def test_a_two_dimensional_block_is_cut_into_waves_by_rows(device: Any) -> None:
    source = """__global__ void kernel(int* out) {
      out[threadIdx.y * 16 + threadIdx.x] = __shfl(int(threadIdx.y), 63);
    }"""
    out = np.zeros(128, np.int32)
    device.run(source, outputs={"out": out}, block=(16, 8, 1))
    assert (out == np.repeat([3, 7], 64)).all()


@both_orders
def test_the_first_active_lane_is_read_by_all(device: Any, reverse: bool) -> None:
    body = "if (i >= 9) r = __builtin_amdgcn_readfirstlane(x) + 1000 * __builtin_amdgcn_readlane(x, 40);"
    expected = np.where(LANES >= 9, X[9] + 1000 * X[40], 0)
    assert (wave(device, body, reverse=reverse) == expected).all()


def test_permutes_pull_and_push(device: Any) -> None:
    pulled, pushed = waves(
        device,
        [
            "r = __builtin_amdgcn_ds_bpermute((63 - i) * 4, x);",
            "r = __builtin_amdgcn_ds_permute((i + 5) % 64 * 4, x);",
        ],
    )
    assert (pulled == X[::-1]).all()
    assert (pushed == np.roll(X, 5)).all()


def test_swizzles_permute_as_their_pattern_says(device: Any) -> None:
    exclusive_or_1, lanes_3_2_1_0 = 1 << 10 | 0x1F, 0x8000 | 0x1B
    patterns = [exclusive_or_1, lanes_3_2_1_0]
    swapped, fours = waves(
        device, [f"r = __builtin_amdgcn_ds_swizzle(x, {pattern});" for pattern in patterns]
    )
    assert (swapped == X[LANES ^ 1]).all()
    assert (fours == X[LANES ^ 3]).all()


ROW, IN_ROW = LANES & ~15, LANES & 15
DPP = {
    "quad_perm 1 0 3 2": (0xB1, LANES ^ 1),
    "row_shl 2": (0x102, np.where(IN_ROW + 2 > 15, -1, LANES + 2)),
    "row_shr 1": (0x111, np.where(IN_ROW < 1, -1, LANES - 1)),
    "row_ror 4": (0x124, ROW | (IN_ROW - 4) % 16),
    "wave_shr": (0x138, LANES - 1),
    "row_mirror": (0x140, ROW | 15 - IN_ROW),
    "row_half_mirror": (0x141, LANES ^ 7),
    "row_bcast 15": (0x142, np.where(ROW == 0, -1, ROW - 1)),
    "row_bcast 31": (0x143, np.where(LANES < 32, -1, 31)),
}


def test_dpp_moves_lanes_as_the_instruction_set_defines(device: Any) -> None:
    bodies = [
        f"r = __builtin_amdgcn_update_dpp(-7, x, {control:#x}, {rows:#x}, 0xf, {bound});"
        for control, _ in DPP.values()
        for rows, bound in ((0xF, "false"), (0x5, "true"))
    ]
    found = waves(device, bodies)
    for (name, (_, source)), kept, zeroed in zip(DPP.items(), found[::2], found[1::2], strict=True):
        assert (kept == np.where(source < 0, -7, X[source])).all(), name
        moved = np.where(source < 0, 0, X[source])
        assert (zeroed == np.where(LANES // 16 % 2 == 0, moved, -7)).all(), name


def test_reductions_and_matches_of_the_sync_family(device: Any) -> None:
    body = """unsigned long long m = ~0ull;
              r = __reduce_add_sync(m, i) * 10000 + __reduce_max_sync(m, i % 7) * 100
                + __reduce_min_sync(m, i + 9);"""
    assert (wave(device, body) == 2016 * 10000 + 600 + 9).all()
    peers = wave(device, "r = __match_any(i % 3);", "uint64")
    for lane in LANES:
        assert peers[lane] == sum(1 << int(other) for other in LANES if other % 3 == lane % 3)


def test_a_tree_reduction_by_shuffles_gives_the_sum(device: Any) -> None:
    body = "r = x; for (int step = 32; step; step /= 2) r += __shfl_xor(r, step);"
    assert (wave(device, body) == X.sum()).all()

"""Where the large arrays live: NumPy, or torch on the CPU or on a GPU, through the array API.

Random numbers are always drawn by NumPy and moved, so that every device sees the same ones. The
heavy code takes its functions from `namespace(x)`; what the standard does not have is here, and
only here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.special
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, get_blas_funcs

from onegrad.errors import SpecError, did_you_mean

Array = NDArray[np.float64]

DEVICES = ("cpu", "torch", "cuda")
_DEVICE = re.compile(r"cpu|torch|cuda(:\d+)?")
_HOST = (np.ndarray, np.generic, float, int, list, tuple)
CACHED = 1 << 18  # bytes of a block that stays in the cache between elementwise steps
_PIECE = 1 << 22  # numbers on other devices, where a call costs more than the cache gains


def namespace(x: Any) -> Any:
    """The array library of x: NumPy itself, or another one in the form of the standard."""
    if isinstance(x, _HOST):
        return np
    from array_api_compat import array_namespace

    return array_namespace(x)


def host(x: Any) -> np.ndarray:
    """As a NumPy array of double precision; x itself where it is one."""
    if not isinstance(x, _HOST) and hasattr(x, "cpu"):
        x = x.cpu()
    return np.asarray(x, dtype=np.float64)


def like(array: Any, model: Any) -> Any:
    """A NumPy array as an array of the library, device and precision of another one."""
    if isinstance(model, np.ndarray):
        return np.asarray(array, dtype=model.dtype)
    return _placed(namespace(model), np.asarray(array), model.dtype, model.device)


def _placed(xp: Any, array: np.ndarray, dtype: Any, device: Any) -> Any:
    # torch shares the memory of a NumPy array, and warns if that must not be written to
    copy = None if array.flags.writeable else True
    return xp.asarray(array, dtype=dtype, device=device, copy=copy)


@dataclass(frozen=True)
class Backend:
    """A device and the precision of the large arrays there.

    device : "cpu" for NumPy, "torch" for torch on the CPU, "cuda" or "cuda:1" for torch on a GPU
    careful : numbers in which single precision may show are refused
    """

    device: str
    xp: Any
    dtype: Any
    place: Any = None
    careful: bool = False

    def move(self, array: np.ndarray) -> Any:
        """The array on this device; NumPy arrays of the right precision are not copied."""
        if self.xp is np:
            return np.asarray(array, dtype=self.dtype)
        return _placed(self.xp, array, self.dtype, self.place)

    @property
    def double(self) -> Backend:
        """The same device in double precision."""
        double = NUMPY.dtype if self.xp is np else self.xp.float64
        return replace(self, dtype=double, careful=False)

    @property
    def precision(self) -> str:
        """float64 or float32."""
        return str(self.dtype).rpartition(".")[2]

    @property
    def free_bytes(self) -> int | None:
        """Memory of the device that is free; None where the device works in the machine's own."""
        if not self.device.startswith("cuda"):
            return None
        import torch

        return int(torch.cuda.mem_get_info(self.place)[0])


NUMPY = Backend("cpu", np, np.dtype(np.float64))


def check_device(device: str) -> str:
    """Refuse what is not the name of a device; whether it is there is seen when it is used."""
    if not _DEVICE.fullmatch(device):
        raise SpecError.of(
            "compare.device", device,
            'must be "cpu" (NumPy), "torch" (torch on the CPU), "cuda" or "cuda:1" (a GPU)',
            did_you_mean(device, DEVICES) or 'For example "cpu"',
        )  # fmt: skip
    return device


@lru_cache(maxsize=8)
def get_backend(device: str = "cpu", dtype: str = "float64") -> Backend:
    """The backend of that name; refused with advice if torch or the GPU is missing."""
    check_device(device)
    if device == "cpu":
        return Backend(device, np, np.dtype(dtype))
    try:
        import array_api_compat.torch as xp
        import torch
    except ImportError:
        raise SpecError.of(
            "compare.device", device, "needs torch and array-api-compat, which are not installed",
            "Install them with: pip install 'onegrad[gpu]', or use device = \"cpu\"",
        ) from None  # fmt: skip
    if device == "torch":
        return Backend(device, xp, getattr(xp, dtype), torch.device("cpu"))
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    number = int(device.partition(":")[2] or 0)
    if number >= count:
        seen = f"this torch ({torch.__version__}) sees {count or 'no'} GPU{'s' * (count > 1)}"
        raise SpecError.of(
            "compare.device", device, f"is not there: {seen}",
            f'Use "cuda:{count - 1}"' if count else 'Use device = "torch" or "cpu", or install a '
            "torch with CUDA and check `nvidia-smi`",
        )  # fmt: skip
    return Backend(device, xp, getattr(xp, dtype), torch.device("cuda", number))


# --- what the standard lacks ----------------------------------------------------------------


def rows_at_once(x: Any, size: int | None = None) -> int:
    """Rows of x that stay in the cache while they are worked on, `size` numbers."""
    if not isinstance(x, np.ndarray):
        size = _PIECE
    elif size is None:
        size = CACHED // x.itemsize
    return max(1, size // max(1, math.prod(x.shape[1:])))


def pieces(x: Any) -> Iterator[Any]:
    """Indices of rows that stay in the cache while they are worked on."""
    step = rows_at_once(x)
    for start in range(0, x.shape[0], step):
        yield slice(start, min(start + step, x.shape[0])), ...


def read_only(x: Any) -> Any:
    """Marks an array that must not be changed, where the library can."""
    if isinstance(x, np.ndarray):
        x.setflags(write=False)
    return x


def product(left: Any, right: Any) -> Any:
    """left·right of large matrices: where most of a repetition's time goes, and tests count it."""
    return left @ right


def multiplied(x: Any, y: Any, out: Any) -> Any:
    """x·y elementwise, written to `out`, without a temporary array where the library can."""
    if isinstance(out, np.ndarray):
        return np.multiply(x, y, out=out)
    out[...] = x * y
    return out


def special(name: str, *arguments: Any) -> Any:
    """erf, expit, ndtr, owens_t: SciPy's or torch's, else SciPy's on the host."""
    first = arguments[0]
    if isinstance(first, _HOST):
        return getattr(scipy.special, name)(*arguments)
    if type(first).__module__ == "torch":
        import torch

        if hasattr(torch.special, name):
            return getattr(torch.special, name)(*arguments)
    return like(getattr(scipy.special, name)(*map(host, arguments)), first)


def clear_diagonal(matrix: Any) -> None:
    """Zeroes on the main diagonal, in place."""
    if isinstance(matrix, np.ndarray):
        matrix.flat[:: matrix.shape[1] + 1] = 0
    elif hasattr(matrix, "fill_diagonal_"):
        matrix.fill_diagonal_(0)
    else:
        xp = namespace(matrix)
        matrix[xp.eye(*matrix.shape, dtype=xp.bool)] = 0


def shift_diagonal(matrix: Any, shift: float) -> None:
    """matrix + shift·I, in place."""
    if isinstance(matrix, np.ndarray):
        diagonal = np.einsum("ii->i", matrix)
        diagonal += shift
    else:
        n = matrix.shape[0]
        matrix += shift * namespace(matrix).eye(n, dtype=matrix.dtype, device=matrix.device)


def lower_gram(features: Any, dual: bool, room: Any = None, add: bool = False) -> Any:
    """The lower triangle of ΦᵀΦ, or of ΦΦᵀ (dual), in the order in which LAPACK works in place.

    Half the operations of a general product; the upper triangle is arbitrary. Where there is no
    such product: the whole matrix. `room`: a square array in NumPy's order to write to, or to add
    to.
    """
    if not isinstance(features, np.ndarray):
        return features @ features.T if dual else features.T @ features
    (syrk,) = get_blas_funcs(("syrk",), (features,))
    target = {} if room is None else {"c": room.T, "overwrite_c": 1, "beta": float(add)}
    if features.flags.c_contiguous:
        return np.asarray(syrk(1.0, features.T, trans=int(dual), lower=1, **target))
    return np.asarray(syrk(1.0, features, trans=int(not dual), lower=1, **target))


def positive_solver(matrix: Any) -> Callable[[Any], Any]:
    """The map v ↦ matrix⁻¹v by Cholesky, from the lower triangle; the matrix is overwritten.

    v may be a vector or a matrix of columns.

    Raises numpy.linalg.LinAlgError if the matrix is not positive definite.
    """
    if isinstance(matrix, np.ndarray):  # SciPy would copy a tensor of another library
        factor, _ = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        # for a vector in a fifth of the time that LAPACK takes, which is made for many
        (solve,) = get_blas_funcs(("trsv",), (factor,))

        def solution(v: np.ndarray) -> np.ndarray:
            if v.ndim > 1:
                return np.asarray(cho_solve((factor, True), v, check_finite=False))
            return np.asarray(solve(factor, solve(factor, v, lower=1), lower=1, trans=1))

        return solution
    if type(matrix).__module__ == "torch":
        import torch

        lower, failed = torch.linalg.cholesky_ex(matrix)
        if int(failed):
            raise np.linalg.LinAlgError
        return lambda v: torch.cholesky_solve(v.reshape(len(v), -1), lower).reshape(v.shape)
    xp = namespace(matrix)
    lower = xp.linalg.cholesky(matrix)
    return lambda v: xp.linalg.solve(lower.T, xp.linalg.solve(lower, v))

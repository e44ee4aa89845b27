"""Random tensors against numpy. Random trees and damaged dumps are compared in core/compare, as they are handed on."""

import math
import sys
import unittest

import numpy

import optim_test_tools as ott

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
          "float64", "complex64", "complex128"]
SPECIAL = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.0, 1.0 + 1e-3, -1.0]


def random_array(generator, dtype, shape):
    """Small numbers, so that two arrays often agree, with special ones among them."""
    kind = numpy.dtype(dtype).kind
    if kind == "c":
        part = "float32" if dtype == "complex64" else "float64"
        array = numpy.empty(shape, dtype)
        array.real, array.imag = random_array(generator, part, shape), random_array(generator, part, shape)
        return array
    array = generator.integers(0, 4, shape).astype(dtype)
    if kind == "f":
        array += generator.choice([0, 1e-6, 1e-3], shape).astype(dtype)
        special = generator.random(shape) < 0.1
        array[special] = generator.choice(SPECIAL, numpy.count_nonzero(special))
    elif array.dtype.itemsize == 8:
        # No float64 has all of these.
        array += numpy.array(2**62, dtype)
    return array


def random_view(generator, array):
    """The same elements, in memory with other strides."""
    how = generator.integers(0, 4)
    if how == 0 or array.ndim == 0:
        return array.copy()
    if how == 1:
        return numpy.asfortranarray(array)
    if how == 2:
        return array[::-1].copy()[::-1]
    padded = numpy.zeros(array.shape[:-1] + (2 * array.shape[-1] + 1,), array.dtype)
    padded[..., 1::2] = array
    return padded[..., 1::2]


def changed(generator, array):
    """A copy, in which a few elements may be others."""
    array = array.copy()
    if array.size > 0 and generator.random() < 0.6:
        places = generator.integers(0, array.size, generator.integers(1, 4))
        array.reshape(-1)[places] = random_array(generator, array.dtype.name, (array.size,))[places]
    return array


def all_close(current, reference, rtol, atol, nan_equal):
    """numpy.allclose, which makes NaN of complex infinities, in the widest type."""
    wide = "complex128" if current.dtype.kind == "c" else "float64"
    current, reference = current.astype(wide), reference.astype(wide)
    if current.dtype.kind != "c":
        return numpy.allclose(current, reference, rtol, atol, nan_equal)
    with numpy.errstate(invalid="ignore"):
        close = numpy.abs(current - reference) <= atol + rtol * numpy.abs(reference)
    close &= numpy.isfinite(current) & numpy.isfinite(reference)
    close |= current == reference
    return bool(numpy.all(close | (nan_equal & numpy.isnan(current) & numpy.isnan(reference))))


class TensorTest(unittest.TestCase):
    def check(self, comparison, agrees, what):
        verdict = ott.Verdict.EQUAL if agrees else ott.Verdict.DIFFERENT
        self.assertIs(comparison.verdict, verdict, f"{what}\n{comparison}")

    def test_random_tensors_agree_where_numpy_says_so(self):
        generator = numpy.random.default_rng(1)
        equal = 0
        for round_ in range(1500):
            dtype = DTYPES[round_ % len(DTYPES)]
            shape = tuple(generator.integers(0, 5, generator.integers(0, 4)))
            reference = random_array(generator, dtype, shape)
            current = changed(generator, reference)
            what = f"round {round_}: {reference!r} {current!r}"
            given = random_view(generator, reference), random_view(generator, current)
            if reference.size == 0:
                # Nothing to compare is never equal.
                self.assertIs(ott.compare(*given).verdict, ott.Verdict.COULD_NOT_COMPARE, what)
                continue
            bitwise = reference.tobytes() == current.tobytes()
            self.check(ott.compare(*given, bitwise=True), bitwise, what)
            agrees = numpy.array_equal(reference, current)
            self.check(ott.compare(*given), agrees, what)
            self.assertEqual(ott.compare(*given).bitwise_equal, bitwise and agrees, what)
            equal += bitwise
            if reference.dtype.kind not in "fc":
                continue
            self.check(ott.compare(*given, nan_equal=True), numpy.array_equal(reference, current, equal_nan=True), what)
            atol, rtol = generator.choice([0, 1e-6, 1e-3, 1]), generator.choice([0, 1e-6, 1e-3, 1])
            for nan_equal in False, True:
                self.check(ott.compare(*given, atol=atol, rtol=rtol, nan_equal=nan_equal),
                           all_close(current, reference, rtol, atol, nan_equal),
                           f"{what} atol {atol} rtol {rtol} nan_equal {nan_equal}")
        self.assertTrue(300 < equal < 1200, equal)

    def test_other_shapes_and_dtypes_never_agree(self):
        generator = numpy.random.default_rng(2)
        for _ in range(300):
            first, second = generator.choice(DTYPES, 2, replace=False)
            shape = tuple(generator.integers(1, 4, generator.integers(0, 3)))
            ones = numpy.ones(shape)
            self.assertFalse(ott.compare(ones.astype(first), ones.astype(second), atol=9, rtol=9))
            self.assertFalse(ott.compare(ones, numpy.ones(shape + (1,)), atol=9))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

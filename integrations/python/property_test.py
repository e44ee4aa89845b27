"""Random tensors, trees and damaged dumps, against numpy and against oracles in plain Python."""

import math
import os
import random
import shutil
import sys
import tempfile
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


def random_tree(random_, depth):
    """Arrays, numbers, bools, texts and nothing, in dicts and lists."""
    kind = random_.randrange(8 if depth > 0 else 5)
    if kind == 0:
        return numpy.arange(random_.randrange(1, 4), dtype=random_.choice(["float32", "int8"]))
    if kind < 5:
        return [random_.choice([0.5, 1.5]), random_.randrange(3), random_.random() < 0.5, random_.choice(["x", "\u202ey"])][kind - 1]
    children = [random_tree(random_, depth - 1) for _ in range(random_.randrange(4))]
    if kind == 5:
        return children
    return {name: child for name, child in zip(["a", "b", "<script>", "c.d"], children)}


def damaged_tree(random_, tree):
    """A copy with one leaf changed, added or left out, or the same."""
    if isinstance(tree, dict) and tree:
        tree = dict(tree)
        name = random_.choice(list(tree))
        if random_.random() < 0.2:
            del tree[name]
        else:
            tree[name] = damaged_tree(random_, tree[name])
        return tree
    if isinstance(tree, list) and tree:
        i = random_.randrange(len(tree))
        return tree[:i] + [damaged_tree(random_, tree[i])] + tree[i + 1:]
    if isinstance(tree, numpy.ndarray):
        return tree + tree.dtype.type(random_.randrange(2))
    return random_tree(random_, 0) if random_.random() < 0.5 else tree


def has_numbers(tree):
    """Texts alone are nothing to compare, unless they differ."""
    if isinstance(tree, dict):
        return any(has_numbers(child) for child in tree.values())
    if isinstance(tree, list):
        return any(has_numbers(child) for child in tree)
    return not isinstance(tree, str)


def is_same(a, b):
    """Two trees have the same leaves at the same places; numbers and bools of Python are compared as numbers."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(sorted(a)) == list(sorted(b)) and all(is_same(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, numpy.ndarray) and isinstance(b, numpy.ndarray):
        return a.dtype == b.dtype and numpy.array_equal(a, b)
    if isinstance(a, (dict, list, numpy.ndarray)) or isinstance(b, (dict, list, numpy.ndarray)):
        return False
    return a == b


class TreeTest(unittest.TestCase):
    def test_random_trees_agree_where_their_leaves_do(self):
        random_ = random.Random(3)
        counts = {verdict: 0 for verdict in ott.Verdict}
        for _ in range(1500):
            reference = {"root": random_tree(random_, 4)}
            current = damaged_tree(random_, reference)
            verdict = ott.compare(reference, current).verdict
            counts[verdict] += 1
            what = f"{reference!r}\n{current!r}"
            if verdict is ott.Verdict.EQUAL:
                self.assertTrue(is_same(reference, current), what)
            elif verdict is ott.Verdict.DIFFERENT:
                self.assertFalse(is_same(reference, current), what)
            else:
                self.assertTrue(is_same(reference, current) and not has_numbers(reference), what)
        self.assertTrue(all(count > 100 for count in counts.values()), counts)


class DamagedDumpTest(unittest.TestCase):
    def test_a_damaged_dump_is_an_error_or_what_it_was(self):
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        dumper = ott.TensorDumper()
        dumper.enable(directory)
        self.addCleanup(dumper.disable)
        tree = {"json": numpy.arange(6, dtype="float32"), "binary": numpy.arange(8, dtype="int64"),
                "npy": numpy.ones((2, 3)), "safetensors": numpy.arange(4, dtype="uint8"), "rate": 0.1, "name": "x"}
        for name, value in tree.items():
            is_file = name in ("binary", "npy", "safetensors")
            dumper.add(name, value, **({"format": name} if is_file else {}))
        dumper.dump()
        reference = os.path.join(directory, "0")
        random_ = random.Random(4)
        counts = {verdict: 0 for verdict in ott.Verdict}
        for _ in range(400):
            damaged = os.path.join(directory, "damaged")
            shutil.rmtree(damaged, ignore_errors=True)
            shutil.copytree(reference, damaged)
            path = os.path.join(damaged, random_.choice(sorted(os.listdir(damaged))))
            with open(path, "rb") as file:
                content = bytearray(file.read())
            for _ in range(random_.choice([1, 1, 3])):
                place = random_.randrange(len(content))
                how = random_.randrange(4)
                if how == 0:
                    content[place] ^= 1 << random_.randrange(8)
                elif how == 1:
                    content[place:] = b""
                elif how == 2:
                    content[place:place] = content[:place][-9:]
                else:
                    content[place] = random_.choice(b"0[]{}\",\x00\xff")
                if not content:
                    break
            with open(path, "wb") as file:
                file.write(content)
            try:
                verdict = ott.compare(reference, damaged).verdict
            except (ValueError, OSError, RuntimeError):
                verdict = ott.Verdict.COULD_NOT_COMPARE
            counts[verdict] += 1
            if verdict is not ott.Verdict.EQUAL:
                continue
            # Whitespace, say: then all that is read is as it was.
            read = ott.load_dump(damaged).tensors
            self.assertEqual(sorted(read), sorted(tree), path)
            for name, value in tree.items():
                self.assertTrue(numpy.array_equal(read[name], value), f"{path}: {name}: {read[name]!r}")
        self.assertTrue(counts[ott.Verdict.DIFFERENT] + counts[ott.Verdict.COULD_NOT_COMPARE] > 300, counts)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

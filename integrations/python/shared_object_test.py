"""C++ in another shared object of the process has the stopwatch and the dumper that Python has."""

import ctypes
import os
import tempfile
import unittest

import numpy

import optim_test_tools as ott


def load(name):
    plugin = ctypes.CDLL(os.path.join("integrations/python", name), mode=os.RTLD_LOCAL | os.RTLD_NOW)
    plugin.ott_test_num_measured_iters.restype = ctypes.c_int64
    plugin.ott_test_dump_count.restype = ctypes.c_int64
    plugin.ott_test_add.restype = ctypes.c_bool
    plugin.ott_test_add.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64]
    return plugin


class SharedObjectTest(unittest.TestCase):
    def test_one_stopwatch_and_one_dumper(self):
        plugin = load("libplugin_for_test.so")
        plugin.ott_test_measure()  # off
        stopwatch, dumper = ott.Stopwatch(), ott.TensorDumper()
        directory = tempfile.mkdtemp()
        stopwatch.enable(on_misuse="raise")
        dumper.enable(directory)
        self.addCleanup(stopwatch.disable)
        self.addCleanup(dumper.disable)

        plugin.ott_test_measure()
        stopwatch.start("from here to there")
        plugin.ott_test_end(b"from here to there")
        plugin.ott_test_start(b"from there to here")
        stopwatch.end("from there to here")
        plugin.ott_test_start(b"theirs")
        with self.assertRaisesRegex(ott.MisuseError, "theirs"):
            stopwatch.start("theirs")
        with self.assertRaisesRegex(ott.MisuseError, "theirs"):
            stopwatch.finish_iter()
        plugin.ott_test_end(b"theirs")
        stopwatch.finish_iter()
        self.assertEqual(plugin.ott_test_num_measured_iters(), 1)
        for name in ("in the plugin", "from here to there", "from there to here", "theirs"):
            self.assertIsNotNone(stopwatch.mean_seconds_per_interval(name), name)

        x = numpy.arange(3, dtype=numpy.float32)
        dumper.add("mine", x)
        self.assertTrue(plugin.ott_test_add(b"theirs", x.ctypes.data, 3))
        dumper.dump()
        self.assertEqual(plugin.ott_test_dump_count(), 1)
        tensors = ott.load_dump(os.path.join(directory, "0")).tensors
        self.assertEqual({name: tensor.tolist() for name, tensor in tensors.items()},
                         {"mine": [0, 1, 2], "theirs": [0, 1, 2]})


if __name__ == "__main__":
    unittest.main()

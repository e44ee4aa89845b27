// Data that zlib has compressed, for tests of what reads such data.

#ifndef OTT_CORE_BASE_DEFLATE_FOR_TEST_H_
#define OTT_CORE_BASE_DEFLATE_FOR_TEST_H_

#include <zlib.h>

#include <string>

#include "gtest/gtest.h"

namespace ott {

// window_bits, as zlib counts them: -MAX_WBITS for the bare data, MAX_WBITS + 16 for a gzip file.
inline std::string DeflateForTest(const std::string& data, int window_bits) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace ott

#endif  // OTT_CORE_BASE_DEFLATE_FOR_TEST_H_

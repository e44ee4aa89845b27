#include "ott/core/chrome_trace/byte_source.h"

#include <sys/stat.h>
#include <zlib.h>

#include <map>
#include <random>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "ott/core/base/deflate_for_test.h"
#include "ott/core/base/file.h"

namespace ott::chrome_trace {
namespace {

// Several compressed parts are as tools write them that compress in parallel, and zeros as tapes add them.
TEST(ByteSource, OfAnyFileTheTextComesAndOfACutOrDamagedOneWhatIsBefore) {
  std::mt19937 random(1);
  const std::string path = testing::TempDir() + "/bytes";
  // Returns the text, read in pieces, and the error.
  const auto read = [&](const std::string& contents) {
    EXPECT_TRUE(WriteFileAtomically(path, contents).ok());
    const auto source = ByteSource::Open(path);
    EXPECT_TRUE(source.ok()) << source.status();
    std::string text, piece;
    size_t got = 0;
    do {
      piece.resize(1 + random() % 500'000);
      got = (*source)->Read(piece.data(), piece.size());
      text.append(piece, 0, got);
    } while (got == piece.size());
    return std::make_pair(text, (*source)->error());
  };
  for (const size_t size : {0, 1, 2, 40, 500, 600'000}) {
    for (int num_parts = 1; num_parts <= 3; ++num_parts) {
      std::string text(size, 'a'), packed;
      for (char& c : text) c = static_cast<char>(random() % 3 == 0 ? 'a' : random() % 256);
      std::map<size_t, size_t> whole;  // of the text, by that of the file
      for (size_t part = 0, at = 0; part < static_cast<size_t>(num_parts); ++part) {
        const size_t end =
            part + 1 == static_cast<size_t>(num_parts) ? size : at + random() % (size - at + 1);
        packed += DeflateForTest(text.substr(at, end - at), MAX_WBITS + 16);
        whole[packed.size()] = at = end;
      }
      const std::pair<std::string, std::string> good = {text, ""};
      EXPECT_TRUE(read("." + text) == std::make_pair("." + text, good.second));
      EXPECT_TRUE(read(packed) == good);
      EXPECT_TRUE(read(packed + std::string(random() % 600'000, '\0')) == good);
      // A byte of the last part's checksum is wrong. Four bytes of its size come behind it.
      std::string damaged = packed;
      damaged[damaged.size() - 5 - random() % 4] ^= 4;
      EXPECT_TRUE(read(damaged) == std::make_pair(text, std::string("the compressed file is damaged")));
      for (const size_t cut : {packed.size() - 1, whole.begin()->first, 2 + random() % (packed.size() - 2)}) {
        const auto [begin, error] = read(packed.substr(0, cut));
        EXPECT_EQ(error, whole.count(cut) > 0 ? "" : "the compressed file is truncated") << cut;
        const auto after = whole.upper_bound(cut);
        EXPECT_TRUE(begin == text.substr(0, begin.size()) &&
                    begin.size() >= (after == whole.begin() ? 0 : std::prev(after)->second))
            << cut;
      }
    }
  }
}

TEST(ByteSource, WhatIsNoRegularFileIsAnError) {
  EXPECT_EQ(ByteSource::Open("/no/such/file").status(),
            absl::NotFoundError("/no/such/file: No such file or directory"));
  const std::string pipe = testing::TempDir() + "/pipe.json";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {testing::TempDir(), pipe})
    EXPECT_EQ(ByteSource::Open(path).status(), absl::InvalidArgumentError(path + ": is no regular file"));
}

}  // namespace
}  // namespace ott::chrome_trace

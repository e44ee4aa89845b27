#include "ott/core/checkpoint/zip_archive.h"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/checkpoint/torch_file_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

// Returns the first error of opening or reading an archive, or "".
std::string ErrorOf(const std::string& file) {
  const auto archive = ZipArchive::Open({file, nullptr});
  if (!archive.ok()) return std::string(archive.status().message());
  for (const ZipArchive::Entry& entry : archive->entries()) {
    const auto read = archive->Read(entry);
    if (!read.ok()) return std::string(read.status().message());
  }
  return "";
}

TEST(ZipArchive, OfAnyArchiveTheEntriesAreReadAndOfACutOneNone) {
  std::mt19937 random(1);
  const auto below = [&](size_t end) { return random() % end; };
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<Written> entries(below(4));
    for (size_t i = 0; i < entries.size(); ++i) {
      entries[i] = {absl::StrCat(std::string(below(3), 'n'), i), std::string(below(100), 'd'), below(2) == 0,
                    below(2) == 0 ? 0 : static_cast<unsigned>(below(8))};
      if (below(3) == 0) entries[i].extra = InBytes(0x5455, 2) + InBytes(5, 2) + "extra";
      if (below(3) == 0) entries[i].comment = "PK";
      if (below(3) == 0) entries[i].data += "PK\1\2 PK\5\6";
    }
    const std::string comment = below(4) == 0 ? "a comment of PK\5\6" : "";
    const std::string file = Zip(entries, below(2) == 0, comment, std::string(below(2) * 9, '.'));
    const auto archive = ZipArchive::Open({file, nullptr}).value();
    ASSERT_EQ(archive.entries().size(), entries.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      EXPECT_EQ(archive.entries()[i].name, entries[i].name);
      const ZipArchive::Entry* const found = archive.Find(entries[i].name);
      EXPECT_EQ(found, &archive.entries()[i]);
      EXPECT_EQ(found->deflated, entries[i].deflated);
      EXPECT_EQ(archive.Read(*found)->bytes, entries[i].data);
    }
    EXPECT_EQ(archive.Find("none"), nullptr);
    const size_t size = below(file.size());
    const absl::Status cut = ZipArchive::Open({std::string_view(file).substr(0, size), nullptr}).status();
    EXPECT_EQ(cut, absl::DataLossError(absl::StrCat("a ZIP archive cut at byte ", size,
                                                    ": its directory, which comes last, is missing; "
                                                    "the program was probably killed while writing")));
  }
}

TEST(ZipArchive, WhatIsWrongInADirectoryIsNamed) {
  size_t at = 0;
  const std::vector<Written> entries = {{"a", "abc"}, {"b", std::string(99, 'b'), true}};
  const std::string good = Zip(entries, false, "", "", &at);
  const size_t second = at + 47, end = at + 94;
  const auto num_stored = static_cast<uint64_t>(Deflated(entries[1].data).size());
  const auto changed = [](std::string file, size_t place, uint64_t number, size_t size) {
    return file.replace(place, size, InBytes(number, size));
  };
  const auto directory = [](size_t place, const std::string& what) {
    return absl::StrCat("the ZIP directory at byte ", place, ": ", what);
  };
  struct Change {
    size_t place;
    uint64_t number;
    size_t size;
    std::string error;
  };
  const std::string none = "'a' has no ZIP64 sizes", not_whole = "does not unpack to the size that it claims";
  for (const Change& change : std::vector<Change>{
           {at, 0, 1, directory(at, "no entry")},
           {at + 8, 1, 2, directory(at, "'a' is encrypted")},
           {at + 10, 12, 2, directory(at, "'a' is compressed by method 12, not stored or deflated")},
           {at + 20, 2, 4, directory(at, "'a' of 3 bytes, 2 in the file, does not fit behind byte 31")},
           {second + 20, 999, 4,
            directory(second, absl::StrCat("'b' of 99 bytes, 999 in the file, does not fit behind byte 65"))},
           {at + 20, UINT32_MAX, 4, directory(at, none)},
           {at + 24, UINT32_MAX, 4, directory(at, none)},
           {at + 42, UINT32_MAX, 4, directory(at, none)},
           {second + 28, 500, 2, directory(second, "an entry that is longer than it")},
           {at + 42, 1, 4, directory(at, "'a' is not at byte 1, where it should be")},
           {at + 42, 99999, 4, directory(at, "'a' is not at byte 99999, where it should be")},
           {at + 46, 'b', 1, directory(at, "'b' is not at byte 0, where it should be")},
           {end + 10, 3, 2,
            absl::StrCat("a ZIP directory of 3 entries does not fit into 94 bytes at byte ", at)},
           {end + 16, 9999, 4, "a ZIP directory of 2 entries does not fit into 94 bytes at byte 9999"},
           {second + 16, 7, 4, "the ZIP entry 'b' is damaged: its checksum is another"},
           {second + 24, 98, 4, "the ZIP entry 'b' " + not_whole},
           {second + 24, 100, 4, "the ZIP entry 'b' " + not_whole},
           {second + 20, num_stored - 1, 4, "the ZIP entry 'b' " + not_whole},
           {second + 20, num_stored + 1, 4, "the ZIP entry 'b' " + not_whole},
           {second + 24, 1 << 20, 4, "the ZIP entry 'b' claims more bytes than it can hold"}}) {
    EXPECT_EQ(ErrorOf(changed(good, change.place, change.number, change.size)), change.error);
  }
  EXPECT_EQ(ErrorOf(Zip({{"a", "1"}, {"b", "2"}, {"a", "3"}})), "the ZIP archive has 'a' twice");
  for (const std::string& extra : {InBytes(7, 2) + InBytes(100, 2), InBytes(7, 2) + InBytes(3, 2) + "ab",
                                   InBytes(1, 2) + InBytes(7, 2) + "seven  "})
    EXPECT_EQ(ErrorOf(changed(Zip({{"a", "1", false, 0, extra}}), 32 + 24, UINT32_MAX, 4)),
              directory(32, none));
  const std::string large =
      Zip({{"a", "1"}, {"b", "2", true, 1}, {"c", "3", true, 1}, {"d", "4"}}, true, "", "", &at);
  const auto claim = [&](const std::string& file, size_t entry, uint64_t size) {
    return changed(file, at + 47 * (entry + 1) + 12 * (entry - 1) + 4, size, 8);
  };
  const uint64_t gib = uint64_t{1} << 30;
  EXPECT_THAT(ErrorOf(claim(large, 1, UINT64_MAX)),
              testing::HasSubstr("'b' of 18446744073709551615 bytes, "));
  EXPECT_EQ(ErrorOf(claim(claim(large, 1, 3 * gib), 2, gib)),
            "the ZIP entry 'b' claims more bytes than it can hold");
  for (const uint64_t first : {2 * gib, 5 * gib}) {
    EXPECT_EQ(ErrorOf(claim(claim(large, 1, first), 2, 3 * gib)),
              absl::StrCat("the ZIP archive unpacks to more than 4294967296 bytes, at '",
                           first > 4 * gib ? "b" : "c", "'"));
  }
  EXPECT_EQ(ErrorOf(changed(large, large.size() - 22 - 12, 5, 8)),
            "the ZIP64 end of the directory is not there");
  // The second entry lies within the first.
  const std::string inner = "PK\3\4" + InBytes(0, 22) + InBytes(1, 2) + InBytes(0, 2) + "b";
  const std::string outer = Zip({{"a", inner}, {"b", ""}}, false, "", "", &at);
  EXPECT_EQ(ErrorOf(changed(outer, at + 47 + 42, 31, 4)), "the ZIP entries 'a' and 'b' overlap");
}

}  // namespace
}  // namespace ott

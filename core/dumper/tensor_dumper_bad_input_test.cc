// Names, directories and disks that mean harm to a dump.

#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "tensor_dumper_for_test.h"

namespace ott {

// In place of the library's: there is no device here that could fail.
absl::Status CopyToHost(const void*, int64_t, const Device&, void*) { return absl::InternalError("no copy"); }
absl::StatusOr<CopyDone> StartCopyToHost(const void*, int64_t, const Device&, void*) {
  return CopyDone([] { return absl::InternalError("an illegal memory access was encountered"); });
}
absl::StatusOr<std::shared_ptr<void>> AllocatePinned(int64_t num_bytes) { return AllocateHost(num_bytes); }

namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST_F(TensorDumperTest, CopiesFromADeviceThatFailAreErrorsOfAllThatNeedsThem) {
  Enable();
  Device device;
  device.kind = Device::Kind::kCuda;
  const TensorView on_device(data_, DType::kFloat32, Dims{2, 2}, Dims{2, 1}, device);
  Add("a", on_device);
  for (const absl::Status& status :
       {dumper_.tensors().status(), dumper_.grads().status(), dumper_.CompareToDumpedData().status()}) {
    EXPECT_EQ(status.message(), "an illegal memory access was encountered");
  }
  Add("a", on_device);
  EXPECT_EQ(dumper_.Dump().message(), "an illegal memory access was encountered");
}

TEST_F(TensorDumperTest, HostileNamesStayInTheDirectory) {
  Enable();
  ValueMap map;
  for (const std::string& name :
       {std::string("/etc/passwd"), std::string("../../up"), std::string("nul\0nul", 7),
        std::string(300, 'x'), std::string(300, 'x') + "y"}) {
    map.Insert(name, view_);
  }
  // Names of a map are not split at dots.
  Add("", map, DumpFormat::kBinary);
  DumpNow();
  EXPECT_NE(access("/etc/passwd.bin", F_OK), 0);
  EXPECT_NE(access((dir_ + "/../up.bin").c_str(), F_OK), 0);
  EXPECT_EQ(PathsOf(Read(0).tensors), PathsOf(map));
}

TEST_F(TensorDumperTest, WhatCannotBeWrittenIsRefusedBeforeItCostsTheDump) {
  Enable();
  const TensorView refused(nullptr, DType::kFloat32, {2});
  const std::string not_empty = "a TensorView that was refused";
  for (const auto& [value, message] :
       std::vector<std::pair<Value, std::string>>{{ValueMap{{"\xff", view_}}, "is not UTF-8"},
                                                  {ValueMap{{"", view_}}, "'bad.': a name is empty"},
                                                  {refused, not_empty},
                                                  {ValueMap{{"w", refused}}, not_empty},
                                                  {Value::List{refused}, not_empty}}) {
    for (const absl::Status& status :
         {dumper_.AddTensorData("bad", value), dumper_.AddGradData("bad", value)}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    }
  }
  for (const char* const path : {"", "..", "a..b", ".a", "a.", "\xff"}) {
    EXPECT_EQ(dumper_.AddTensorData(path, view_).code(), absl::StatusCode::kInvalidArgument) << path;
  }
  AddOptions options;
  options.permute_axes = {1, 0};
  EXPECT_EQ(dumper_.AddTensorData("d", TensorView(data_, {2}), options).message(),
            "'d': [1, 0] is no permutation of the axes of shape [2]");
  Add("good", view_);
  // A path of a gradient is used when the gradient is known.
  for (const char* const path : {"", "good.a"}) ASSERT_TRUE(dumper_.AddGradData(path, view_).ok());
  const auto same = [](absl::Span<const NamedTensor> tensors) {
    std::vector<Gradient> gradients;
    for (const NamedTensor& of : tensors) gradients.push_back({Gradient::Kind::kComputed, of.tensor});
    return gradients;
  };
  EXPECT_THAT(std::string(dumper_.SetGradients(same).message()), HasSubstr("without a path"));
  ASSERT_TRUE(dumper_.Dump(/*dump_if_empty=*/false).ok());
  EXPECT_THAT(PathsOf(Read(0).tensors), ElementsAre("good"));
  EXPECT_THAT(PathsOf(*Read(0).grads), ElementsAre("good.a"));
}

TEST_F(TensorDumperTest, LinksInTheDirectoryAreReplacedAndNotFollowed) {
  Enable();
  const std::string outside = MakeTestDir() + "/precious";
  ASSERT_TRUE(WriteFileAtomically(outside, "precious").ok());
  ASSERT_TRUE(MakeDirectories(dir_ + "/0").ok());
  for (const char* const name : {"tensors.json", "manifest.json", "[tensors.json]a.bin"}) {
    ASSERT_EQ(symlink(outside.c_str(), (dir_ + "/0/" + name).c_str()), 0);
  }
  Add("a", view_, DumpFormat::kBinary);
  DumpNow();
  EXPECT_EQ(ReadFile(outside).value(), "precious");
  EXPECT_THAT(PathsOf(Read(0).tensors), ElementsAre("a"));
}

// A full disk leaves earlier dumps whole, the one in work known as cut, and no temporary files.
class FullDiskTest : public TensorDumperTest {
 protected:
  // Runs in a process of its own, which ends what make_full_disk() does. That returns false where it cannot.
  void DumpUntilFull(const std::function<bool()>& make_full_disk) {
    constexpr int kNotPossible = 77;
    const pid_t child = fork();
    if (child == 0) {
      if (!make_full_disk()) std::_Exit(kNotPossible);
      Dump();
      std::_Exit(HasFailure() ? 1 : 0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNotPossible)
      GTEST_SKIP() << "this machine lets nobody make a full disk";
    EXPECT_EQ(status, 0);
  }

  void Dump() {
    Enable();
    Add("a", view_, DumpFormat::kBinary);
    ASSERT_EQ(dumper_.Dump(), absl::OkStatus());
    const std::vector<float> large(1 << 20);
    Add("a", view_, DumpFormat::kBinary);
    Add("large", TensorView(large.data(), {1 << 20}), DumpFormat::kBinary);
    const absl::Status status = dumper_.Dump();
    EXPECT_THAT(std::string(status.message()), HasSubstr(dir_ + "/1/[tensors.json]large.bin: cannot write"));
    EXPECT_TRUE(ReadDump(dir_ + "/0").ok());
    EXPECT_EQ(ReadDump(dir_ + "/1").status().code(), absl::StatusCode::kDataLoss);
    for (const std::string& name : NamesIn(dir_ + "/1")) EXPECT_THAT(name, Not(EndsWith(".tmp")));
  }
};

TEST_F(FullDiskTest, FilesThatMayNotGrowAreAnError) {
  DumpUntilFull([] {
    const rlimit limit = {1 << 20, 1 << 20};
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
  });
}

TEST_F(FullDiskTest, SmallFileSystemThatFillsUpIsAnError) {
  const std::string uid_map = absl::StrCat("0 ", getuid(), " 1"),
                    gid_map = absl::StrCat("0 ", getgid(), " 1");
  DumpUntilFull([&] {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << uid_map;
    std::ofstream("/proc/self/gid_map") << gid_map;
    return mount("none", dir_.c_str(), "tmpfs", 0, "size=1m") == 0;
  });
}

}  // namespace
}  // namespace ott

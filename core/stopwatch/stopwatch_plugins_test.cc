// One stopwatch in a process whose shared objects each link the library statically. This executable does not.

#include <dlfcn.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// See stopwatch_plugin_for_test.cc.
class Plugin {
 public:
  explicit Plugin(const std::string& name)
      : handle_(
            dlopen(("core/stopwatch/lib" + name + "_plugin_for_test.so").c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) ADD_FAILURE() << dlerror();
  }

  std::string Enable(int num_warmup_iters) const {
    return Find<const char*(int)>("EnableStopwatch")(num_warmup_iters);
  }
  bool enabled() const { return Find<bool()>("StopwatchIsEnabled")(); }
  void MeasureAround(const char* name, void (*work)()) const {
    Find<void(const char*, void (*)())>("MeasureAround")(name, work);
  }
  void Start(const char* name) const { Find<void(const char*)>("StartMeasurement")(name); }
  void End(const char* name) const { Find<void(const char*)>("EndMeasurement")(name); }
  void FinishIter() const { Find<void()>("FinishIteration")(); }
  std::string Table() const { return Find<const char*()>("Table")(); }

 private:
  template <typename Signature>
  Signature* Find(const char* symbol) const {
    return reinterpret_cast<Signature*>(dlsym(handle_, symbol));
  }

  void* handle_;
};

TEST(StopwatchPlugins, OfTwoCompilersShareOneStopwatchAndAnotherVersionIsRefused) {
  static const Plugin gcc("gcc");
  static const Plugin clang("clang");
  EXPECT_FALSE(clang.enabled());
  EXPECT_EQ(gcc.Enable(1), "");
  EXPECT_TRUE(clang.enabled());
  EXPECT_THAT(clang.Enable(0),
              ContainsRegex("enabled at .*, but already enabled at .*stopwatch_plugin_for_test.cc:"));

  for (int iteration = 0; iteration < 3; ++iteration) {
    // Nested across the plug-ins, on one thread.
    gcc.MeasureAround("of gcc", [] { clang.MeasureAround("of clang", [] {}); });
    clang.Start("of both");
    gcc.End("of both");
    clang.FinishIter();
  }
  const std::string table = gcc.Table();
  EXPECT_EQ(table, clang.Table());
  EXPECT_THAT(table, AllOf(HasSubstr("2 measured iterations after 1 of warm-up"),
                           ContainsRegex("\nof gcc +[0-9.]+ % +2 .*\n  of clang +[0-9.]+ % +2 "),
                           ContainsRegex("\nof both +[0-9.]+ %")));

  ::testing::internal::CaptureStderr();
  const Plugin other("clang_other_version");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("its calls are ignored"));
  EXPECT_FALSE(other.enabled());
  EXPECT_THAT(other.Enable(0),
              AllOf(HasSubstr("libclang_other_version_plugin_for_test.so has ABI version 1001"),
                    ContainsRegex("libgcc_plugin_for_test.so in the same process uses version [0-9]+;")));
  other.MeasureAround("ignored", [] {});
  EXPECT_EQ(gcc.Table(), table);
}

}  // namespace
